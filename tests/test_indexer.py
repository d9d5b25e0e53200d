"""Every text gets its vector once, whoever fails or is killed meanwhile, and no text is cut silently."""

from __future__ import annotations

import logging
import math
import threading

import pytest
from indexer_support import WRONG, MoodyEmbedder, SlowEmbedder, WindowEmbedder, WrongEmbedder
from store_support import faults, vector_faults
from support import LIMIT, HashedEmbedder, wait_until

from recall_core import Memory, Settings
from recall_core.errors import EmbedderMismatchError

BACKGROUND = Settings(embedding="background")


@pytest.fixture
def embedder():
    return HashedEmbedder(16)


def find(memory, query, mode="semantic"):
    hits = memory.search(query, mode=mode, limit=1)
    return [hit.record.text for hit in hits if mode == "keyword" or (hit.why.similarity or 0) > 0.99]


# Once


def test_a_text_is_embedded_once_however_many_records_hold_it(db_path, embedder):
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
        memory.add("Rockets fly", scope="user/1", tags=["t"])
        memory.add_many({"text": "Rockets fly", "session": f"s{number}"} for number in range(300))
        assert vector_faults(memory) == []
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly", scope="user/2")
        memory.delete(memory.add("Turtles swim").id)
        assert memory.flush() == 0
    assert embedder.passages == ["Rockets fly", "Turtles swim"]


def test_a_text_is_embedded_once_within_a_batch(db_path, embedder):
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add_many({"text": f"text {number % 10}"} for number in range(600))
    assert sorted(embedder.passages) == sorted({f"text {number}" for number in range(10)})


def test_threads_and_flush_embed_no_text_twice(db_path, embedder, clock):
    with (  # by a clock that stands still, so that no lease runs out
        Memory.open(db_path, embedder=embedder, settings=BACKGROUND, clock=clock) as memory,
        Memory.open(db_path, embedder=embedder, clock=clock) as second,
    ):

        def work(number):
            for place in range(40):
                (memory if number % 2 else second).add(f"text {place}")
            memory.flush()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (memory.flush(), vector_faults(memory)) == (0, [])
    assert sorted(embedder.passages) == sorted(f"text {place}" for place in range(40))


def test_the_same_words_by_another_speaker_are_another_text(db_path, embedder):
    with Memory.open(db_path, embedder=embedder) as memory:
        for role in (None, "Anna", "Bob", "user", "Assistant", " anna ", "  ", "x" * 100):
            memory.add("Rockets fly", role=role)
    assert embedder.passages == [
        "Rockets fly",
        "Anna: Rockets fly",
        "Bob: Rockets fly",
        "anna: Rockets fly",
        "x" * 64 + ": Rockets fly",
    ]


def test_a_new_role_gives_a_new_vector(db_path, embedder):
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly", id="r", role="Anna")
        memory.update("r", role="Bob")
        assert (find(memory, "Bob: Rockets fly"), find(memory, "Anna: Rockets fly")) == (["Rockets fly"], [])


def test_a_record_replaced_without_its_given_vector_gets_one_of_ours(db_path, embedder):
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly", id="r", vector=[1.0] + [0.0] * 15)
        memory.add("Rockets fly", id="r", on_duplicate="replace")
        assert (memory.flush(), find(memory, "Rockets fly")) == (0, ["Rockets fly"])


# Failures


def test_a_failure_keeps_the_text_and_is_made_good_later(db_path, clock, caplog):
    embedder = MoodyEmbedder()
    embedder.down = True
    with Memory.open(db_path, embedder=embedder, clock=clock) as memory:
        memory.add("Rockets fly")
        assert find(memory, "rockets", "keyword") == ["Rockets fly"]
        stats = memory.stats()
        assert (stats.pending, stats.failed) == (1, 1)
        assert "ConnectionError: the embedder is down" in caplog.text
        embedder.down = False
    with Memory.open(db_path, embedder=embedder, clock=clock) as memory:
        assert memory.flush() == 0
        stats = memory.stats()
        assert (stats.pending, stats.failed, find(memory, "Rockets fly")) == (0, 0, ["Rockets fly"])


def test_no_text_of_a_memory_is_logged(db_path, caplog):
    caplog.set_level(logging.INFO)
    with Memory.open(db_path, embedder=MoodyEmbedder("secret")) as memory:
        memory.add_many([{"text": "my secret"}, {"text": "Rockets fly"}])
        memory.flush()
    assert "refused" in caplog.text
    assert "my secret" not in caplog.text


def test_failed_texts_are_tried_again_after_a_while_that_grows(db_path, clock):
    embedder = MoodyEmbedder("poison")
    settings = Settings(embed_failures=9, backfill_interval=math.inf)
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=settings) as memory:
        memory.add("poison")
        tried = []
        for _ in range(4):
            waited, calls = 0, embedder.calls
            while embedder.calls == calls:
                clock.advance(30)
                waited += 30
                memory._engine.indexer._queue.run(1)
            tried.append(waited)
    assert tried == [60, 120, 240, 480]


@pytest.mark.parametrize("poisoned", [[0], [599], [300], [0, 1, 2], [0, 599], [255, 256], list(range(0, 600, 30))])
def test_refused_texts_do_not_keep_the_others_waiting(db_path, poisoned):
    embedder = MoodyEmbedder("poison")
    records = [{"text": f"{'poison' if number in poisoned else 'text'} {number}"} for number in range(600)]
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add_many(records)
        assert memory.flush() == len(poisoned)
        assert memory.stats().failed == len(poisoned)
        assert len(embedder.passages) == 600 - len(poisoned)
        assert find(memory, "text 298") == ["text 298"]
        embedder.poison.clear()
        assert (memory.flush(), vector_faults(memory)) == (0, [])


def test_an_embedder_that_is_down_is_not_asked_for_each_text(db_path):
    embedder = MoodyEmbedder()
    embedder.down = True
    with Memory.open(db_path, embedder=embedder, settings=BACKGROUND) as memory:
        memory.add_many({"text": f"text {number}"} for number in range(1000))
        assert memory.flush() == 1000
        assert embedder.calls < 30
        embedder.down = False
        assert (memory.flush(), vector_faults(memory)) == (0, [])


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_vector_is_refused_and_noted(db_path, change):
    embedder = WrongEmbedder(change)
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
        memory.add_many([{"text": "Turtles swim"}, {"text": "Whales sing"}])
        assert find(memory, "turtles", "keyword") == ["Turtles swim"]
        assert memory.stats().failed > 0
        embedder.change = None
        assert (memory.flush(), vector_faults(memory)) == (0, [])
        assert find(memory, "Whales sing") == ["Whales sing"]


def test_an_embedder_of_another_model_is_refused_at_once(db_path, embedder):
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
    with pytest.raises(EmbedderMismatchError, match="open the file with the embedder that made them"):
        Memory.open(db_path, embedder=HashedEmbedder(32))
    with Memory.open(db_path, embedder=None) as memory:
        memory.add("Turtles swim")
    with Memory.open(db_path, embedder=embedder) as memory:
        assert (memory.flush(), find(memory, "Turtles swim")) == (0, ["Turtles swim"])


def test_a_change_during_embedding_gets_a_vector_of_its_own(db_path):
    embedder = SlowEmbedder()
    with Memory.open(db_path, embedder=embedder, settings=BACKGROUND) as memory:
        memory.add("Rockets fly", id="role", role="Anna")
        memory.add("Turtles swim", id="text")
        memory.add("Whales sing", id="gone")
        assert embedder.begun.wait(LIMIT)
        memory.update("role", role="Bob")
        memory.update("text", text="Turtles dive")
        memory.delete("gone")
        embedder.may.set()
        assert (memory.flush(), vector_faults(memory)) == (0, [])
        assert (find(memory, "Bob: Rockets fly"), find(memory, "Turtles dive")) == (["Rockets fly"], ["Turtles dive"])
        assert (find(memory, "Anna: Rockets fly"), find(memory, "Turtles swim")) == ([], [])


# In the background


def test_in_the_background_adding_does_not_wait_for_vectors(db_path, clock):
    embedder = SlowEmbedder()
    with Memory.open(db_path, embedder=embedder, settings=BACKGROUND, clock=clock) as memory:
        memory.add("Rockets fly")
        assert (memory.stats().pending, find(memory, "rockets", "keyword")) == (1, ["Rockets fly"])
        assert embedder.begun.wait(LIMIT)  # or `flush` itself may come first, and wait for the embedder
        assert memory.flush(timeout=0.05) == 1
        embedder.may.set()
        assert (memory.flush(), find(memory, "Rockets fly")) == (0, ["Rockets fly"])


def test_the_worker_misses_no_text_however_they_come(db_path, embedder):
    with Memory.open(db_path, embedder=embedder, settings=BACKGROUND) as memory:
        for number in range(100):
            memory.add(f"text {number}")
            if number % 3 == 0:  # the worker is about to end
                wait_until(lambda: memory.stats().pending == 0)
        wait_until(lambda: memory.stats().pending == 0)
    assert len(embedder.passages) == 100


def test_what_another_process_left_pending_is_taken_up_by_the_worker(db_path, embedder):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add_many({"text": f"text {number}"} for number in range(300))
        assert memory.stats().pending == 300
    with Memory.open(db_path, embedder=embedder) as memory:
        wait_until(lambda: memory.stats().pending == 0)
        assert vector_faults(memory) == []


def test_closing_leaves_in_the_file_what_is_pending(db_path):
    embedder = SlowEmbedder()
    settings = Settings(embedding="background", close_timeout=0.05)
    memory = Memory.open(db_path, embedder=embedder, settings=settings)
    memory.add("Rockets fly")
    assert embedder.begun.wait(LIMIT)
    memory.close()
    embedder.may.set()
    with Memory.open(db_path, embedder=HashedEmbedder(16)) as memory:
        assert (memory.flush(), find(memory, "Rockets fly")) == (0, ["Rockets fly"])
    assert faults(db_path) == []


def test_eight_threads_add_and_search_at_once(db_path, embedder):
    seen = []

    def work(number):
        try:
            for place in range(30):
                memory.add(f"thread {number} says {place}", scope=f"user/{number}")
                for mode in ("keyword", "semantic", "hybrid"):
                    assert memory.search(f"thread {number}", scope=f"user/{number}", mode=mode)
                memory.update(memory.records(scope=f"user/{number}", limit=1)[0].id, importance=place / 100)
        except Exception as error:
            seen.append(error)

    with Memory.open(db_path, embedder=embedder) as memory:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (seen, memory.count(), memory.flush(), vector_faults(memory)) == ([], 240, 0, [])
    assert faults(db_path) == []


# Chunks


class Halves:
    """Cuts every text in the middle."""

    def chunk(self, text):
        middle = len(text) // 2
        return [(0, middle), (middle, len(text))]


def chunks(memory):
    with memory._engine.store.database.read() as connection:
        return connection.execute("SELECT start, stop FROM chunk ORDER BY key").fetchall()


def test_a_chunker_of_the_users_cuts_in_place_of_ours(db_path, embedder):
    with Memory.open(db_path, embedder=embedder, settings=Settings(chunker=Halves())) as memory:
        memory.add("Rockets fly")
        assert chunks(memory) == [(0, 5), (5, 11)]
    assert embedder.passages == ["Rocke", "ts fly"]


def test_a_chunker_that_fails_keeps_no_memory_from_being_opened(db_path, embedder, caplog):
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
        with memory._engine.store.database.write() as connection:
            connection.execute("UPDATE record SET indexed = 0")
    broken = type("Broken", (), {"chunk": lambda self, text: 1 / 0})()
    with Memory.open(db_path, embedder=embedder, settings=Settings(chunker=broken)) as memory:
        assert memory.count() == 1
    assert "can't be indexed (ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("unit", ["tokens", "characters"])
def test_the_size_is_in_tokens_or_characters(db_path, unit):
    text = "数据库配置写在文件里。" * 20
    with Memory.open(
        db_path, embedder=None, settings=Settings(chunk_size=50, chunk_overlap=0, chunk_unit=unit)
    ) as memory:
        memory.add(text)
        assert len(chunks(memory)) == 5
        assert all(stop - start <= 50 for start, stop in chunks(memory))


TEXTS = ["x" * 250, "é" * 200, "数据库" * 40, "🚀" * 60, "ﷺ" * 100, "각" * 90, "word " * 45, "a\n\n" * 60]


@pytest.mark.parametrize("unit", ["tokens", "characters"])
@pytest.mark.parametrize("window", [16, 64, 200])
@pytest.mark.parametrize("role", [None, "Anna"])
def test_no_text_is_cut_by_the_window_of_a_model(db_path, window, unit, role):
    embedder = WindowEmbedder(window)
    with Memory.open(db_path, embedder=embedder, settings=Settings(chunk_unit=unit)) as memory:
        for text in TEXTS:
            memory.add(text, role=role)
            spans = chunks(memory)
            assert (
                not set(range(len(text.rstrip())))
                - {n for start, stop in spans for n in range(start, stop)}
                - blanks(text)
            )
            memory.delete([record.id for record in memory.records()])
    assert max(len(embedder.token_spans(passage)) for passage in embedder.passages) <= window


def blanks(text):
    return {place for place, letter in enumerate(text) if letter.isspace()}


def test_every_token_of_a_long_text_is_seen_by_the_bundled_model(db_path):
    text = "\n\n".join(
        f"第{number}条：数据库配置写在 config.yaml 里，端口是 {8000 + number}。 The user prefers dark mode, "
        f"says {'very ' * (number % 7)}clearly item {number}; ﷺ 🚀 {'x' * number}"
        for number in range(60)
    )
    with Memory.open(db_path) as memory:
        model = memory._engine.embedder
        memory.add(text, role="Anna")
        spans = chunks(memory)
        assert memory.flush() == 0
    assert max(len(model.token_spans(f"Anna: {text[start:stop]}")) for start, stop in spans) <= model.window
    tokens = [trim(text, *token) for token in model.token_spans(text)]
    assert len(tokens) > 3 * model.window
    assert [text[start:stop] for start, stop in tokens if not covers(spans, start, stop)] == []


def trim(text, start, stop):
    """Return a token's offsets without the white space around it, which lies between chunks."""
    token = text[start:stop]
    return stop - len(token.lstrip()), start + len(token.rstrip())


def covers(spans, start, stop):
    return start >= stop or any(first <= start and stop <= last for first, last in spans)
