"""A file that can't be used is refused in words, and is left as it was."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import sys
import tempfile
from pathlib import Path

import pytest
from store_support import faults, run_python

from recall_core import Memory
from recall_core.errors import (
    InvalidInputError,
    NotADatabaseError,
    RecallError,
    SchemaTooNewError,
    StoreUnavailableError,
)
from recall_core.settings import Settings

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither these permissions nor these files")


def open_memory(path, **settings):
    return Memory.open(path, embedder=None, settings=Settings(**settings))


def make_memory(path, *texts):
    with open_memory(path) as memory:
        for text in texts or ("Rockets fly",):
            memory.add(text)


def read_all(path):
    with open_memory(path) as memory:
        memory.search("words")
        memory.records(limit=300)


def foreign(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


# Paths


@pytest.mark.parametrize("path", ["", "a\0.db", None, 7, b"a.db", "\udc80.db", "~no such user here/a.db"], ids=repr)
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InvalidInputError):
        open_memory(path)


def test_a_folder_is_no_memory(tmp_path):
    with pytest.raises(StoreUnavailableError, match="it is a folder"):
        open_memory(tmp_path)


def test_a_missing_folder_is_made_for_its_owner_only(tmp_path):
    file = tmp_path / "new" / "er" / "memory.db"
    open_memory(file).close()
    assert file.exists()
    if os.name == "posix":
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@posix
def test_a_folder_that_can_not_be_made_is_told(tmp_path):
    (tmp_path / "leads nowhere").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreUnavailableError, match=r"leads nowhere does not exist, and can't be made"):
        open_memory(tmp_path / "leads nowhere" / "memory.db")


def test_a_file_has_no_files_in_it(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailableError, match="can't be opened"):
        open_memory(tmp_path / "file" / "memory.db")


def test_a_path_that_is_too_long_is_told(tmp_path):
    with pytest.raises(StoreUnavailableError):
        open_memory(tmp_path / ("x" * 5000))


@posix
def test_what_keeps_nothing_is_no_memory():
    with pytest.raises(StoreUnavailableError, match="it is a device or a pipe"):
        open_memory(os.devnull)


@posix
def test_a_pipe_is_no_memory(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreUnavailableError, match="it is a device or a pipe"):
        open_memory(tmp_path / "pipe")


@posix
def test_a_loop_of_links_is_told(tmp_path):
    (tmp_path / "a.db").symlink_to(tmp_path / "b.db")
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with pytest.raises(StoreUnavailableError):
        open_memory(tmp_path / "a.db")


@pytest.mark.parametrize("name", ["记忆 与 回忆.db", "with space.db", "50%?#&mode=ro.db", "file:x.db", "Ünï—🚀.db"])
def test_a_name_may_have_any_characters(tmp_path, monkeypatch, name):
    if sys.platform == "win32" and set(name) & set('?:*"<>|'):
        pytest.skip("no file may be called so on Windows")
    monkeypatch.chdir(tmp_path)
    make_memory(name)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert faults(tmp_path / name) == []


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    make_memory("~/memory.db")
    assert (tmp_path / "memory.db").exists()


# Permissions


@posix
def test_a_file_is_made_for_its_owner_alone(db_path):
    with open_memory(db_path) as memory:
        memory.add("Rockets fly")
        files = list(db_path.parent.iterdir())
        assert {file.name for file in files} == {"memory.db", "memory.db-wal", "memory.db-shm"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@posix
def test_the_permissions_of_an_existing_file_stay(db_path):
    db_path.touch()
    db_path.chmod(0o640)
    make_memory(db_path)
    assert stat.S_IMODE(db_path.stat().st_mode) == 0o640


# The tests may run as root, who may write anywhere; so somebody else tries.
AS_NOBODY = """
import os, sys
from recall_core import Memory
from recall_core.errors import StoreUnavailableError
Memory.open(":memory:", embedder=None).close()  # loads all modules while they can be read
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    Memory.open(sys.argv[1], embedder=None)
except StoreUnavailableError as error:
    sys.stdout.write(str(error))
"""


@posix
@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "message"),
    [
        (0o555, None, "no permission to write to the folder"),
        (0o644, 0o666, "no permission"),
        (0o755, 0o000, "no permission to write to the file"),
    ],
)
def test_a_place_that_may_not_be_written_to_is_told(folder_mode, file_mode, message):
    with tempfile.TemporaryDirectory() as base:  # not pytest's, which nobody else may enter
        Path(base).chmod(0o755)
        folder = Path(base) / "folder"
        folder.mkdir()
        if file_mode is not None:
            make_memory(folder / "memory.db")
            (folder / "memory.db").chmod(file_mode if os.getuid() == 0 else file_mode & 0o444)
        folder.chmod(folder_mode if os.getuid() == 0 else folder_mode & 0o555)
        out, err = run_python(["-c", AS_NOBODY, str(folder / "memory.db")]).communicate()
        folder.chmod(0o755)
    assert (message in out, err) == (True, ""), out


# Contents


@pytest.mark.parametrize(
    "content", [b"xy", b"Dear diary, ...\n" * 500, b"SQLite format 3\0", b"\0" * 8192, os.urandom(8192)]
)
def test_a_file_that_is_no_database_is_refused_and_untouched(db_path, content):
    db_path.write_bytes(content)
    with pytest.raises(NotADatabaseError, match=r"no SQLite database|another program"):
        open_memory(db_path)
    assert (db_path.read_bytes(), list(db_path.parent.iterdir())) == (content, [db_path])


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_the_database_of_another_program_is_refused_and_untouched(db_path, journal):
    foreign(db_path, f"PRAGMA journal_mode = {journal}", "CREATE TABLE record(text)")
    foreign(db_path, "INSERT INTO record VALUES ('theirs')")
    before = db_path.read_bytes()
    with pytest.raises(NotADatabaseError, match="another program"):
        open_memory(db_path)
    assert (db_path.read_bytes(), list(db_path.parent.iterdir())) == (before, [db_path])


@pytest.mark.parametrize("mark", ["PRAGMA user_version = 3", "PRAGMA application_id = 7"])
def test_an_empty_database_that_another_program_has_marked_is_refused(db_path, mark):
    foreign(db_path, mark)
    with pytest.raises(NotADatabaseError, match="another program"):
        open_memory(db_path)


def test_an_empty_file_becomes_a_memory(db_path):
    db_path.touch()
    make_memory(db_path)
    assert faults(db_path) == []


@pytest.mark.parametrize("version", [99, 2**31 - 1, -1, 0])
def test_a_file_of_a_newer_version_is_refused_and_untouched(db_path, version):
    make_memory(db_path)
    foreign(db_path, f"PRAGMA user_version = {version}")
    before = db_path.read_bytes()
    with pytest.raises(SchemaTooNewError, match=f"schema version {version}, .*knows up to"):
        open_memory(db_path)
    assert db_path.read_bytes() == before


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.99])
def test_a_file_that_was_cut_off_is_told(db_path, share):
    make_memory(db_path, *(f"text {number} " + "words " * 100 for number in range(300)))
    content = db_path.read_bytes()
    db_path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises((StoreUnavailableError, NotADatabaseError), match=r"damaged|no SQLite database"):
        read_all(db_path)


def test_a_file_with_bytes_overwritten_raises_nothing_but_our_errors(db_path):
    make_memory(db_path, *(f"text {number} " + "words " * 100 for number in range(100)))
    content = db_path.read_bytes()
    for start in range(0, len(content), 8192):
        db_path.write_bytes(content[:start] + b"\xa5" * 512 + content[start + 512 :])
        with contextlib.suppress(RecallError), open_memory(db_path) as memory:
            memory.search("words text", limit=100)
            memory.records(limit=100)
            memory.add("one more")
            memory.delete([record.id for record in memory.records(limit=5)])
