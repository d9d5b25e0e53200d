"""A file moves to another model while others write, are killed, or move it too."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
from indexer_support import MoodyEmbedder
from reembed_support import (
    NEW,
    OLD,
    CallingEmbedder,
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
from support import LIMIT, HashedEmbedder, wait_until

from recall_core import Memory, Settings
from recall_core.errors import EmbedderMismatchError, EmbeddingError

OLD_ID, NEW_ID = f"hashed-{OLD}", f"hashed-{NEW}"
needs_kill = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
BACKGROUND = Settings(embedding="background")


# Writers meanwhile


def test_what_is_written_meanwhile_moves_too(db_path):
    fill(db_path)
    with Memory.open(db_path, embedder=old()) as writer, Memory.open(db_path, embedder=None) as memory:
        numbers = iter(range(1000, 2000))

        def write():
            number = next(numbers)
            writer.add(make_text(number), id=f"{number:05}")
            writer.update(f"{number - 1000:05}", text=f"changed {number}")
            writer.delete(f"{number - 800:05}")

        memory.reembed(CallingEmbedder(NEW, write), batch=16)
        assert models(memory) == {"memory": (NEW_ID, memory.count() - memory.stats().pending)}
    with Memory.open(db_path, embedder=new()) as memory:
        assert memory.flush() == 0
        assert memory.search("changed 1003", mode="semantic", limit=1)[0].record.text == "changed 1003"
        assert vector_faults(memory) == []


def test_a_writer_that_never_rests_does_not_hold_the_move_up_for_ever(db_path):
    fill(db_path, 20)
    with Memory.open(db_path, embedder=old()) as writer, Memory.open(db_path, embedder=None) as memory:
        texts = (make_text(number) for number in range(1000, 5000))
        memory.reembed(CallingEmbedder(NEW, lambda: writer.add(next(texts))), batch=4)
    with Memory.open(db_path, embedder=new()) as memory:
        assert memory.flush() == 0
        assert vector_faults(memory) == []


def test_processes_that_write_with_the_old_model_do_no_harm(db_path):
    fill(db_path)
    worker = start("write", db_path, 1000)
    wait_until(db_path.with_name("writing").exists)
    with Memory.open(db_path, embedder=None) as memory:
        memory.reembed(CallingEmbedder(NEW, lambda: time.sleep(0.002)), batch=16)
        moved = memory.count()
        wait_until(lambda: memory.count() > moved + 3)
    db_path.with_name("stop").touch()
    written = int(finish(worker)) - 1000
    assert_moved(db_path, 300 + written)


def test_a_worker_does_not_store_a_vector_of_the_old_model_in_the_new_space(db_path):
    """It embeds while the file moves, and has its vectors only after the switch."""
    fill(db_path, 3)
    may, begun = threading.Event(), threading.Event()

    def wait():
        begun.set()
        assert may.wait(LIMIT)

    embedder = HashedEmbedder(OLD)
    with Memory.open(db_path, embedder=embedder, settings=BACKGROUND) as memory:
        embed = embedder.embed_passages
        embedder.embed_passages = lambda texts: (wait(), embed(texts))[1]
        memory.add("late", id="late")
        assert begun.wait(LIMIT)
        with Memory.open(db_path, embedder=None) as other:
            other.reembed(HashedEmbedder(OLD, "as large"))
        may.set()
    assert_moved(db_path, 4, HashedEmbedder(OLD, "as large"))
    with Memory.open(db_path, embedder=HashedEmbedder(OLD, "as large")) as memory:
        hit = memory.search("late", mode="semantic", limit=1)[0]
        assert (hit.record.id, hit.why.similarity) == ("late", pytest.approx(1, abs=1e-5))


def test_a_text_that_is_added_with_the_old_model_afterwards_waits_for_the_new_one(db_path):
    fill(db_path, 3)
    with Memory.open(db_path, embedder=old()) as memory:
        with Memory.open(db_path, embedder=None) as other:
            other.reembed(new())
        memory.add("late", id="late")
        assert memory.search("late")[0].record.id == "late"
        assert memory.stats().pending == 1
    assert_moved(db_path, 4)


def test_a_vector_of_the_old_model_that_a_caller_gives_afterwards_is_refused(db_path):
    fill(db_path, 3)
    with Memory.open(db_path, embedder=old()) as memory:
        with Memory.open(db_path, embedder=None) as other:
            other.reembed(HashedEmbedder(OLD, "as large"))
        with pytest.raises(EmbedderMismatchError, match="as large"):
            memory.add("late", vector=[1.0] * OLD)
        with pytest.raises(EmbedderMismatchError, match="as large"):
            memory.update("00001", vector=[1.0] * OLD)
        assert memory.count() == 3


def test_opening_a_moved_file_with_the_old_model_names_both_ways_out(db_path):
    fill(db_path, 3)
    with Memory.open(db_path, embedder=None) as memory:
        memory.reembed(new())
    with pytest.raises(EmbedderMismatchError, match=r"open the file with the embedder that made them.*recall reembed"):
        Memory.open(db_path, embedder=old())


# Interrupted


@needs_kill
@pytest.mark.parametrize(
    ("work", "number"),
    [
        ("die embedding", 1),
        ("die embedding", 5),
        ("die reporting", 1),
        ("die reporting", 8),
        ("die reporting", 20),
        ("die clearing", 2),
    ],
)
def test_a_killed_move_leaves_a_working_file_and_goes_on_where_it_ended(db_path, work, number, monkeypatch):
    use_small_index(monkeypatch)
    fill(db_path)
    worker = start(work, db_path, number)
    worker.communicate(timeout=LIMIT)
    assert worker.returncode == -9
    assert faults(db_path) == []
    switched = work == "die clearing"  # after the switch: the old vectors are still there
    with Memory.open(db_path, embedder=new() if switched else old()) as memory:
        there = models(memory)
        assert len(memory.search(make_text(3), mode="semantic")) > 0
        assert len(memory.stats().notes) == 1
    assert any(name.startswith("memory:old") for name in there) == switched
    had = 0 if switched else there["memory:next"][1]
    assert had == (0 if switched else min(16 * (number - 1), 300))
    chunks, embedded = map(int, finish(start("move", db_path)).split())
    assert (chunks, embedded) == ((0, 0) if switched else (300, 300 - had))
    assert_moved(db_path, 300)


@needs_kill
def test_a_move_that_is_killed_at_any_moment_leaves_a_sound_file(db_path):
    rng = np.random.default_rng(3)
    fill(db_path)
    for _ in range(5):
        worker = start("move", db_path)
        # Once the file has moved, a worker may be done before anybody looks.
        wait_until(lambda one=worker: db_path.with_name("memory.db-wal").exists() or one.poll() is not None)
        time.sleep(rng.uniform(0, 0.15))
        worker.kill()
        worker.communicate()
        assert faults(db_path) == []
    finish(start("move", db_path))
    assert_moved(db_path, 300)


@pytest.mark.parametrize("calls", [1, 5])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()], ids=repr)
def test_whatever_is_raised_leaves_a_working_file(db_path, calls, error):
    fill(db_path)
    with Memory.open(db_path, embedder=old()) as memory:
        with pytest.raises(type(error)):
            memory.reembed(StoppingEmbedder(NEW, calls, error), batch=16)
        assert memory.search(make_text(7), mode="semantic", limit=1)[0].record.id == "00007"
    assert_works(db_path)
    with Memory.open(db_path, embedder=old()) as memory:
        assert memory.reembed(new(), batch=16).embedded == 300 - 16 * (calls - 1)
    assert_moved(db_path, 300)


def test_an_embedder_that_fails_ends_the_move_and_says_why(db_path):
    fill(db_path, 20)
    embedder = MoodyEmbedder(dimensions=NEW)
    embedder.down = True
    with Memory.open(db_path, embedder=old()) as memory:
        with pytest.raises(EmbeddingError, match="ConnectionError: the embedder is down"):
            memory.reembed(embedder)
        assert embedder.calls == 2  # a text that can't be at fault was tried as well
        embedder.down = False
        memory.reembed(embedder)
    assert_moved(db_path, 20)


def test_a_text_that_the_model_refuses_waits_and_the_others_move(db_path):
    fill(db_path, 50)
    embedder = MoodyEmbedder("note 7 ", "note 31 ", dimensions=NEW)
    with Memory.open(db_path, embedder=old()) as memory:
        done = memory.reembed(embedder, batch=16)
        assert (done.chunks, done.refused) == (48, 2)
        assert (memory.stats().pending, memory.stats().failed) == (2, 2)
        assert memory.search(make_text(7), mode="keyword", limit=1)[0].record.id == "00007"
        assert memory.search(make_text(8), mode="semantic", limit=1)[0].record.id == "00008"
        embedder.poison.clear()
        assert memory.flush() == 0
    assert_moved(db_path, 50)


def test_a_model_that_refuses_all_texts_does_not_get_the_file(db_path):
    fill(db_path, 3)
    with Memory.open(db_path, embedder=old()) as memory, pytest.raises(EmbeddingError, match="refuse"):
        memory.reembed(MoodyEmbedder("note", dimensions=NEW))
    assert_works(db_path, 3)


def test_another_target_is_refused_while_a_move_is_unfinished(db_path):
    fill(db_path)
    with Memory.open(db_path, embedder=old()) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.reembed(StoppingEmbedder(NEW, 3, KeyboardInterrupt()), batch=16)
        with pytest.raises(EmbedderMismatchError, match=rf"{NEW_ID} .*can't be moved to hashed-32.*--abort"):
            memory.reembed(HashedEmbedder(32))
        assert NEW_ID in " ".join(memory.stats().notes)
        assert memory.abort_reembed() == NEW_ID
        assert models(memory) == {"memory": (OLD_ID, 300)}
        assert memory.stats().notes == ()
        assert memory.abort_reembed() is None
        memory.reembed(HashedEmbedder(32))
    assert_moved(db_path, 300, HashedEmbedder(32))


def test_dropping_a_move_ends_the_process_that_is_at_it(db_path):
    fill(db_path)
    with Memory.open(db_path, embedder=old()) as memory, Memory.open(db_path, embedder=None) as other:
        calls = iter(range(100))
        embedder = CallingEmbedder(NEW, lambda: memory.abort_reembed() if next(calls) == 3 else None)
        with pytest.raises(EmbeddingError, match="dropped by another process"):
            other.reembed(embedder, batch=16)
        assert models(memory) == {"memory": (OLD_ID, 300)}
    assert_works(db_path)


@pytest.mark.parametrize("workers", [2, 3])
def test_processes_that_move_a_file_to_the_same_model_share_the_work(db_path, workers):
    fill(db_path)
    started = [start("move", db_path) for _ in range(workers)]
    done = [tuple(map(int, finish(worker).split())) for worker in started]
    assert 300 <= sum(embedded for _, embedded in done) < 300 * workers
    assert_moved(db_path, 300)


def test_who_is_overtaken_by_another_process_has_moved_the_file_too(db_path):
    fill(db_path)
    with Memory.open(db_path, embedder=old()) as memory, Memory.open(db_path, embedder=None) as other:
        calls = iter(range(100))
        embedder = CallingEmbedder(NEW, lambda: other.reembed(new()) if next(calls) == 3 else None)
        assert memory.reembed(embedder, batch=16).model == NEW_ID
        assert memory.search(make_text(7), mode="semantic", limit=1).degraded is None
    assert_moved(db_path, 300)


def test_long_texts_that_are_added_without_a_pause_are_cut_for_the_new_model(db_path):
    fill(db_path, 20)
    with Memory.open(db_path, embedder=old()) as writer, Memory.open(db_path, embedder=None) as memory:
        embedder, numbers = NarrowEmbedder(60), iter(range(1000))
        embed = embedder.embed_passages

        def add_first(texts):
            if "memory:next" in models(memory):
                writer.add(f"{next(numbers)} {'长长的记录。' * 20}")
            return embed(texts)

        embedder.embed_passages = add_first
        done = memory.reembed(embedder, batch=4)
        assert (done.refused, memory.flush()) == (0, 0)
        assert vector_faults(memory) == []
        assert max(len(text.encode()) for text in embedder.passages) <= 60
