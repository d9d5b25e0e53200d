"""A backup is a whole, verified copy as of one moment, or nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sqlite3
import subprocess
import sys

import pytest
from cli_support import run, run_json
from maintenance_support import fill, found
from store_support import beside, embedder, faults, run_python
from support import LIMIT, wait_until

from recall_core import AsyncMemory, Memory
from recall_core.errors import InvalidInputError, StoreUnavailableError


@pytest.fixture
def path(db_path):
    fill(db_path, 300)
    return db_path


@pytest.fixture
def copy(path):
    return path.with_name("copy.db")


def open_memory(path):
    return Memory.open(path, embedder=embedder())


def names(path):
    return sorted(file.name for file in path.parent.iterdir())


def test_a_backup_holds_all_and_is_its_owners(path, copy):
    told = []
    with open_memory(path) as memory:
        memory.add_words("灰度发布平台")
        done = memory.backup(copy, progress=lambda *now: told.append(now))
        expected = memory.records(limit=1000), found(memory), memory.words()
    assert (done.path, done.records, done.chunks, done.vectors) == (str(copy), 300, 300, 300)
    assert done.file_bytes == copy.stat().st_size
    assert told[-1][0] == told[-1][1] == done.file_bytes // 8192
    assert sys.platform == "win32" or copy.stat().st_mode & 0o777 == 0o600
    assert names(path) == ["copy.db", "memory.db"]
    assert faults(copy) == []
    with open_memory(copy) as memory:
        assert (memory.records(limit=1000), found(memory), memory.words()) == expected
        memory.add("the copy lives")


def test_a_memory_in_ram_can_be_backed_up(tmp_path):
    with Memory.open(":memory:", embedder=embedder()) as memory:
        memory.add("a note", id="a")
        assert memory.backup(tmp_path / "copy.db").records == 1
    with open_memory(tmp_path / "copy.db") as memory:
        assert memory.search("note")[0].record.id == "a"


def test_what_is_there_is_only_overwritten_by_force(path, copy):
    copy.write_text("precious")
    with open_memory(path) as memory:
        with pytest.raises(InvalidInputError, match=r"exists; give another name, or overwrite it with --force"):
            memory.backup(copy)
        assert copy.read_text() == "precious"
        memory.backup(copy, force=True)
    assert names(path) == ["copy.db", "memory.db"]
    assert faults(copy) == []


def test_a_file_that_appears_meanwhile_is_not_overwritten(path, copy):
    with open_memory(path) as memory:
        with pytest.raises(InvalidInputError, match="meanwhile"):
            memory.backup(copy, progress=lambda *_: copy.write_text("precious"))
        assert copy.read_text() == "precious"
    assert names(path) == ["copy.db", "memory.db"]


def test_the_memory_itself_is_no_target_by_any_name(path, copy):
    copy.symlink_to(path)
    with open_memory(path) as memory:
        for target in (path, copy):
            with pytest.raises(InvalidInputError, match="is the memory itself"):
                memory.backup(target, force=True)


def test_a_memory_that_is_in_use_is_no_target(path, copy):
    with open_memory(copy) as other, open_memory(path) as memory:
        other.add("precious")
        with pytest.raises(InvalidInputError, match="in use"):
            memory.backup(copy, force=True)
        assert other.count() == 1


@pytest.mark.parametrize(
    "target", [":memory:", "", "-", 5, "{folder}", "{folder}/missing/copy.db", "{folder}/memory.db/x"]
)
def test_what_is_no_path_of_a_new_file_is_refused(path, target):
    target = target.format(folder=path.parent) if isinstance(target, str) else target
    with open_memory(path) as memory, pytest.raises(InvalidInputError):
        memory.backup(target)


def test_a_damaged_memory_is_not_passed_on(path, copy):
    beside(path, "DELETE FROM chunk_fts_docsize WHERE id < 5", "UPDATE chunk_fts_data SET block = x'00' WHERE id = 1")
    with Memory.open(path, embedder=None) as memory, pytest.raises(StoreUnavailableError, match="recall doctor"):
        memory.backup(copy)
    assert names(path) == ["memory.db"]


def test_whatever_is_raised_leaves_nothing(path, copy):
    def stop(done, total):
        raise KeyboardInterrupt

    copy.write_text("precious")
    with open_memory(path) as memory:
        for target in (copy, path.with_name("other.db")):
            with pytest.raises(KeyboardInterrupt):
                memory.backup(target, force=True, progress=stop)
        memory.add("the memory lives")
    assert copy.read_text() == "precious"
    assert names(path) == ["copy.db", "memory.db"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows tells no process from a dead one")
def test_what_a_killed_backup_left_is_cleared_up_by_the_next_one(path, copy):
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    host = socket.gethostname()
    left = [f".copy.db.{host}.{dead.pid}.0a1b2c3d.partial", f".copy.db.{host}.{dead.pid}.0a1b2c3d.partial-wal"]
    others = [f".copy.db.{host}.{os.getpid()}.0a1b2c3d.partial", f".copy.db.elsewhere.{dead.pid}.0a1b2c3d.partial"]
    others += [f".other.db.{host}.{dead.pid}.0a1b2c3d.partial", ".copy.db.partial"]
    for name in (*left, *others):
        path.with_name(name).touch()
    with open_memory(path) as memory:
        memory.backup(copy)
    assert names(path) == sorted(["copy.db", "memory.db", *others])


def test_a_backup_is_as_of_one_moment_while_another_process_writes(path):
    """Each of its transactions adds a pair; no backup may have half of one."""
    code = """
import sys
from recall_core import Memory
from pathlib import Path
with Memory.open(sys.argv[1], embedder=None) as memory:
    number = 0
    while not Path(sys.argv[1]).with_name("stop").exists():
        memory.add_many({"text": f"pair {number} {part}", "scope": "pairs"} for part in range(2))
        number += 1
        if number == 3:
            print("writing", flush=True)
"""
    worker = run_python(["-c", code, str(path)])
    assert worker.stdout.readline() == "writing\n"
    counts = []
    with open_memory(path) as memory:
        for number in range(5):
            copy = path.with_name(f"copy{number}.db")
            held = memory.backup(copy)
            with contextlib.closing(sqlite3.connect(copy)) as connection:
                ((pairs,),) = connection.execute("SELECT count(*) FROM record WHERE scope = 'pairs'")
            assert (pairs % 2, pairs + 300) == (0, held.records)
            assert faults(copy) == []
            counts.append(pairs)
            wait_until(lambda held=held: memory.count() > held.records)
    path.with_name("stop").touch()
    assert worker.communicate(timeout=LIMIT) == ("", "")
    assert counts[0] < counts[-1]


def test_a_backup_can_be_awaited(path, copy):
    async def work():
        async with await AsyncMemory.open(path, embedder=None) as memory:
            assert (await memory.backup(copy)).records == 300
            assert (await memory.vacuum()).settled

    asyncio.run(work())


def test_the_command_says_what_it_did(path, copy):
    result = run(path, "backup", str(copy))
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{copy}: 300 memories, 300 vectors, ")
    assert run(path, "backup", str(copy)).exit_code == 2
    assert run_json(path, "backup", str(copy), "--force")["records"] == 300
    assert run_json(path, "vacuum")["settled"]
    assert " bytes before, " in run(path, "vacuum").stdout
