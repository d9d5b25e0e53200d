"""One file, opened more than once: by several handles, threads, forked processes and other copies of SQLite."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sqlite3
import sys
import threading
import warnings

import pytest
from store_support import beside, embedder, faults, run_python
from support import LIMIT

from recall_core import Memory
from recall_core.errors import ClosedError, StoreMovedError

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
links = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")


def open_memory(path):
    return Memory.open(path, embedder=embedder())


def stores(*memories):
    return {id(memory._engine.store.database._connections) for memory in memories}


# Handles


def test_a_file_opened_twice_is_one_store(db_path):
    with open_memory(db_path) as first, open_memory(str(db_path)) as second:
        assert len(stores(first, second)) == 1
        first.add("Rockets fly", id="r")
        assert second.get("r")[0].text == "Rockets fly"


@links
def test_a_file_opened_through_links_and_detours_is_one_store(db_path, monkeypatch):
    open_memory(db_path).close()
    symbolic, hard = db_path.with_name("symbolic.db"), db_path.with_name("hard.db")
    symbolic.symlink_to(db_path)
    hard.hardlink_to(db_path)
    monkeypatch.chdir(db_path.parent)
    paths = [db_path, symbolic, hard, "memory.db", db_path.parent / ".." / db_path.parent.name / "memory.db"]
    with contextlib.ExitStack() as stack:
        memories = [stack.enter_context(open_memory(path)) for path in paths]
        assert len(stores(*memories)) == 1
        for number, memory in enumerate(memories):
            memory.add(f"text {number}")
        assert [memory.count() for memory in memories] == [len(paths)] * len(paths)
    assert faults(db_path) == []


def test_memories_in_ram_are_apart():
    with open_memory(":memory:") as first, open_memory(":memory:") as second:
        first.add("Rockets fly")
        assert second.count() == 0


def test_closing_one_handle_leaves_the_other_open(db_path):
    with open_memory(db_path) as second:
        open_memory(db_path).close()
        first = open_memory(db_path)
        first.close()
        first.close()
        second.add("Rockets fly")
        assert second.count() == 1
        with pytest.raises(ClosedError):
            first.count()


CALLS = {
    "add": lambda memory: memory.add("x"),
    "add_many": lambda memory: memory.add_many([{"text": "x"}]),
    "search": lambda memory: memory.search("rockets"),
    "context": lambda memory: memory.context("rockets"),
    "get": lambda memory: memory.get("r"),
    "update": lambda memory: memory.update("r", text="x"),
    "delete": lambda memory: memory.delete("r"),
    "records": lambda memory: memory.records(),
    "count": lambda memory: memory.count(),
    "session.append": lambda memory: memory.session("s").append("user", "x"),
    "session.messages": lambda memory: memory.session("s").messages(),
    "session.title": lambda memory: memory.session("s").title,
    "session.delete": lambda memory: memory.session("s").delete(),
    "session(title=)": lambda memory: memory.session("s", title="t"),
    "sessions": lambda memory: memory.sessions(),
    "scoped": lambda memory: memory.scoped("a").add("x"),
    "flush": lambda memory: memory.flush(),
    "stats": lambda memory: memory.stats(),
}


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "while another has it open"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_closed_memory_says_so(db_path, call, shared):
    with contextlib.ExitStack() as stack:
        memory = open_memory(db_path)
        memory.add("Rockets fly", id="r")
        if shared:
            stack.enter_context(open_memory(db_path))
        memory.close()
        with pytest.raises(ClosedError, match=r"memory\.db is closed; open it again"):
            call(memory)
    with open_memory(db_path) as memory:
        assert [record.text for record in memory.records()] == ["Rockets fly"]


def test_a_file_opened_again_after_the_last_close_is_read_anew(db_path):
    with open_memory(db_path) as memory:
        memory.add("Rockets fly")
    with open_memory(db_path) as memory:
        assert memory.count() == 1


def test_threads_may_open_and_close_as_they_like(db_path):
    faults_seen = []

    def work(number):
        try:
            for place in range(20):
                with open_memory(db_path) as memory:
                    memory.add(f"thread {number} says {place}")
                    memory.search("says")
        except Exception as error:
            faults_seen.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults_seen == []
    with open_memory(db_path) as memory:
        assert memory.count() == 120
    assert faults(db_path) == []


# Files that go away


@links
@pytest.mark.parametrize("again", [False, True], ids=["gone", "another in its place"])
def test_a_file_deleted_while_it_is_open_is_told_and_can_be_made_anew(db_path, again):
    with open_memory(db_path) as memory:
        memory.add("Rockets fly")
        for file in list(db_path.parent.iterdir()):
            file.unlink()
        if again:
            open_memory(db_path).close()
        with pytest.raises(StoreMovedError, match="moved, deleted or replaced while it was open; open it again"):
            memory.add("lost")
        with open_memory(db_path) as fresh:
            fresh.add("Turtles swim")
            assert [record.text for record in fresh.records()] == ["Turtles swim"]
    assert faults(db_path) == []


# Another copy of SQLite


def test_a_read_by_the_stock_sqlite_in_this_process_costs_nothing_that_is_stored_later(db_path, caplog):
    with open_memory(db_path) as memory:
        memory.add("one")
        with contextlib.closing(sqlite3.connect(db_path)) as connection:
            assert connection.execute("SELECT text FROM record").fetchall() == [("one",)]
        memory.add("two")
        beside(db_path, "INSERT INTO record(text) VALUES ('three')")
        assert memory.count() == 3
    assert faults(db_path) == []
    if sys.platform != "win32":  # there locks belong to the file's handle
        assert "another copy of SQLite in this process" in caplog.text


def test_writes_by_another_process_are_seen_at_once(db_path):
    with open_memory(db_path) as memory:
        memory.add("Rockets fly", id="r")
        beside(db_path, "DELETE FROM record")
        assert (memory.get("r"), memory.count(), len(memory.search("rockets"))) == ([], 0, 0)


@pytest.mark.parametrize("statement", ["VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)", "REINDEX", "ANALYZE"])
def test_upkeep_by_another_process_disturbs_no_open_memory(db_path, statement):
    with open_memory(db_path) as memory:
        memory.add_many({"text": f"text {number}", "id": f"{number:03}"} for number in range(300))
        memory.delete([f"{number:03}" for number in range(0, 300, 2)])
        code = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(sys.argv[2])"
        assert run_python(["-c", code, str(db_path), statement]).communicate() == ("", "")
        memory.add("Rockets fly", id="r")
        assert (memory.count(), memory.search("Rockets fly", limit=1)[0].record.id) == (151, "r")
        assert memory.search("text 299", mode="semantic", limit=1)[0].record.id == "299"
    assert faults(db_path) == []


# Forks


def fork(work):
    """Run `work` in a forked child and return what it says, once it is done."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which is what is tested
        child = os.fork()
    if child == 0:
        faulthandler.register(signal.SIGALRM, chain=True)
        signal.alarm(int(LIMIT))  # rather than to hang, and the parent with it
        try:
            said = str(work())
        except BaseException as error:
            said = repr(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return said


@forks
def test_a_forked_child_is_told_to_open_the_file_itself(db_path):
    with open_memory(db_path) as memory:
        memory.add("Rockets fly")
        for call in (memory.count, memory.flush, lambda: memory.add("x"), lambda: memory.search("rockets")):
            assert "was opened before this process was forked; open it again" in fork(call)
        memory.add("Turtles swim")
        assert memory.count() == 2


@forks
def test_a_forked_child_can_open_the_file_beside_its_parent(db_path):
    def work():
        memory.close()
        with open_memory(db_path) as own:
            own.add("by the child")
            with open_memory(db_path) as second:
                return len(stores(own, second)), second.count()

    with open_memory(db_path) as memory:
        memory.add("by the parent")
        assert fork(work) == "(1, 2)"
        memory.add("by the parent again")
        assert memory.count() == 3
    assert faults(db_path) == []


@forks
def test_a_parent_that_closes_the_file_takes_nothing_from_a_child_that_has_it_open(db_path):
    memory = open_memory(db_path)
    memory.add("by the parent")
    go, done = os.pipe(), os.pipe()

    def work():
        own = open_memory(db_path)
        own.add("first")
        os.write(done[1], b".")
        os.read(go[0], 1)
        own.add("second")
        os._exit(0)  # never closed, as if killed

    def watch():
        said.append(fork(work))
        os.write(done[1], b"!")  # if the child has failed before it could say so

    said = []
    thread = threading.Thread(target=watch)
    thread.start()
    os.read(done[0], 1)
    memory.close()
    os.write(go[1], b".")
    thread.join()
    assert said == [""]
    with open_memory(db_path) as memory:
        assert [record.text for record in memory.records()] == ["by the parent", "first", "second"]
    assert faults(db_path) == []


@forks
def test_forks_amid_the_work_of_other_threads_never_hang_and_never_harm(db_path):
    stop = threading.Event()

    def write():
        while not stop.is_set():
            memory.add("a word or two")
            memory.search("word")

    def work():
        with open_memory(db_path) as own:
            own.add("by a child", scope="child")
            return own.count("child")

    with open_memory(db_path) as memory:
        threads = [threading.Thread(target=write) for _ in range(3)]
        for thread in threads:
            thread.start()
        said = [fork(work) for _ in range(10)]
        stop.set()
        for thread in threads:
            thread.join()
        assert said == [str(number) for number in range(1, 11)]
        assert memory.count("child") == 10
    assert faults(db_path) == []


@forks
def test_a_subprocess_needs_no_care(db_path):
    with open_memory(db_path) as memory:
        memory.add("Rockets fly")
        code = f"from recall_core import Memory; print(Memory.open({str(db_path)!r}, embedder=None).count())"
        assert run_python(["-c", code]).communicate() == ("1\n", "")
        assert memory.count() == 1
