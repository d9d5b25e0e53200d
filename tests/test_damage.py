"""Damage to what nothing can make again is named with the records it concerns, and never touched; files that can't be
opened are examined as far as possible.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sqlite3
from pathlib import Path

import apsw
import pytest
from cli_support import run
from damage_support import embedder, examine, fill, harm, now, open_memory, read, run_sql, truth
from support import ROOT

import recall_core.cli.doctor as doctor_command
from recall_core import Memory, errors
from recall_core.damage import KINDS
from recall_core.integrity import examine_file, repair_file

DATA = Path(__file__).parent / "data"


@pytest.fixture(autouse=True)
def _with_model(monkeypatch):
    monkeypatch.setattr(doctor_command, "resolve_model", lambda model: embedder())


@pytest.fixture
def path(db_path):
    fill(db_path, 60)
    return db_path


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def assert_left_alone(path, sql):
    """See that a repair neither changes the rows of `sql` nor says that it did."""
    before = read(path, sql)
    with open_memory(path) as memory:
        repaired = memory.repair()
    assert read(path, sql) == before
    assert repaired.done == ()
    return {damage.kind: damage for damage in repaired.left}


# Values

TEXTS = "SELECT id, CAST(text AS BLOB), typeof(text), indexed FROM record"
UNCHECKED = "PRAGMA ignore_check_constraints = ON"


@pytest.mark.parametrize(
    ("assignment", "column"),
    [
        ("metadata = '{broken'", "metadata"),
        ("metadata = '[1]'", "metadata"),
        ("payload = 'nan'", "payload"),
        ("tags = '[1]'", "tags"),
        ("tags = '{}'", "tags"),
        ("created_at = 1e300", "created_at"),
        ("updated_at = 'yesterday'", "updated_at"),
        ("expires_at = 999999999999999999", "expires_at"),
        ("importance = 7", "importance"),
        ("scope = x'00'", "scope"),
        ("kind = ''", "kind"),
        ("text = x'61'", "text"),
        ("text = CAST(x'61ff62' AS TEXT)", "text"),
    ],
)
def test_records_with_broken_values_are_named_and_left_alone(path, assignment, column):
    statement = f"UPDATE record SET {assignment}, indexed = indexed + 1 WHERE id IN ('r007', 'r023')"
    harm(path, UNCHECKED, "@drop 'record'", statement, "@restore")
    damage = examine(path)["record-broken"]
    assert (damage.count, damage.records, damage.repair) == (2, ("r007", "r023"), None)
    assert column in damage.problem
    left = assert_left_alone(path, "SELECT *, CAST(text AS BLOB) FROM record" if column != "text" else TEXTS)
    assert left["record-broken"] == damage


@pytest.mark.parametrize(
    "vector",
    ["x'00'", "zeroblob(64)", "zeroblob(68)", "x'0000c07f' || zeroblob(60)", "x'0000807f' || zeroblob(60)", "'text'"],
    ids=["short", "zeros", "long", "not a number", "infinite", "text"],
)
def test_records_with_damaged_vectors_are_named_and_left_alone(path, vector):
    sql = f"""
    UPDATE embedding SET vector = CAST({vector} AS BLOB) WHERE space_id = (SELECT id FROM space WHERE name = 'memory')
    AND chunk_key IN (SELECT chunk.key FROM chunk JOIN record ON record.key = record_key
      WHERE record.id IN ('r010', 'r013') AND chunk.place = 0)
    """
    run_sql(path, sql)
    damage = examine(path)["vector-broken"]
    assert (damage.count, damage.records, damage.repair) == (2, ("r010", "r013"), None)
    assert assert_left_alone(path, "SELECT * FROM embedding")["vector-broken"] == damage


def test_vectors_of_a_space_that_is_gone_are_named_and_left_alone(path):
    harm(path, "@drop 'space'", "DELETE FROM space WHERE name = 'host'", "@restore")
    before = read(path, "SELECT * FROM embedding")
    with open_memory(path) as memory:
        found = {damage.kind: damage for damage in memory.repair().left}
    assert read(path, "SELECT * FROM embedding") == before
    assert set(found["vector-spaceless"].records) == {"r001", "r011", "r021", "r031", "r041", "r051"}


def test_vectors_that_callers_brought_are_kept_when_their_chunks_are_gone(path):
    sql = "DELETE FROM chunk WHERE key IN (SELECT chunk_key FROM embedding WHERE given)"
    harm(path, "@drop 'chunk'", sql, "@restore")
    given = "SELECT * FROM embedding WHERE given"
    before = read(path, given)
    with open_memory(path) as memory:
        left = memory.repair().left
    assert [(damage.kind, damage.count) for damage in left] == [("vector-stray", 12)]
    assert read(path, given) == before


def test_chunks_of_a_record_that_is_gone_stay_if_a_caller_brought_their_vector(path):
    harm(path, "@drop 'record'", "DELETE FROM record WHERE id IN ('r010', 'r012')", "@restore")
    given = "SELECT * FROM embedding WHERE given"
    before = read(path, given)
    with open_memory(path) as memory:
        left = memory.repair().left
    assert [(damage.kind, damage.count) for damage in left] == [("vector-stray", 1)]
    assert read(path, given) == before


def test_links_and_trash_that_belong_to_nothing_are_named_and_left_alone(path):
    run_sql(
        path,
        "INSERT INTO link(from_key, to_key, kind, created_at) VALUES (1, 777, 'cause', 5)",
        "INSERT INTO trash_vector(trash_key, space_id, start, vector) VALUES (99, 1, 0, zeroblob(64))",
    )
    found = assert_left_alone(path, "SELECT * FROM link")
    assert found["link-stray"].records == ("r000",)
    assert found["trash-stray"].count == 1


def test_deleted_records_that_cannot_be_restored_are_named_and_left_alone(path):
    with open_memory(path) as memory:
        memory.delete(["r010", "r012", "r014"])
    ids = "SELECT key FROM trash WHERE id = '{}'"
    harm(
        path,
        UNCHECKED,
        "UPDATE trash SET metadata = '{broken' WHERE id = 'r012'",
        f"UPDATE trash_vector SET vector = x'00' WHERE trash_key = ({ids.format('r010')})",
    )
    damages = [damage for damage in examine_file(str(path), 5, now)[0] if damage.kind == "trash-broken"]
    assert [damage.records for damage in damages] == [("r012",), ("r010",)]
    assert "trash-broken" in assert_left_alone(path, "SELECT * FROM trash")


def test_words_that_are_none_are_named(path):
    run_sql(path, "INSERT INTO dictionary VALUES ('  ')")
    assert "dictionary-broken" in assert_left_alone(path, "SELECT * FROM dictionary")


# Pages


def pages_of(path, name):
    """Return the numbers of the leaf pages of a table or index."""
    connection = apsw.Connection(str(path))
    rows = connection.execute("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY 1", (name,))
    found = [number for (number,) in rows]
    connection.close()
    return found


def overwrite(path, page, data=b"\xa5" * 8192):
    with Path(path).open("r+b") as file:
        file.seek((page - 1) * 8192)
        file.write(data)


def test_records_on_a_damaged_page_are_named_one_by_one_and_left_alone(path):
    page = pages_of(path, "record")[1]
    before = {row[0] for row in read(path, "SELECT id FROM record")}
    overwrite(path, page)
    found = examine(path)
    lost = set(found["record-unreadable"].records)
    assert lost
    assert lost < before
    assert found["page"].repair is None
    connection = sqlite3.connect(path)
    for id_ in before:
        try:
            readable = bool(connection.execute("SELECT text FROM record WHERE id = ?", (id_,)).fetchall())
        except sqlite3.DatabaseError:
            readable = False
        assert readable == (id_ not in lost)
    connection.close()
    repair_file(str(path), 5, now)
    with path.open("rb") as file:
        file.seek((page - 1) * 8192)
        assert file.read(8192) == b"\xa5" * 8192
    assert set(examine(path)["record-unreadable"].records) == lost


@pytest.mark.parametrize(
    "table", ["chunk", "pending", "change", "vector_change", "chunk_fts_data", "chunk_fts_docsize"]
)
def test_a_derived_table_on_a_damaged_page_is_made_anew(path, table):
    run_sql(path, "INSERT INTO pending(chunk_key) SELECT key FROM chunk")
    before, found = read(path, "SELECT * FROM embedding ORDER BY key"), truth(path)
    overwrite(path, pages_of(path, table)[0])
    named = examine(path)
    assert any(table.startswith("chunk_fts") or table in damage.problem for damage in named.values())
    repair_file(str(path), 5, now)
    with open_memory(path) as memory:
        left = memory.repair().left
        assert {damage.kind for damage in left} <= {"page-lost"}
        assert memory.flush() == 0
        assert {damage.kind for damage in memory.check().damages} <= {"page-lost"}
        assert memory.search("rockets to the moon", mode="keyword")
    assert read(path, "SELECT * FROM embedding ORDER BY key") == before
    assert truth(path) == found


def test_a_damaged_page_of_vectors_is_named_and_left_alone(path):
    overwrite(path, pages_of(path, "embedding")[0])
    damages, _ = examine_file(str(path), 5, now)
    assert {"page", "unexamined"} & {damage.kind for damage in damages}
    assert any("embedding" in damage.problem or "vectors" in damage.problem for damage in damages)


@pytest.mark.parametrize("index", ["record_scope", "chunk_record", "pending_order"])
def test_an_index_that_lacks_rows_is_named_and_made_anew(path, index):
    """The index is taken out of the schema and put back, so that it knows nothing of what was written meanwhile."""
    run_sql(path, "INSERT INTO pending(chunk_key) SELECT key FROM chunk WHERE key < 5")
    lines = read(path, f"SELECT * FROM sqlite_master WHERE name = '{index}'")
    for statements in (
        [f"DELETE FROM sqlite_master WHERE name = '{index}'"],
        [
            "UPDATE record SET scope = 'c' WHERE id = 'r002'",
            "INSERT INTO pending(chunk_key) VALUES (11)",
            "UPDATE chunk SET place = 7 WHERE key = 3",
        ],
    ):
        harm(path, "PRAGMA writable_schema = ON", *statements)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", lines[0])
        connection.commit()
    assert index in examine(path)["index-wrong"].problem
    with open_memory(path) as memory:
        assert memory.repair().left == ()
        assert memory.check().damages == ()


def test_an_index_that_disagrees_with_its_table_is_named_and_made_anew(path):
    overwrite(path, pages_of(path, "record_scope")[0], b"\x0a" + b"\0" * 8191)
    assert "record_scope" in examine(path)["index-wrong"].problem
    with open_memory(path) as memory:
        assert memory.repair().left == ()
    assert examine(path) == {}


# Whole files


@pytest.mark.parametrize("table", ["record", "space", "embedding", "dictionary", "meta", "link", "trash"])
def test_a_table_that_nothing_can_make_again_is_named_and_not_made(path, table):
    run_sql(path, f"DROP TABLE {table}")
    damage = examine(path)["truth-missing"]
    assert table in damage.problem
    assert damage.repair is None
    repair_file(str(path), 5, now)
    assert read(path, f"SELECT count(*) FROM sqlite_master WHERE name = '{table}'") == [(0,)]
    done = run(path, "doctor")
    assert done.exit_code == 1
    assert table in done.stdout
    assert "backup" in done.stdout


def test_a_file_that_is_cut_off_is_examined(path):
    with path.open("r+b") as file:
        file.truncate(8192 * 20)
    assert "page" in examine(path) or "unexamined" in examine(path)
    done = run(path, "doctor")
    assert done.exit_code == 1
    assert "damaged" in done.stdout


def test_a_file_of_a_newer_version_is_told_and_left_alone(path):
    run_sql(path, "PRAGMA user_version = 99")
    before = digest(path)
    done = run(path, "doctor", "--repair")
    assert done.exit_code == 1
    assert "upgrade recall_core" in done.stdout
    assert digest(path) == before


def test_a_file_that_is_no_database_is_told_by_the_exit_code(db_path):
    db_path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    before = digest(db_path)
    for options in ([], ["--repair"], ["--repair", "--dry-run"], ["--quick"]):
        done = run(db_path, "doctor", *options)
        assert (done.exit_code, done.stdout) == (3, "")
        assert "no SQLite database" in done.stderr
    assert digest(db_path) == before


def test_another_program_s_database_is_told_by_the_exit_code_and_left_alone(db_path):
    run_sql(db_path, "CREATE TABLE record(key, text)")
    before = digest(db_path)
    for options in ([], ["--repair"]):
        done = run(db_path, "doctor", *options)
        assert (done.exit_code, done.stdout) == (3, "")
        assert "another program" in done.stderr
    assert digest(db_path) == before
    with pytest.raises(errors.NotADatabaseError):
        examine_file(str(db_path), 5, now)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_files_of_older_versions_are_well(version, db_path):
    shutil.copy(DATA / f"schema-{version}.db", db_path)
    assert examine(db_path) == {}
    with Memory.open(db_path, embedder=None) as memory:
        assert memory.check().damages == ()


# Looking writes nothing


def test_examining_leaves_every_byte_as_it_is(path):
    harm(path, "UPDATE chunk_fts_data SET block = randomblob(40) WHERE id > 10", "DELETE FROM pending")
    before = digest(path)
    assert examine(path)
    assert digest(path) == before


def test_a_file_is_examined_that_must_not_be_written(path):
    path.chmod(0o400)
    assert examine(path) == {}


def test_a_quick_look_finds_what_is_missing_but_reads_no_text(path):
    harm(path, "DELETE FROM chunk WHERE record_key = 3", "UPDATE chunk SET latin = 'other' WHERE key = 1")
    assert set(examine(path, quick=True)) == {"chunk-missing"}
    assert set(examine(path)) == {"chunk-missing", "chunk-wrong"}


def test_the_page_on_damage_tells_of_every_kind():
    page = (ROOT / "docs" / "doctor.md").read_text("utf-8")
    assert [kind for kind in KINDS if f"| `{kind}` |" not in page] == []
