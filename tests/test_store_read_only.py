"""A file that may be read but not written to, as on a disc or of somebody else, is read; only what writes fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from store_support import run_python

from recall_core import Memory
from recall_core.store.filesystem import find_obstacle

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions are others elsewhere")

# The tests may run as root, who may write anywhere; so somebody else tries, once all modules are loaded.
AS_NOBODY = """
import io, json, os, sys
from recall_core import Memory
from recall_core.errors import StoreError, StoreUnavailableError
from recall_core.integrity import examine_file

def look(memory):
    lines = io.BytesIO()
    memory.export(lines)
    return {
        "found": [hit.record.text for hit in memory.search("Rockets fly")],
        "listed": [record.text for record in memory.records()],
        "exported": lines.getvalue().count(b"record"),
        "notes": list(memory.stats().notes),
        "problems": [one.problem for one in memory.check().problems if "wait for a vector" not in one.problem],
    }

def refused(call):
    try:
        call()
    except StoreUnavailableError as error:
        return str(error)

with Memory.open(":memory:", embedder=None) as memory:
    memory.add("Rockets fly")
    look(memory)
path = sys.argv[1]
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""
READ = """
try:
    with Memory.open(path, embedder=None) as memory:
        told = look(memory)
        told["refused"] = [
            refused(lambda: memory.add("Foxes run")), refused(lambda: memory.delete("r", hard=True)),
            refused(memory.vacuum),
        ]
    told["damages"] = len(examine_file(path, 1.0, lambda: 0)[0])
except StoreError as error:
    told = {"error": str(error)}
sys.stdout.write(json.dumps(told))
"""
OVERTAKEN = """
with Memory.open(path, embedder=None) as memory:
    try:
        with memory._engine.store.database.read():
            print("reading", flush=True)
            sys.stdin.readline()
    except StoreError as error:
        print(error, flush=True)
    print(memory.count())
"""
FOLLOW = """
with Memory.open(path, embedder=None) as memory:
    for line in sys.stdin:
        print(json.dumps(look(memory)["listed"]), flush=True)
"""


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory() as base:  # not pytest's, which nobody else may enter
        Path(base).chmod(0o755)
        folder = Path(base) / "folder"
        folder.mkdir(mode=0o755)
        yield folder
        folder.chmod(0o755)


@pytest.fixture
def file(folder):
    path = folder / "memory.db"
    with Memory.open(path, embedder=None) as memory:
        memory.add("Rockets fly", id="r")
    path.chmod(0o444)
    return path


def read(path):
    out, err = run_python(["-c", AS_NOBODY + READ, str(path)]).communicate()
    assert err == ""
    return json.loads(out)


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "why"),
    [(0o444, 0o755, "no permission to write to the file"), (0o666, 0o555, "no permission to write to the folder")],
)
def test_a_file_that_may_not_be_written_to_is_read_and_left_as_it_is(file, file_mode, folder_mode, why):
    before = file.read_bytes()
    file.chmod(file_mode)
    file.parent.chmod(folder_mode)
    told = read(file)
    assert (told["found"], told["listed"], told["exported"]) == (["Rockets fly"], ["Rockets fly"], 1)
    assert (told["problems"], told["damages"]) == ([], 0)
    assert len(told["notes"]) == 1
    assert told["notes"][0].startswith(f"the file can only be read: {why}")
    assert [f"can't be written to: {why}" in message for message in told["refused"]] == [True] * 3
    assert (file.read_bytes(), list(file.parent.iterdir())) == (before, [file])


def test_what_others_have_just_written_is_read(file):
    file.chmod(0o644)
    with Memory.open(file, embedder=None) as memory:
        memory.add("Foxes run", id="s")
        if os.getuid() != 0:
            for path in file.parent.iterdir():
                path.chmod(0o444)
        assert read(file)["listed"] == ["Rockets fly", "Foxes run"]


def test_what_others_write_while_it_is_open_is_read(file):
    with run_python(["-c", AS_NOBODY + FOLLOW, str(file)], stdin=subprocess.PIPE) as process:

        def listed():
            process.stdin.write("look\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        assert listed() == ["Rockets fly"]
        file.chmod(0o644)
        with Memory.open(file, embedder=None) as memory:
            memory.add("Foxes run", id="s")
            assert listed() == ["Rockets fly", "Foxes run"]
            memory.delete("r")
        assert listed() == ["Foxes run"]
        process.stdin.close()
        assert process.stderr.read() == ""


def test_who_reads_while_others_write_to_the_file_itself_is_told(file):
    with run_python(["-c", AS_NOBODY + OVERTAKEN, str(file)], stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == "reading\n"
        file.chmod(0o644)
        with Memory.open(file, embedder=None) as memory:
            memory.add("Foxes run")
        out, err = process.communicate("\n")
    assert ("was written to while it was read; try again\n2\n" in out, err) == (True, "")


def test_a_log_that_can_not_be_read_is_told(file):
    file.chmod(0o644)
    with Memory.open(file, embedder=None) as memory:
        memory.add("Foxes run", id="s")
        copy = file.with_name("copy.db")
        shutil.copy(file, copy)
        shutil.copy(f"{file}-wal", f"{copy}-wal")
    file.parent.chmod(0o555)
    copy.chmod(0o444)
    error = read(copy)["error"]
    assert "it has a log beside it" in error
    assert "copy the file and its log to a folder of your own" in error


def test_a_file_of_an_older_version_says_that_it_has_to_be_upgraded(folder):
    path = folder / "memory.db"
    shutil.copy(Path(__file__).parent / "data" / "schema-3.db", path)
    path.chmod(0o444)
    error = read(path)["error"]
    assert "it has schema version 3, and has to be upgraded to" in error
    assert "copy it and open the copy" in error


def test_a_read_only_file_system_is_named(file, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert find_obstacle(str(file)) == "it lies on a read-only file system"
