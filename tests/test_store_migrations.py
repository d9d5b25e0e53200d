"""The schema changes step by step, each as a whole, and what older versions wrote is still read."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from data.make_schema import DIMENSIONS, describe
from store_support import faults, run_python, vector_faults
from support import FixedClock, HashedEmbedder

from recall_core import Memory
from recall_core.errors import SchemaTooNewError
from recall_core.store import migrations
from recall_core.store.connection import connect
from recall_core.store.migrations import MIGRATIONS, SCHEMA_VERSION, Migration, migrate

DATA = Path(__file__).parent / "data"
FROZEN = sorted(DATA.glob("schema-*.db"))

# Appending is all that may ever be done to this list.
NAMES = ["first schema"]


def open_memory(path, **arguments):
    return Memory.open(path, embedder=HashedEmbedder(DIMENSIONS), **arguments)


def look(path):
    """Return a file's schema version and its tables, indexes and triggers."""
    with closing(sqlite3.connect(path)) as connection:
        ((version,),) = connection.execute("PRAGMA user_version")
        shapes = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
        ).fetchall()
    return version, shapes


@pytest.fixture
def append(monkeypatch):
    """Return a function that adds a step to the migrations, as a later version would."""

    def add(apply):
        monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, Migration("of a later version", apply)))
        monkeypatch.setattr(migrations, "SCHEMA_VERSION", SCHEMA_VERSION + 1)

    return add


@pytest.fixture
def old(db_path):
    """Return a file of the current version with a record in it."""
    with open_memory(db_path) as memory:
        memory.add("Rockets fly", id="r")
    return db_path


# Steps


def test_steps_are_only_ever_appended():
    assert [migration.name for migration in MIGRATIONS] == NAMES
    assert len(NAMES) == SCHEMA_VERSION


def test_a_fresh_file_has_the_newest_version(old):
    assert look(old)[0] == SCHEMA_VERSION
    with open_memory(old) as memory:
        assert memory.stats().schema_version == SCHEMA_VERSION


def test_a_later_step_is_taken_when_the_file_is_opened(old, append):
    append(lambda connection: connection.execute("CREATE TABLE later(x)"))
    with open_memory(old) as memory:
        assert memory.count() == 1
    version, shapes = look(old)
    assert (version, ("later", "CREATE TABLE later(x)") in shapes) == (SCHEMA_VERSION + 1, True)


def test_a_file_that_a_later_version_has_opened_is_refused_by_this_one(old, append, monkeypatch):
    append(lambda connection: connection.execute("CREATE TABLE later(x)"))
    open_memory(old).close()
    monkeypatch.undo()
    with pytest.raises(SchemaTooNewError, match=f"schema version {SCHEMA_VERSION + 1}"):
        open_memory(old)


def test_a_step_that_fails_leaves_the_file_as_it_was(old, append):
    before = look(old)

    def fail(connection):
        connection.execute("CREATE TABLE later(x); DELETE FROM record; DROP TABLE pending")
        raise KeyError

    append(fail)
    with pytest.raises(KeyError):
        open_memory(old)
    assert (look(old), faults(old)) == (before, [])


KILLED_IN_THE_MIDST = """
import os, signal, sys
from recall_core import Memory
from recall_core.store import migrations

def die(connection):
    connection.execute("CREATE TABLE later(x); DELETE FROM record; DROP TABLE pending")
    os.kill(os.getpid(), signal.SIGKILL)

def make_and_die(connection):
    steps[0].apply(connection)
    die(connection)

first = sys.argv[2] == "first"
deadly = migrations.Migration("deadly", make_and_die if first else die)
steps = migrations.MIGRATIONS
migrations.MIGRATIONS = (deadly,) if first else (*steps, deadly)
migrations.SCHEMA_VERSION = len(migrations.MIGRATIONS)
Memory.open(sys.argv[1], embedder=None)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_a_process_killed_during_a_step_leaves_the_file_as_it_was(old):
    before = look(old)
    worker = run_python(["-c", KILLED_IN_THE_MIDST, str(old), "upgrade"])
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    assert (look(old), faults(old)) == (before, [])
    with open_memory(old) as memory:
        assert memory.get("r")[0].text == "Rockets fly"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_a_process_killed_while_it_makes_a_file_leaves_one_that_can_be_opened(db_path):
    worker = run_python(["-c", KILLED_IN_THE_MIDST, str(db_path), "first"])
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    with open_memory(db_path) as memory:
        memory.add("Rockets fly")
    assert (look(db_path)[0], faults(db_path)) == (SCHEMA_VERSION, [])


def test_who_creates_a_file_together_creates_it_once(tmp_path, monkeypatch):
    made = []
    (first, *rest) = MIGRATIONS

    def count(connection):
        made.append(1)
        first.apply(connection)

    monkeypatch.setattr(migrations, "MIGRATIONS", (Migration(first.name, count), *rest))
    rounds, together = 15, 6
    for number in range(rounds):
        path, seen, start = str(tmp_path / f"{number}.db"), [], threading.Barrier(together)

        def work(path=path, seen=seen, start=start):
            start.wait()
            try:
                connection = connect(path, "normal", 30.0)
                migrate(connection, path)
                connection.close()
            except Exception as error:
                seen.append(error)

        threads = [threading.Thread(target=work) for _ in range(together)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (seen, look(path)[0]) == ([], SCHEMA_VERSION)
    assert len(made) == rounds


# Frozen files


@pytest.fixture(params=FROZEN, ids=lambda path: path.stem)
def frozen(request, tmp_path):
    """Return a copy of a file that an earlier version wrote, and what it answered then."""
    copy = tmp_path / request.param.name
    shutil.copyfile(request.param, copy)
    return copy, json.loads(request.param.with_suffix(".json").read_text("utf-8"))


def test_there_is_a_frozen_file_of_each_version():
    assert [path.stem for path in FROZEN] == [f"schema-{number + 1}" for number in range(SCHEMA_VERSION)]


def test_a_file_of_an_earlier_version_answers_as_it_did(frozen):
    path, answers = frozen
    clock = FixedClock()
    clock.seconds = answers.pop("now")
    with open_memory(path, clock=clock) as memory:
        assert json.loads(json.dumps(describe(memory))) == answers
        assert (memory.flush(), vector_faults(memory)) == (0, [])
    assert faults(path) == []


def test_a_file_of_an_earlier_version_becomes_one_of_this(frozen, db_path):
    path, _ = frozen
    open_memory(path).close()
    open_memory(db_path).close()
    assert look(path) == look(db_path)


def test_a_file_of_an_earlier_version_can_be_written_to(frozen):
    path, _ = frozen
    with open_memory(path) as memory:
        memory.add("新的记忆 about rockets", id="new", scope="user/42")
        memory.update("whale", text="蓝鲸计划延期")
        memory.delete("deploy")
        assert memory.search("rockets", scope="user/42", mode="keyword")[0].record.id == "new"
        assert (memory.flush(), vector_faults(memory)) == (0, [])
    assert faults(path) == []
