"""A file becomes as small as what it holds, while others use it."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections import namedtuple

import pytest
from maintenance_support import fill, found
from store_support import WRITES, embedder, faults, finish, release, run_python, start, use_small_index, vector_faults
from support import LIMIT

from recall_core import Memory
from recall_core.errors import StoreUnavailableError

READER = """
import sys, threading
from recall_core import Memory
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
with Memory.open(sys.argv[1], embedder=None) as memory:
    count, stay = 0, {"@id": {"$in": ["00003", "00004", "00013", "00014", "00018", "00023", "00028"]}}
    print("reading", flush=True)
    while not stop.is_set():
        # What is deleted during a search drops out of its hits, so these are of records that stay.
        assert len(memory.search("note 17", where=stay, mode="keyword", limit=5)) == 5
        count += 1
    print(count)
"""


def open_memory(path):
    return Memory.open(path, embedder=embedder())


def test_a_file_shrinks_and_the_rest_is_found_as_before(db_path):
    fill(db_path, 4000)
    with open_memory(db_path) as memory:
        memory.delete([f"{number:05}" for number in range(4000) if number % 3])
        before = found(memory)
        told = []
        done = memory.vacuum(progress=lambda *now: told.append(now))
        assert done.settled
        assert done.bytes_after < 0.55 * done.bytes_before
        assert done.bytes_after == db_path.stat().st_size
        assert db_path.with_name("memory.db-wal").stat().st_size == 0
        assert told == [(1, 3), (2, 3), (3, 3)]
        assert vector_faults(memory) == []
        assert found(memory) == before
    with open_memory(db_path) as memory:
        assert found(memory) == before
        again = memory.vacuum()
        assert again.bytes_after == again.bytes_before
    assert faults(db_path) == []


def test_codes_of_what_is_gone_go_too(db_path, monkeypatch):
    use_small_index(monkeypatch)
    fill(db_path, 3000)
    with open_memory(db_path) as memory:

        def count_pages():
            with memory._engine.store.database.read() as connection:
                return connection.execute("SELECT count(*), (SELECT count(*) FROM vector_change) FROM code_page").get

        assert count_pages()[0] == 3
        memory.delete([f"{number:05}" for number in range(1500)])
        memory.vacuum()
        assert count_pages() == (2, 0)
        assert vector_faults(memory) == []
        memory.delete([f"{number:05}" for number in range(2990)])
        memory.vacuum()
        assert (memory.stats().vector_index, count_pages()) == ("exact", (0, 10))
        assert len(memory.search("note 2995", mode="semantic")) == 10


def test_a_file_in_ram_has_nothing_to_shrink():
    with Memory.open(":memory:", embedder=None) as memory:
        memory.add("a note")
        done = memory.vacuum()
        assert (done.bytes_before, done.bytes_after, done.settled) == (0, 0, True)


def test_an_empty_file_can_be_vacuumed(db_path):
    with Memory.open(db_path, embedder=None) as memory:
        assert memory.vacuum().settled
    assert faults(db_path) == []


def test_too_little_room_is_said_before_anything_is_done(db_path, monkeypatch):
    fill(db_path, 300)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**9, 10**9 - 1000, 1000))
    with open_memory(db_path) as memory:
        memory.delete("00001")
        with pytest.raises(StoreUnavailableError, match=r"MB of room in .*, where 0\.0 MB are free"):
            memory.vacuum()
        with pytest.raises(StoreUnavailableError, match="make room"):
            memory.backup(db_path.with_name("copy.db"))
    assert list(db_path.parent.iterdir()) == [db_path]


# Others meanwhile


def test_other_processes_go_on_reading_and_writing(db_path):
    fill(db_path, 1000)
    writer = start("write", db_path, 7)
    reader = run_python(["-c", READER, str(db_path)], stdin=subprocess.PIPE)
    assert reader.stdout.readline() == "reading\n"
    release(db_path, writer)
    with open_memory(db_path) as memory:
        for part in range(3):
            memory.delete([f"{number:05}" for number in range(part, 1000, 5)])
            assert memory.vacuum().bytes_after > 0
    assert finish(writer).count == WRITES
    reader.stdin.close()
    assert (reader.wait(LIMIT), reader.stderr.read()) == (0, "")
    assert int(reader.stdout.read()) > 0
    reader.stdout.close()
    reader.stderr.close()
    with open_memory(db_path) as memory:
        assert memory.count(scope="user/7") == WRITES
        assert vector_faults(memory) == []
    assert faults(db_path) == []


def test_threads_of_the_same_process_go_on(db_path):
    fill(db_path, 1000)
    with open_memory(db_path) as memory:
        stop, errors = threading.Event(), []

        def work():
            try:
                number = 5000
                while not stop.is_set():
                    memory.add(f"note {number}")
                    assert memory.search("note", limit=3)
                    number += 1
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            memory.vacuum()
            memory.backup(db_path.with_name("copy.db"), force=True)
        stop.set()
        for thread in threads:
            thread.join()
        assert errors == []
    assert faults(db_path) == faults(db_path.with_name("copy.db")) == []


def test_who_reads_an_old_state_only_delays_that_the_file_is_cut(db_path, monkeypatch):
    fill(db_path, 2000)
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN'); "
        "print(c.execute('SELECT count(*) FROM record').fetchone()[0], flush=True); sys.stdin.readline(); "
        "print(c.execute('SELECT count(*) FROM record').fetchone()[0])"
    )
    reader = run_python(["-c", code, str(db_path)], stdin=subprocess.PIPE)
    assert reader.stdout.readline() == "2000\n"
    with open_memory(db_path) as memory:
        memory.delete([f"{number:05}" for number in range(1500)])
        with monkeypatch.context() as patch:
            patch.setattr("recall_core.store.upkeep.LOG_WAIT", 0.05)
            assert not memory.vacuum().settled
        assert reader.communicate("go\n")[0] == "2000\n"
        assert memory.vacuum().settled
    assert faults(db_path) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
def test_a_process_that_is_forked_meanwhile_opens_the_file_for_itself(db_path):
    fill(db_path, 2000)
    code = """
import os, sys
from recall_core import Memory
from recall_core.store import upkeep
upkeep.COPIED_PAGES = 16
path = sys.argv[1]
children = []
def fork(done, total):
    if len(children) < 2:
        pid = os.fork()
        if pid == 0:
            with Memory.open(path, embedder=None) as memory:
                memory.add(f"child {os.getpid()}")
            os._exit(0)
        children.append(pid)
with Memory.open(path, embedder=None) as memory:
    memory.backup(path + ".copy", progress=fork)
    memory.add("parent")
    statuses = [os.waitpid(pid, 0)[1] for pid in children]
    print(statuses, memory.count())
"""
    worker = run_python(["-W", "ignore", "-c", code, str(db_path)])
    out, err = worker.communicate(timeout=LIMIT)
    assert (out, err) == ("[0, 0] 2003\n", "")
    assert faults(db_path) == faults(f"{db_path}.copy") == []
