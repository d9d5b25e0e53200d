"""A thread embeds what was added and, now and then, what was left over."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import pytest
from indexer_support import SlowEmbedder
from queue_support import fill
from store_support import vector_faults
from support import LIMIT, HashedEmbedder, wait_until

from recall_core import Memory, Settings
from recall_core.errors import StoreUnavailableError

BACKGROUND = Settings(embedding="background")
ALONE = Settings(backfill_interval=math.inf)


@pytest.fixture
def embedder():
    return HashedEmbedder(16)


def queue(memory):
    return memory._engine.indexer._queue


def claim(memory, owner, limit=10, **arguments):
    now = memory._engine.now()
    return memory._engine.store.pending.claim(owner, limit, now, most_failures=3, **arguments)


def read(memory, sql):
    with memory._engine.store.database.read() as connection:
        return connection.execute(sql).fetchall()


# In the background


def test_an_idle_process_writes_nothing(db_path, embedder):
    fill(db_path, 3)
    settings = replace(BACKGROUND, backfill_interval=0.01)
    with Memory.open(db_path, embedder=embedder, settings=settings) as memory:
        wait_until(lambda: memory.stats().pending == 0)
        store, looks = memory._engine.store, []
        look = store.pending.claim
        wait_until(lambda: not queue(memory)._keeper._since)

        def note(*arguments, **named):
            looks.append(1)
            return look(*arguments, **named)

        with pytest.MonkeyPatch.context() as patch:
            before = trace(db_path), store.database.version()
            patch.setattr(store.pending, "claim", note)
            wait_until(lambda: len(looks) >= 10)
            assert (trace(db_path), store.database.version()) == before


def trace(path):
    files = [path, path.with_name(path.name + "-wal")]
    return [(file.stat().st_mtime_ns, file.stat().st_size, file.read_bytes()) for file in files]


def test_what_others_leave_pending_is_taken_up_while_the_memory_is_open(db_path, embedder):
    settings = Settings(backfill_interval=0.02)
    with Memory.open(db_path, embedder=embedder, settings=settings) as memory:
        fill(db_path, 10)
        wait_until(lambda: memory.stats().pending == 0)


def test_the_worker_goes_on_when_the_disk_is_no_longer_full(db_path, embedder, monkeypatch):
    monkeypatch.setattr("recall_core.worker.PAUSE", 0.02)
    with Memory.open(db_path, embedder=embedder, settings=BACKGROUND) as memory:
        pending = memory._engine.store.pending
        settle, failures = pending.settle, iter([StoreUnavailableError("the disk is full")])

        def fail_once(*arguments, **named):
            for failure in failures:
                raise failure
            return settle(*arguments, **named)

        monkeypatch.setattr(pending, "settle", fail_once)
        memory.add("Rockets fly")
        wait_until(lambda: memory.stats().pending == 0)


def test_a_run_in_the_background_takes_no_more_than_its_limit(db_path, embedder):
    fill(db_path, 700)
    settings = replace(BACKGROUND, backfill_limit=300, backfill_interval=86_400)
    with Memory.open(db_path, embedder=embedder, settings=settings) as memory:
        wait_until(lambda: memory.stats().pending == 400)
        memory.add("added meanwhile")
        wait_until(lambda: "added meanwhile" in embedder.passages)
        memory.add("and another")
        wait_until(lambda: "and another" in embedder.passages)
        wait_until(lambda: memory.stats().leased == 0)
        assert memory.stats().pending == 400


def test_what_was_just_added_comes_before_what_was_left_over(db_path):
    fill(db_path, 600)
    embedder = SlowEmbedder()
    with Memory.open(db_path, embedder=embedder, settings=BACKGROUND) as memory:
        assert embedder.begun.wait(LIMIT)
        memory.add("Rockets fly")
        embedder.may.set()
        wait_until(lambda: memory.stats().pending == 0)
        assert embedder.passages.index("Rockets fly") == 256


def test_closing_embeds_what_was_added(db_path, embedder):
    settings = replace(BACKGROUND, backfill_interval=math.inf, close_timeout=LIMIT)
    with Memory.open(db_path, embedder=embedder, settings=settings) as memory:
        memory.add_many({"text": f"text {number}"} for number in range(600))
    with Memory.open(db_path, embedder=embedder, settings=ALONE) as memory:
        assert (memory.stats().pending, vector_faults(memory)) == (0, [])


def test_closing_does_not_embed_what_was_left_over(db_path):
    fill(db_path, 2_000)
    embedder = SlowEmbedder()
    memory = Memory.open(db_path, embedder=embedder, settings=BACKGROUND)
    assert embedder.begun.wait(LIMIT)
    closing = threading.Thread(target=memory.close)
    closing.start()
    wait_until(lambda: memory._engine.indexer._worker._closing)
    embedder.may.set()
    closing.join()
    assert len(embedder.passages) == 256
