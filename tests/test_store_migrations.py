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

import apsw
import pytest
from data.make_schema import DIMENSIONS, describe
from store_support import faults, run_python, use_small_index, vector_faults
from support import FixedClock, HashedEmbedder

from recall_core import Memory
from recall_core.errors import SchemaTooNewError
from recall_core.store import migrations
from recall_core.store.connection import Patience, connect
from recall_core.store.migrations import MIGRATIONS, SCHEMA_VERSION, Migration, migrate

DATA = Path(__file__).parent / "data"
FROZEN = sorted(DATA.glob("schema-*.db"))

# Appending is all that may ever be done to this list.
NAMES = ["first schema", "change log and codes", "leases", "trash and links"]


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

def upgrade_and_die(connection):
    steps[1].apply(connection)
    die(connection)

steps = migrations.MIGRATIONS
migrations.MIGRATIONS = {
    "first": (migrations.Migration("deadly", make_and_die),),
    "second": (steps[0], migrations.Migration("deadly", upgrade_and_die)),
    "upgrade": (*steps, migrations.Migration("deadly", die)),
}[sys.argv[2]]
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
                connection = connect(path, "normal", Patience(30.0))
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
    return copy, {"links": [], "deleted": []} | json.loads(request.param.with_suffix(".json").read_text("utf-8"))


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


# From the first version to the second


@pytest.fixture
def first(tmp_path):
    """Return a copy of the frozen file of version 1."""
    copy = tmp_path / "first.db"
    shutil.copyfile(DATA / "schema-1.db", copy)
    return copy


VEC0_TABLE = """
CREATE TABLE "vector_{space}_info" (key text primary key, value any);
CREATE TABLE "vector_{space}_chunks"(chunk_id INTEGER PRIMARY KEY AUTOINCREMENT, size INTEGER NOT NULL,
  validity BLOB NOT NULL, rowids BLOB NOT NULL);
CREATE TABLE "vector_{space}_rowids"(rowid INTEGER PRIMARY KEY AUTOINCREMENT, id, chunk_id INTEGER,
  chunk_offset INTEGER);
CREATE TABLE "vector_{space}_vector_chunks00"(rowid PRIMARY KEY, vectors BLOB NOT NULL);
INSERT INTO "vector_{space}_info" VALUES ('CREATE_VERSION', 'v0.1.9');
INSERT INTO "vector_{space}_chunks" VALUES (1, 256, zeroblob(32), zeroblob(2048));
INSERT INTO "vector_{space}_rowids"(chunk_id, chunk_offset) SELECT 1, key FROM chunk;
INSERT INTO "vector_{space}_vector_chunks00" VALUES (1, zeroblob(400000));
DELETE FROM vector_change WHERE space_id = {space};
PRAGMA writable_schema = ON;
INSERT INTO sqlite_schema(type, name, tbl_name, rootpage, sql) VALUES ('table', 'vector_{space}', 'vector_{space}', 0,
  'CREATE VIRTUAL TABLE vector_{space} USING vec0(chunk_key INTEGER PRIMARY KEY, vector float[32], chunk_size=256)');
PRAGMA writable_schema = RESET;
"""


@pytest.fixture
def with_vec0(first):
    """Return a file of version 1 with the tables of sqlite-vec for two spaces, as they were without the extension."""
    with closing(sqlite3.connect(first)) as connection:
        for space in (1, 2):
            connection.executescript(VEC0_TABLE.format(space=space))
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'vector_[12]*'")
    assert (tables, faults(first)) == (10, [])
    return first


def test_the_second_version_drops_the_tables_of_sqlite_vec(with_vec0, db_path):
    open_memory(with_vec0).close()
    open_memory(db_path).close()
    assert (look(with_vec0), faults(with_vec0)) == (look(db_path), [])
    with closing(sqlite3.connect(with_vec0)) as connection:
        counters = [name for (name,) in connection.execute("SELECT name FROM sqlite_sequence")]
        assert [name for name in counters if name.startswith("vector_")] == []
        ((loose,),) = connection.execute(
            "SELECT count(*) FROM embedding WHERE (space_id, chunk_key) NOT IN (SELECT * FROM vector_change)"
        )
        assert loose == 0


def test_the_pages_of_dropped_tables_are_used_again(with_vec0):
    with open_memory(with_vec0) as memory:
        pages, free = count_pages(memory)
        assert free > 0.9 * 2 * 400_000 // 8192  # the tables of later versions have taken some
        memory.add_many({"text": f"filler {number} {'x' * 900}"} for number in range(200))
        assert count_pages(memory)[0] == pages


def count_pages(memory):
    with memory._engine.store.database.read() as connection:
        return connection.pragma("page_count"), connection.pragma("freelist_count")


def test_the_table_of_a_space_that_is_gone_is_dropped_too(with_vec0):
    with closing(sqlite3.connect(with_vec0)) as connection, connection:
        connection.execute("DELETE FROM embedding WHERE space_id = 2")
        connection.execute("DELETE FROM space WHERE id = 2")
    open_memory(with_vec0).close()
    assert [name for name, _ in look(with_vec0)[1] if name.startswith("vector_")] == ["vector_change"]
    assert faults(with_vec0) == []


def test_tables_of_another_program_stay(with_vec0):
    with closing(sqlite3.connect(with_vec0)) as connection, connection:
        connection.execute("CREATE TABLE vector_notes(x)")
        connection.execute("CREATE TABLE vector_10_notes(x)")
    open_memory(with_vec0).close()
    names = [name for name, _ in look(with_vec0)[1] if name.startswith("vector_")]
    assert names == ["vector_10_notes", "vector_change", "vector_notes"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_a_process_killed_during_the_second_step_leaves_the_tables_as_they_were(with_vec0):
    before = look(with_vec0)
    worker = run_python(["-c", KILLED_IN_THE_MIDST, str(with_vec0), "second"])
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    assert (look(with_vec0), faults(with_vec0)) == (before, [])
    open_memory(with_vec0).close()
    assert faults(with_vec0) == []


def test_who_had_the_file_open_goes_on_reading_it(with_vec0):
    other = connect(str(with_vec0), "normal", Patience(30.0))
    before = other.execute("SELECT id, text FROM record ORDER BY key").fetchall()
    assert before
    with open_memory(with_vec0) as memory:
        assert other.execute("SELECT id, text FROM record ORDER BY key").fetchall() == before
        assert other.execute("SELECT name FROM sqlite_schema WHERE sql LIKE '%vec0%'").fetchall() == []
        memory.add("Later", id="later")
        assert other.execute("SELECT count(*) FROM record").fetchall() == [(len(before) + 1,)]
        assert other.execute("SELECT count(*) FROM change").fetchall()[0][0] > 0
    other.close()


def test_a_real_table_of_sqlite_vec_is_dropped_too(first):
    sqlite_vec = pytest.importorskip("sqlite_vec")
    connection = apsw.Connection(str(first))
    try:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
    except (apsw.Error, AttributeError):
        connection.close()
        pytest.skip("extensions can't be loaded here")
    connection.execute("CREATE VIRTUAL TABLE vector_1 USING vec0(chunk_key INTEGER PRIMARY KEY, vector float[32])")
    connection.execute("INSERT INTO vector_1 SELECT chunk_key, vector FROM embedding WHERE space_id = 1")
    connection.close()
    open_memory(first).close()
    assert [name for name, _ in look(first)[1] if name.startswith("vector_")] == ["vector_change"]
    assert faults(first) == []


def test_a_large_file_of_the_first_version_gets_codes_when_it_is_next_written_to(with_vec0, monkeypatch):
    use_small_index(monkeypatch, index_from=10, most_chunks=5)
    with open_memory(with_vec0) as memory:
        assert (
            memory.search("清理 /var/log", mode="semantic", fusion="plain")[0].record.text == "清理 /var/log 以后好了"
        )
        assert memory.stats().vector_index == "exact"
        memory.add("新的记忆 about rockets", id="new")
        assert memory.stats().vector_index == "codes"
        assert (
            memory.search("清理 /var/log", mode="semantic", fusion="plain")[0].record.text == "清理 /var/log 以后好了"
        )
        assert (memory.flush(), vector_faults(memory)) == (0, [])
    assert faults(with_vec0) == []


# From the second version to the third


@pytest.fixture
def second(tmp_path):
    """Return a copy of the frozen file of version 2 in which all chunks wait for a vector anew."""
    copy = tmp_path / "second.db"
    shutil.copyfile(DATA / "schema-2.db", copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("DELETE FROM embedding WHERE space_id = 1")
    return copy


def test_what_waited_for_a_vector_in_the_second_version_gets_one(second):
    with open_memory(second) as memory:
        assert (memory.flush(), vector_faults(memory)) == (0, [])
    assert faults(second) == []


def test_all_chunks_of_earlier_versions_are_embedded_and_nobody_has_claimed_one(second):
    Memory.open(second, embedder=None).close()
    with closing(sqlite3.connect(second)) as connection:
        assert connection.execute("SELECT DISTINCT embeds FROM chunk").fetchall() == [(1,)]
        assert connection.execute("SELECT DISTINCT owner, leased_until FROM pending").fetchall() == [(None, 0)]


# From the third version to the fourth


def test_what_a_file_of_the_fourth_version_has_deleted_can_be_restored(tmp_path):
    path = tmp_path / "fourth.db"
    shutil.copyfile(DATA / "schema-4.db", path)
    clock = FixedClock()
    clock.seconds = json.loads((DATA / "schema-4.json").read_text("utf-8"))["now"]
    with open_memory(path, clock=clock) as memory:
        assert [record.text for record in memory.restore("gone")] == ["gone"]
        assert [(link.source, link.target) for link in memory.links("gone")] == [("gone", "deploy")]
        found = memory.search("", mode="semantic", fusion="plain", vector=[0.5, 1.0, 0.0], space="host")
        assert (found[0].record.id, memory.flush(), vector_faults(memory)) == ("gone", 0, [])
    assert faults(path) == []


def test_the_words_that_earlier_versions_deleted_are_cleared_with_the_next_ones(tmp_path):
    path = tmp_path / "third.db"
    shutil.copyfile(DATA / "schema-3.db", path)
    assert b"gone" in path.read_bytes()
    with open_memory(path) as memory:
        assert (memory.deleted(), memory._engine.store.remains.count()) == ([], 1)
        memory.delete("deploy", hard=True)
    assert b"gone" not in path.read_bytes()


def test_a_new_file_has_nothing_to_clear(old):
    with open_memory(old) as memory:
        assert memory._engine.store.remains.count() == 0
