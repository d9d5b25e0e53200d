"""A write happens as a whole or not at all: when others hold the file, the disk is full, or a part of it fails."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import apsw
import pytest
from indexer_support import SlowEmbedder
from store_support import beside, embedder, faults, run_python, vector_faults
from support import LIMIT, HashedEmbedder

from recall_core import Memory
from recall_core.errors import (
    InvalidInputError,
    RecordExistsError,
    StoreBusyError,
    StoreUnavailableError,
)
from recall_core.settings import Settings

# Another process that holds the write lock until its standard input is closed.
HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=120)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO record(text) VALUES ('of the other process')")
sys.stdout.write("held\\n")
sys.stdout.flush()
sys.stdin.read()
connection.commit()
connection.close()
"""


def open_memory(path, **settings):
    return Memory.open(path, embedder=embedder(), settings=Settings(**settings))


@pytest.fixture
def file(db_path):
    with open_memory(db_path) as memory:
        memory.add("Rockets fly", id="r")
    return db_path


class Holder:
    """Holds the write lock of a file in another process."""

    def __init__(self, path):
        self.process = run_python(["-c", HOLD, str(path)], stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == "held\n"

    def release(self):
        out, err = self.process.communicate("")
        assert (out, err) == ("", "")


# A file that others hold


def test_who_waits_longer_than_the_busy_timeout_is_told_and_has_stored_nothing(file):
    with open_memory(file, busy_timeout=0.2) as memory:
        holder = Holder(file)
        for call in (
            lambda: memory.add("Turtles swim"),
            lambda: memory.update("r", text="Turtles swim"),
            lambda: memory.delete("r"),
            lambda: memory.session("s", title="t"),
        ):
            started = time.monotonic()
            with pytest.raises(StoreBusyError, match="other programs kept writing"):
                call()
            assert time.monotonic() - started >= 0.2
        holder.release()
        assert sorted(record.text for record in memory.records()) == ["Rockets fly", "of the other process"]
        memory.add("Turtles swim")
        assert memory.flush() == 0
    assert faults(file) == []


def test_who_waits_less_gets_the_file(file):
    with open_memory(file, busy_timeout=LIMIT) as memory:
        holder = Holder(file)
        timer = threading.Timer(0.3, holder.release)
        timer.start()
        memory.add("Turtles swim", id="t")
        timer.join()
        assert memory.get("t")


def close_while_it_is_held(memory, path, meanwhile=lambda: None):
    """Close a memory while another process writes to its file for as long as this takes; tell whether it ended."""
    holder = Holder(path)
    meanwhile()
    closing = threading.Thread(target=memory.close)
    closing.start()
    closing.join(LIMIT)
    in_time = not closing.is_alive()
    holder.release()
    closing.join()
    return in_time


def test_a_memory_that_is_closed_waits_no_longer_for_the_file_than_its_close_timeout(file):
    settings = Settings(embedding="background", close_timeout=0.2, busy_timeout=600)
    slow = SlowEmbedder()
    memory = Memory.open(file, embedder=slow, settings=settings)
    memory.add("Turtles swim", id="t")
    assert slow.begun.wait(LIMIT)
    assert close_while_it_is_held(memory, file, slow.may.set)
    with open_memory(file) as memory:
        assert ([record.text for record in memory.get(["t"])], memory.flush()) == (["Turtles swim"], 0)


def test_a_memory_that_is_closed_does_not_wait_for_the_file_to_clear_words_of_deleted_texts(file):
    memory = open_memory(file, close_timeout=0.2, busy_timeout=600)
    memory.delete("r")
    assert close_while_it_is_held(memory, file)
    with open_memory(file) as memory:
        assert memory._engine.store.remains.count() > 0
    with open_memory(file) as memory:
        assert memory._engine.store.remains.count() == 0


def test_a_memory_that_is_closed_does_not_hurry_others_in_its_process(file):
    with open_memory(file, busy_timeout=600) as memory:
        other = open_memory(file, close_timeout=0)
        other.add("Foxes run")
        other.close()
        holder = Holder(file)
        timer = threading.Timer(0.3, holder.release)
        timer.start()
        memory.add("Turtles swim")
        timer.join()


def test_opening_and_reading_wait_for_no_writer(file):
    holder = Holder(file)
    with open_memory(file, busy_timeout=0) as memory:
        assert (len(memory.search("rockets")), memory.count(), len(memory.records())) == (1, 1, 1)
        assert memory.flush() == 0
    holder.release()


def test_opening_and_reading_write_nothing(file):
    log = file.with_name(file.name + "-wal")
    before = file.read_bytes()
    with open_memory(file):  # keeps the log from being removed
        modified = file.stat().st_mtime_ns
        with open_memory(file) as memory:
            (record,) = memory.records()
            memory.search("rockets")
            memory.context("rockets")
            memory.get(record.id)
            memory.count()
            memory.sessions()
            memory.stats()
            memory.flush()
        assert (log.stat().st_size, file.stat().st_mtime_ns) == (0, modified)
    assert file.read_bytes() == before


# A write that fails in its midst


def test_a_batch_with_a_fault_in_it_is_not_stored_at_all(file):
    with open_memory(file) as memory:
        with pytest.raises(RecordExistsError):
            memory.add_many([{"text": "one"}, {"text": "two", "id": "r"}, {"text": "three"}])
        with pytest.raises(InvalidInputError):
            memory.add_many([{"text": "one"}, {"text": "two", "importance": 7}])
        assert [record.text for record in memory.records()] == ["Rockets fly"]
        assert memory.stats().chunks == 1
    assert faults(file) == []


def test_earlier_batches_stay(file):
    with open_memory(file) as memory:
        with pytest.raises(RecordExistsError):
            memory.add_many([*({"text": f"text {number}"} for number in range(300)), {"text": "x", "id": "r"}])
        assert memory.count() == 257
        assert (memory.flush(), vector_faults(memory)) == (0, [])


def fail_after_deleting(memory):
    with memory._engine.store.records.transaction():
        memory.delete("r")
        assert memory.count() == 0
        raise KeyError


def test_an_exception_rolls_back_all_that_a_transaction_did(file):
    with open_memory(file) as memory:
        with pytest.raises(KeyError):
            fail_after_deleting(memory)
        assert (memory.count(), len(memory.search("rockets"))) == (1, 1)
        memory.add("Turtles swim")
        assert memory.count() == 2


def test_an_inner_transaction_that_fails_leaves_nothing_in_the_outer_one(file):
    with open_memory(file) as memory:
        with memory._engine.store.records.transaction():
            memory.session("s", title="t")
            with pytest.raises(KeyError):
                fail_after_deleting(memory)
        assert (memory.count(), [session.id for session in memory.sessions()]) == (1, ["s"])


def test_what_a_transaction_has_not_committed_is_seen_by_its_own_thread_alone(file):
    counted = []
    with open_memory(file) as memory:
        with memory._engine.store.records.transaction():
            memory.delete("r")
            reader = threading.Thread(target=lambda: counted.append(memory.count()))
            reader.start()
            reader.join()
            counted.append(memory.count())
        assert (counted, memory.count()) == ([1, 0], 0)


# A disk that is full


def limit_pages(memory, more):
    """Let SQLite say that the disk is full, once the file has grown by so many pages."""
    with memory._engine.store.database.write() as connection:
        connection.pragma("max_page_count", connection.pragma("page_count") + more)


def test_a_full_disk_is_told_and_nothing_is_half_stored(file):
    with open_memory(file) as memory:
        limit_pages(memory, 4)
        with pytest.raises(StoreUnavailableError, match="the disk is full"):
            memory.add_many({"text": f"text {number} " + "words " * 200} for number in range(200))
        assert (memory.count(), len(memory.search("rockets"))) == (1, 1)
        limit_pages(memory, 100_000)
        memory.add("Turtles swim")
        assert (memory.count(), memory.flush(), vector_faults(memory)) == (2, 0, [])
    assert faults(file) == []


def test_text_is_kept_if_the_disk_has_no_room_for_its_vector(db_path):
    with Memory.open(db_path, embedder=HashedEmbedder(4096)) as memory:
        store = memory._engine.store
        settle = store.pending.settle

        def settle_without_room(*arguments):
            limit_pages(memory, 0)
            return settle(*arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store.pending, "settle", settle_without_room)
            memory.add("Turtles swim")
        assert [hit.record.text for hit in memory.search("turtles", mode="keyword")] == ["Turtles swim"]
        assert memory.stats().pending == 1
        limit_pages(memory, 100_000)
        assert (memory.flush(), vector_faults(memory)) == (0, [])
    assert faults(db_path) == []


IN_A_SMALL_PLACE = """
import resource, sys
from recall_core import Memory
from recall_core.errors import StoreUnavailableError
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
stored = 0
try:
    with Memory.open(sys.argv[1], embedder=None) as memory:
        while True:
            memory.add(f"text {stored} " + "words " * 200)
            stored += 1
except StoreUnavailableError as error:
    sys.stdout.write(f"{stored} {type(error).__name__}")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no file's size")
def test_a_log_that_can_not_grow_costs_nothing_that_was_stored(file):
    out, err = run_python(["-c", IN_A_SMALL_PLACE, str(file)]).communicate()
    assert err == ""
    stored, name = out.split()
    assert (int(stored) > 0, name) == (True, "StoreUnavailableError")
    assert faults(file) == []
    with open_memory(file) as memory:
        assert memory.count() == 1 + int(stored)
        assert (memory.flush(), vector_faults(memory)) == (0, [])


def fill(memory):
    """Add records until there is no room, and return how many were stored."""
    for number in range(10_000):
        try:
            memory.add(f"text {number} " + "words " * 200)
        except StoreUnavailableError as error:
            message = str(error)
            break
    assert "disk is full" in message or "reading or writing the file failed" in message
    return number


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux mounts a small disk so easily")
def test_a_real_full_disk_costs_nothing_that_was_stored(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4M", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("no permission to mount a small disk")
    try:
        with open_memory(disk / "memory.db") as memory:
            stored = fill(memory)
            assert 10 < memory.count() == stored
            assert len(memory.search("words", limit=3)) == 3
        assert faults(disk / "memory.db") == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_disk_that_is_full_from_the_start_is_told(tmp_path, monkeypatch):
    connect = apsw.Connection

    def small(path):
        connection = connect(path)
        connection.pragma("max_page_count", 3)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(apsw, "Connection", small)
        with pytest.raises(StoreUnavailableError, match="the disk is full"):
            open_memory(tmp_path / "memory.db")
    with open_memory(tmp_path / "memory.db") as memory:
        memory.add("Rockets fly")
    beside(tmp_path / "memory.db", "UPDATE record SET importance = 1")
    assert faults(tmp_path / "memory.db") == []
