"""A file moves to another model: searches go on, nothing is mixed, and nothing that interrupts it does harm."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
from models import MEAN, WORDS, build_model
from reembed_support import (
    NEW,
    OLD,
    CallingEmbedder,
    Judge,
    NarrowEmbedder,
    StoppingEmbedder,
    assert_moved,
    assert_works,
    fill,
    finish,
    make_text,
    models,
    new,
    old,
    start,
)
from store_support import faults, use_small_index, vector_faults
from support import HashedEmbedder, wait_until

from recall_core import Memory, OnnxEmbedder, Settings
from recall_core.errors import InvalidInputError

OLD_ID, NEW_ID = f"hashed-{OLD}", f"hashed-{NEW}"
needs_kill = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
BACKGROUND = Settings(embedding="background")


# Moving


@pytest.mark.parametrize("target", [HashedEmbedder(NEW), HashedEmbedder(OLD, "as large")], ids=["larger", "as large"])
def test_all_chunks_get_vectors_of_the_new_model(db_path, target):
    fill(db_path)
    with Memory.open(db_path, embedder=None) as memory:
        done = memory.reembed(target)
        assert (done.model, done.dimensions, done.chunks, done.refused) == (target.model_id, target.dimensions, 300, 0)
    assert_moved(db_path, 300, target)


def test_the_memory_that_moves_the_file_goes_on_with_the_new_model(db_path):
    fill(db_path)
    with Memory.open(db_path, embedder=old()) as memory:
        view = memory.scoped("user")
        memory.reembed(new())
        view.add("added afterwards")
        for one in (memory, view):
            hits = one.search("added afterwards", mode="semantic", limit=1 if one is view else 5)
            assert (hits[0].record.text, hits.degraded) == ("added afterwards", None)
        assert Judge(old(), new()).find("added afterwards", memory.search("added afterwards")) == {NEW_ID}
    assert_moved(db_path, 301)


def test_the_same_text_is_embedded_once(db_path):
    with Memory.open(db_path, embedder=old()) as memory:
        memory.add_many({"text": f"text {number % 10}"} for number in range(500))
        embedder = new()
        assert memory.reembed(embedder, batch=7).embedded == 10
    assert sorted(embedder.passages) == sorted({f"text {number}" for number in range(10)})


def test_a_file_without_vectors_gets_those_of_the_model(db_path):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add("one")
        memory.reembed(new())
    assert_moved(db_path, 1)


def test_an_empty_file_has_the_model_then(db_path):
    with Memory.open(db_path, embedder=old()) as memory:
        memory.reembed(new())
    assert_moved(db_path, 0)


def test_a_file_that_has_the_model_already_stays_as_it_is(db_path):
    fill(db_path)
    with Memory.open(db_path, embedder=None) as memory:
        embedder = old()
        assert memory.reembed(embedder).chunks == 0
        assert memory.search(make_text(7), mode="semantic", limit=1)[0].record.id == "00007"
    assert embedder.passages == []
    assert_works(db_path)


def test_what_another_program_wrote_moves_too(db_path):
    fill(db_path, 3)
    with Memory.open(db_path, embedder=old()) as memory:
        with memory._engine.store.database.write() as connection:
            connection.execute("INSERT INTO record(text) VALUES ('from elsewhere')")
        memory.reembed(new())
    assert_moved(db_path, 4)


def test_the_vectors_of_hosts_are_not_touched(db_path):
    with Memory.open(db_path, embedder=old()) as memory:
        memory.add("one", id="1", vector=[1.0, 0.0], space="host")
        memory.add("two", id="2", vector=[0.0, 1.0], space="host")
        memory.reembed(new())
        hits = memory.search("", mode="semantic", fusion="plain", vector=[1.0, 0.0], space="host")
        assert [(hit.record.id, hit.why.similarity) for hit in hits] == [("1", 1.0), ("2", 0.0)]
        assert models(memory) == {"memory": (NEW_ID, 2), "host": ("external", 2)}


def test_vectors_that_callers_gave_for_the_old_model_are_made_anew_from_the_text(db_path):
    with Memory.open(db_path, embedder=old()) as memory:
        memory.add("one", id="1", vector=[1.0] * OLD)
        embedder = new()
        memory.reembed(embedder)
        assert embedder.passages == ["one"]
        assert memory.search("one", mode="semantic")[0].why.similarity == pytest.approx(1, abs=1e-5)
    assert_moved(db_path, 1)


def test_the_codes_of_a_large_space_are_those_of_the_new_model(db_path, monkeypatch):
    use_small_index(monkeypatch)
    fill(db_path)
    with Memory.open(db_path, embedder=old()) as memory:
        assert memory.stats().vector_index == "codes"
        memory.reembed(new(), batch=16)
        assert memory.stats().vector_index == "codes"
        for number in range(0, 300, 50):
            hits = memory.search(make_text(number), mode="semantic", limit=3)
            assert hits[0].record.id == f"{number:05}"
            assert Judge(old(), new()).find(make_text(number), hits) == {NEW_ID}
    assert_moved(db_path, 300)


def test_progress_tells_how_many_chunks_are_done_and_of_how_many(db_path):
    fill(db_path)
    told = []
    with Memory.open(db_path, embedder=old()) as memory:
        memory.reembed(new(), batch=100, progress=lambda done, chunks: told.append((done, chunks)))
    assert told == [(0, 300), (100, 300), (200, 300), (300, 300)]


def test_freed_pages_are_used_again(db_path):
    fill(db_path, 2000)
    with Memory.open(db_path, embedder=old()) as memory:
        memory.reembed(HashedEmbedder(256))
        once = memory.stats().file_bytes
        memory.reembed(HashedEmbedder(256, "another"))
        memory.reembed(HashedEmbedder(256, "a third"))
    assert db_path.stat().st_size < 1.8 * once


# Searches meanwhile


def test_a_search_never_mixes_the_models_of_a_file_that_moves_under_it(db_path, tmp_path):
    """4,000 chunks, a model of 512 dimensions, and a thread that searches all along."""
    rng = np.random.default_rng(5)
    words = WORDS[7:17]
    texts = [f"{' '.join(rng.choice(words, 8))} {number}" for number in range(4_000)]
    before = HashedEmbedder(384, "as large as the bundled model's")
    table = rng.normal(size=(len(WORDS), 512)).astype(np.float32)
    after = OnnxEmbedder(build_model(tmp_path / "model", table=table, pooling=MEAN))
    with Memory.open(db_path, embedder=before) as memory:
        memory.add_many({"text": text} for text in texts)
        seen, failed, over = [], [], threading.Event()

        def search():
            while not over.is_set():
                query = texts[len(seen) * 37 % len(texts)]
                try:
                    seen.append((query, memory.search(query, limit=5)))
                except BaseException as error:
                    failed.append(error)

        thread = threading.Thread(target=search)
        thread.start()
        wait_until(lambda: seen)
        done = memory.reembed(after)
        moved = len(seen)
        wait_until(lambda: len(seen) > moved + 5)
        over.set()
        thread.join()
        assert (failed, done.chunks) == ([], 4_000)
        judge = Judge(before, after)
        found = [judge.find(query, hits) if hits.degraded is None else set() for query, hits in seen]
        told = [hits for _, hits in seen if hits.degraded is not None]
        assert all(hits.mode == "keyword" and hits[0].why.similarity is None for hits in told)
        order = [next(iter(one)) for one in found if one]
        assert len(order) == len(seen) - len(told)
        assert order == sorted(order, key=[before.model_id, after.model_id].index)
        assert {order[0], order[-1]} == {before.model_id, after.model_id}
        assert all(len(hits) == 5 for _, hits in seen)
    with Memory.open(db_path, embedder=after) as memory:
        assert vector_faults(memory) == []


def test_processes_with_the_old_model_search_on_and_then_say_that_the_file_has_moved(db_path):
    fill(db_path)
    worker = start("search", db_path)
    wait_until(db_path.with_name("searching").exists)
    with Memory.open(db_path, embedder=None) as memory:
        memory.reembed(CallingEmbedder(NEW, lambda: time.sleep(0.01)), batch=16)
    count, degraded = finish(worker).split("|")
    assert int(count) > 0
    assert "found by keywords only" in degraded
    assert NEW_ID in degraded
    assert OLD_ID in degraded


def test_a_search_that_began_before_the_switch_is_answered_by_one_model(db_path):
    """The file moves between the embedding of the query and the look at the vectors."""
    fill(db_path)
    with Memory.open(db_path, embedder=None) as other:
        embedder = old()
        with Memory.open(db_path, embedder=embedder) as memory:
            embed = embedder.embed_queries

            def move_first(texts):
                embedder.embed_queries = embed
                other.reembed(new())
                return embed(texts)

            embedder.embed_queries = move_first
            hits = memory.search(make_text(7))
            assert (hits.mode, hits[0].record.id, hits[0].why.similarity) == ("keyword", "00007", None)
            assert "open it again" in hits.degraded


def test_a_given_query_vector_of_the_old_model_is_not_compared_with_vectors_of_the_new_one(db_path):
    fill(db_path)
    with Memory.open(db_path, embedder=old()) as memory, Memory.open(db_path, embedder=None) as other:
        other.reembed(HashedEmbedder(OLD, "as large"))
        hits = memory.search("note", vector=[1.0] * OLD)
        assert hits.mode == "keyword"
        assert "as large" in hits.degraded


def test_what_a_process_holds_in_memory_stays_there_while_another_fills_the_new_space(db_path):
    fill(db_path)
    with Memory.open(db_path, embedder=old()) as memory:
        last = memory._engine.store.blocks.last_change()
        with pytest.raises(KeyboardInterrupt):
            memory.reembed(StoppingEmbedder(NEW, 4, KeyboardInterrupt()), batch=16)
        assert models(memory)["memory:next"][1] > 0
        assert memory._engine.store.blocks.last_change() == last


# A smaller window

LONG = "。".join(f"第{number}天部署了服务器并且检查了日志" for number in range(30))


def test_chunks_that_are_too_large_for_the_new_model_are_cut_anew(db_path):
    with Memory.open(db_path, embedder=old()) as memory:
        record = memory.add(LONG, id="long", role="Dana", metadata={"k": "v"}, session="s", turn=3)
        memory.add("short", id="short")
        done = memory.reembed(NarrowEmbedder(60))
        assert (done.recut, done.refused) == (1, 0)
        assert memory.get("long") == [record]
        spans = read(memory, "SELECT start, stop FROM chunk JOIN record ON record.key = record_key WHERE id = 'long'")
        covered = {place for first, last in spans for place in range(first, last)}
        assert covered == set(range(len(LONG)))
        assert all(len(f"Dana: {LONG[first:last]}".encode()) <= 60 for first, last in spans)
        assert memory.search("第17天", mode="semantic", limit=1)[0].record.id == "long"
        assert len(spans) > 30
    assert_moved(db_path, len(spans) + 1, NarrowEmbedder(60))


def test_records_that_are_cut_anew_come_last_and_keep_what_hosts_gave_them(db_path):
    with Memory.open(db_path, embedder=old()) as memory:
        memory.add(LONG, id="long", vector=[1.0, 0.0], space="host")
        memory.add_many({"text": make_text(number)} for number in range(40))
        chunks = memory.stats().chunks
        embedder = NarrowEmbedder(60)
        embed, counts = embedder.embed_passages, []
        embedder.embed_passages = lambda texts: (counts.append(memory.stats().chunks), embed(texts))[1]
        memory.reembed(embedder, batch=16)
        assert set(counts[:3]) == {chunks}
        assert embedder.passages[:40] == [make_text(number) for number in range(40)]
        hits = memory.search("", mode="semantic", fusion="plain", vector=[1.0, 0.0], space="host")
        assert [(hit.record.id, hit.why.similarity) for hit in hits] == [("long", 1.0)]


def test_a_move_that_ends_after_records_were_cut_anew_can_be_dropped(db_path):
    with Memory.open(db_path, embedder=old()) as memory:
        memory.add_many({"text": f"{LONG} {number}", "id": str(number)} for number in range(5))
        embedder = NarrowEmbedder(60)
        embed = embedder.embed_passages

        def embed_the_first(texts):
            if len(embedder.passages) > 20:
                raise SystemExit
            return embed(texts)

        embedder.embed_passages = embed_the_first
        with pytest.raises(SystemExit):
            memory.reembed(embedder, batch=1)
        assert memory.stats().pending > 0
        assert memory.search("第17天", mode="keyword")[0].record.text.startswith(LONG)
        memory.abort_reembed()
        assert memory.flush() == 0
        assert vector_faults(memory) == []
        assert models(memory) == {"memory": (OLD_ID, memory.stats().chunks)}
    assert faults(db_path) == []


# What is refused


@pytest.mark.parametrize("space", ["memory:next", "memory:old:1", "memory:"])
def test_the_names_that_a_move_needs_are_no_names_of_hosts_spaces(space):
    with Memory.open(":memory:", embedder=old()) as memory:
        memory.add("text", id="1")
        for call in (
            lambda: memory.add("text", vector=[1.0], space=space),
            lambda: memory.update("1", vector=[1.0], space=space),
            lambda: memory.search("text", vector=[1.0], space=space),
        ):
            with pytest.raises(InvalidInputError, match="space"):
                call()


@pytest.mark.parametrize("batch", [0, -1, 5000, 1.5, True])
def test_a_batch_that_makes_no_sense_is_refused(batch):
    with Memory.open(":memory:", embedder=old()) as memory, pytest.raises(InvalidInputError, match="batch"):
        memory.reembed(new(), batch=batch)


def test_no_model_is_no_target():
    with Memory.open(":memory:", embedder=old()) as memory, pytest.raises(InvalidInputError, match="embedder"):
        memory.reembed(None)


def read(memory, sql):
    with memory._engine.store.database.read() as connection:
        return connection.execute(sql).fetchall()
