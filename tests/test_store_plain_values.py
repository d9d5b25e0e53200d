"""Whatever the stock sqlite3 writes is refused by the schema or taken up; no row keeps a memory from being opened."""

from __future__ import annotations

import contextlib
import math
import shutil
import sqlite3
import subprocess

import pytest
from store_support import beside, embedder, faults, run_python, use_small_index, vector_faults

from recall_core import Memory
from recall_core.errors import StoreError
from recall_core.store.migrations import SCHEMA_VERSION

REFUSED = [
    {"text": b"bytes"},
    {"text": None},
    {"id": ""},
    {"id": b"bytes"},
    {"id": "x" * 513},
    {"scope": None},
    {"scope": b"bytes"},
    {"scope": "x" * 1025},
    {"session": ""},
    {"session": b"bytes"},
    {"turn": 1.5},
    {"turn": "first"},
    {"role": ""},
    {"role": b"bytes"},
    {"kind": None},
    {"kind": ""},
    {"source": b"bytes"},
    {"payload": "{"},
    {"payload": b"{}"},
    {"metadata": "{"},
    {"metadata": "[1]"},
    {"metadata": "{'a': 1}"},
    {"metadata": None},
    {"metadata": b"{}"},
    {"tags": "{"},
    {"tags": '"tag"'},
    {"tags": '{"a": "b"}'},
    {"tags": "[1]"},
    {"tags": '[""]'},
    {"tags": '["good", null]'},
    {"tags": '[["nested"]]'},
    {"tags": b'["tag"]'},
    {"importance": 1.01},
    {"importance": -0.01},
    {"importance": "high"},
    {"importance": math.nan},
    {"importance": None},
    {"created_at": 253_402_300_800_000_000},
    {"created_at": -62_135_596_800_000_001},
    {"created_at": 1.5},
    {"created_at": "2026-01-31"},
    {"created_at": None},
    {"updated_at": "now"},
    {"accessed_at": math.inf},
    {"expires_at": b"later"},
]
TAKEN = {
    "the years 1 and 9999": {"created_at": -62_135_596_800_000_000, "expires_at": 253_402_300_799_999_999},
    "a number written as text": {"created_at": "1700000000000000", "turn": "7", "importance": "0.25"},
    "an empty text": {"text": ""},
    "a NUL in the text": {"text": "before\0after"},
    "a scope that we would not make": {"scope": "a//b/../*"},
    "control characters in names": {"session": "a\nb", "role": "x\x01y", "source": "\t"},
    "blank names": {"session": " ", "role": " ", "kind": " "},
    "a very long text": {"text": "数据库 word " * 50_000},
    "a very long list of tags": {"tags": "[" + ",".join(f'"tag{n}"' for n in range(5000)) + "]"},
    "escaped surrogates": {"metadata": r'{"a\ud800": "b\udfff", "😀": "\ud83d\ude00"}', "tags": r'["t\ud800"]'},
    "equal keys": {"metadata": '{"a": 1, "a": 2}'},
    "an integer of 5,000 digits": {"metadata": f'{{"a": {"9" * 5000}}}', "payload": "9" * 5000},
    "900 nested lists": {"metadata": f'{{"a": {"[" * 900}{"]" * 900}}}', "payload": "[" * 900 + "]" * 900},
}
CHINESE_WINDOWS = "数据库部署在上海".encode("gbk")  # as the sqlite3 shell stores it when it imports such a CSV file


@pytest.fixture
def file(db_path):
    with Memory.open(db_path, embedder=embedder()) as memory:
        memory.add("Rockets fly to the moon", id="rockets", tags=["space"])
    return db_path


def insert(path, values):
    values = {"id": "new", "text": "Whales sing"} | values
    sql = f"INSERT INTO record({', '.join(values)}) VALUES ({', '.join('?' for _ in values)})"
    execute(path, sql, *values.values())


def execute(path, sql, *bindings):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(sql, bindings).fetchall()
    assert faults(path) == []
    return rows


def read_all(memory):
    """Use each way of reading, and return the records."""
    assert (memory.flush(), vector_faults(memory)) == (0, [])
    for mode in ("keyword", "semantic", "hybrid"):
        memory.search("whales sing in 数据库 tags", mode=mode)
    memory.context("whales sing")
    memory.stats()
    for session in memory.sessions():
        session.messages()
    return {record.id: record for record in memory.records()}


# Refused


@pytest.mark.parametrize("values", REFUSED, ids=lambda values: repr(values)[:40])
def test_what_no_record_can_hold_is_refused(file, values):
    with pytest.raises((sqlite3.IntegrityError, sqlite3.OperationalError)):
        insert(file, values)
    ((column, value),) = values.items()
    with pytest.raises((sqlite3.IntegrityError, sqlite3.OperationalError)):
        execute(file, f"UPDATE record SET {column} = ? WHERE id = 'rockets'", value)
    with Memory.open(file, embedder=embedder()) as memory:
        assert [hit.record.id for hit in memory.search("Rockets fly to the moon")] == ["rockets"]
    assert faults(file) == []


def test_an_id_that_is_taken_is_refused(file):
    with pytest.raises(sqlite3.IntegrityError):
        insert(file, {"id": "rockets"})
    with Memory.open(file, embedder=embedder()) as memory:
        assert [hit.record.id for hit in memory.search("Rockets fly to the moon")] == ["rockets"]


# Taken


@pytest.mark.parametrize("values", TAKEN.values(), ids=TAKEN.keys())
def test_a_strange_row_is_taken_up_and_is_no_obstacle(file, values):
    insert(file, values)
    with Memory.open(file, embedder=embedder()) as memory:
        records = read_all(memory)
        assert records.keys() == {"rockets", "new"}
        memory.update("new", importance=0.75, text="Whales sing again")
        assert [hit.record.id for hit in memory.search("whales", mode="keyword")] == ["new"]
        assert memory.delete("new") == 1
    assert faults(file) == []


def test_a_nul_becomes_visible(file):
    insert(file, {"text": "before\0after"})
    with Memory.open(file, embedder=embedder()) as memory:
        assert memory.get("new")[0].text == "before\ufffdafter"
        assert [hit.record.id for hit in memory.search("after", mode="keyword")] == ["new"]


def test_text_that_is_no_utf8_becomes_readable(file):
    execute(
        file,
        "INSERT INTO record(id, text, role) VALUES ('new', CAST(? AS TEXT), CAST(? AS TEXT))",
        CHINESE_WINDOWS,
        b"\xff",
    )
    with Memory.open(file, embedder=embedder()) as memory:
        record = read_all(memory)["new"]
        assert (record.text, record.role) == (CHINESE_WINDOWS.decode("utf-8", "replace"), "\ufffd")


def test_text_that_is_no_utf8_is_told_while_a_memory_is_open(file):
    with Memory.open(file, embedder=embedder()) as memory:
        beside(file, f"INSERT INTO record(id, text) VALUES ('new', CAST(x'{CHINESE_WINDOWS.hex()}' AS TEXT))")
        with pytest.raises(StoreError, match=r"no UTF-8.*open the memory again"):
            memory.records()
        assert memory.flush() == 0
        assert len(memory.records()) == 2


def test_an_id_that_can_not_be_made_readable_leaves_the_others_alone(file):
    insert(file, {"id": "\ufffd"})
    execute(file, "INSERT INTO record(id, text) VALUES (CAST(? AS TEXT), 'x')", b"\xff")
    with Memory.open(file, embedder=embedder()) as memory:
        assert [hit.record.id for hit in memory.search("whales", mode="keyword")] == ["\ufffd"]


def test_vectors_of_any_kind_are_passed_over(file, monkeypatch):
    with Memory.open(file, embedder=embedder()) as memory:
        memory.add_many({"text": f"filler {number}"} for number in range(5))
        before = [hit.record.id for hit in memory.search("Rockets fly to the moon", mode="semantic")]
    strange = [b"", b"\0" * 64, b"\xff" * 64, b"1234", "text", 7]
    keys = [key for (key,) in execute(file, "SELECT key FROM embedding ORDER BY key DESC LIMIT 6")]
    for key, value in zip(keys, strange, strict=True):
        execute(file, "UPDATE embedding SET vector = ? WHERE key = ?", value, key)
    use_small_index(monkeypatch)
    with Memory.open(file, embedder=embedder()) as memory:
        assert before
        hits = memory.search("Rockets fly to the moon", mode="semantic")
        assert [hit for hit in hits if hit.why.similarity is not None] == []
        memory.add_many({"text": f"more {number}"} for number in range(60))
        assert memory.search("more 7", mode="semantic")[0].record.text == "more 7"


def test_a_deleted_vector_is_made_again(file):
    execute(file, "DELETE FROM embedding")
    with Memory.open(file, embedder=embedder()) as memory:
        assert (memory.flush(), vector_faults(memory)) == (0, [])
        assert [hit.record.id for hit in memory.search("Rockets fly to the moon", mode="semantic")] == ["rockets"]


# While the memory is open


def test_changes_beside_an_open_memory_are_taken_up_by_flush(file):
    with Memory.open(file, embedder=embedder()) as memory:
        beside(
            file,
            "INSERT INTO record(id, text) VALUES ('new', 'Whales sing')",
            "UPDATE record SET text = 'Turtles swim' WHERE id = 'rockets'",
        )
        assert memory.flush() == 0
        assert [hit.record.id for hit in memory.search("whales", mode="keyword")] == ["new"]
        assert [hit.record.id for hit in memory.search("turtles", mode="keyword")] == ["rockets"]
        assert len(memory.search("rockets", mode="keyword")) == 0


def test_a_change_of_ours_does_not_hide_one_of_another_program(file):
    with Memory.open(file, embedder=embedder()) as memory:
        beside(file, "UPDATE record SET text = 'Turtles swim' WHERE id = 'rockets'")
        memory.update("rockets", importance=0.9)
    with Memory.open(file, embedder=embedder()) as memory:
        assert [hit.record.id for hit in memory.search("turtles", mode="keyword")] == ["rockets"]


# As a whole


def with_codes(path, monkeypatch):
    use_small_index(monkeypatch)
    with Memory.open(path, embedder=embedder()) as memory:
        records = memory.add_many({"text": f"filler {number * 7919}", "id": f"f{number}"} for number in range(600))
        memory.delete([record.id for record in records[::2]])
        memory.add("Turtles swim", id="turtles")
        assert memory.stats().vector_index == "codes"


def test_a_vacuum_keeps_everything(file, monkeypatch):
    with_codes(file, monkeypatch)
    before = execute(file, "SELECT key, chunk_key, vector FROM embedding ORDER BY key")
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM")
    assert execute(file, "SELECT key, chunk_key, vector FROM embedding ORDER BY key") == before
    with Memory.open(file, embedder=embedder()) as memory:
        assert vector_faults(memory) == []
        assert memory.search("Turtles swim", mode="semantic", limit=1)[0].record.id == "turtles"
        memory.add_many({"text": f"later {number}"} for number in range(300))
        assert memory.search("later 299", mode="semantic", limit=1)[0].record.text == "later 299"
        assert vector_faults(memory) == []
    assert faults(file) == []


def test_a_backup_is_a_memory(file, db_path, monkeypatch):
    with_codes(file, monkeypatch)
    copy = db_path.with_name("copy.db")
    with Memory.open(file, embedder=embedder()) as memory:
        memory.add("not yet in the main file, only in the log", id="last")
        code = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2]))"
        assert run_python(["-c", code, str(file), str(copy)]).communicate() == ("", "")
    with Memory.open(copy, embedder=embedder()) as memory:
        assert memory.search("only in the log", limit=1)[0].record.id == "last"
        assert vector_faults(memory) == []
    assert faults(copy) == []


def test_a_dump_holds_all_records(file):
    with contextlib.closing(sqlite3.connect(file)) as connection:
        script = "\n".join(connection.iterdump())
    assert "Rockets fly to the moon" in script


def test_a_dump_of_a_file_with_codes_is_complete(file, monkeypatch):
    with_codes(file, monkeypatch)
    tables = ("record", "chunk", "embedding", "code_index", "code_page", "change")
    with contextlib.closing(sqlite3.connect(file)) as connection:
        script = "\n".join(connection.iterdump())
        before = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
    lines = [line for line in script.splitlines() if line.startswith("INSERT INTO")]
    for table, rows in zip(tables, before, strict=True):
        assert sum(line.startswith(f'INSERT INTO "{table}" ') for line in lines) == len(rows) > 0


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="there is no sqlite3 shell here")
def test_a_file_made_from_a_dump_of_the_shell_is_a_memory(file, db_path, monkeypatch):
    with_codes(file, monkeypatch)
    dump = subprocess.run(["sqlite3", file, ".dump"], capture_output=True, text=True, encoding="utf-8", check=True)
    assert dump.stderr == ""
    copy = db_path.with_name("copy.db")
    script = f"PRAGMA application_id = 0x5243414C; PRAGMA user_version = {SCHEMA_VERSION};\n{dump.stdout}"
    made = subprocess.run(["sqlite3", copy], input=script, capture_output=True, text=True, encoding="utf-8", check=True)
    assert made.stderr == ""
    with Memory.open(copy, embedder=embedder()) as memory:
        assert (memory.flush(), vector_faults(memory), memory.count()) == (0, [], 302)
        for mode in ("keyword", "semantic"):
            assert memory.search("Turtles swim", mode=mode, limit=1)[0].record.id == "turtles"
    assert faults(copy) == []
