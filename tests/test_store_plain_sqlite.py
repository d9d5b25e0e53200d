"""The stock sqlite3, without any extension, reads a memory file and writes to it; nothing breaks or is lost."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest
from store_support import DIMENSIONS, embedder, faults, read_codes, use_small_index, vector_faults

from recall_core import Memory

ROCKETS, TURTLES, TEA = "Rockets fly to the moon", "Turtles swim in the sea", "他每天早上喝一杯绿茶"
FILLER = 60  # records that make the space large enough for codes


@pytest.fixture(params=["exact", "codes"])
def file(request, db_path, monkeypatch):
    """Return a closed file with three records, searched by its vectors or through codes of them."""
    if request.param == "codes":
        use_small_index(monkeypatch)
    with open_memory(db_path) as memory:
        memory.add(ROCKETS, id="rockets", scope="user/1", tags=["space"], metadata={"team": "infra"}, role="Anna")
        memory.add(TURTLES, id="turtles", scope="user/1", session="s", turn=1, payload={"raw": [1, None]})
        memory.add(TEA, id="tea", scope="user/2")
        if request.param == "codes":
            memory.add_many({"text": f"filler {n * 7919}", "id": f"f{n}", "scope": "filler"} for n in range(FILLER))
    return db_path


def open_memory(path):
    memory = Memory.open(path, embedder=embedder())
    memory.flush()
    return memory


def execute(path, sql, *bindings):
    """Run one statement as another program would, and check that the file is sound afterwards."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(sql, bindings).fetchall()
    assert faults(path) == []
    return rows


def found(memory, text, mode):
    """Return the ids of the records that have a word of `text`, or whose vector is that of `text`."""
    hits = memory.search(text, mode=mode, limit=5, scope="user")
    if mode == "keyword":
        return [hit.record.id for hit in hits if hit.why.keyword_rank is not None]
    return [hit.record.id for hit in hits if (hit.why.similarity or 0) > 0.99]


def check(path, present, absent=()):
    """Open the file as a memory: texts are found by keyword and by meaning, or by neither, as they should be."""
    with open_memory(path) as memory:
        assert (memory.flush(), vector_faults(memory)) == (0, [])
        for text, id in present:
            assert (found(memory, text, "keyword"), found(memory, text, "semantic")) == ([id], [id])
        for text in absent:
            assert found(memory, text.removeprefix("Anna: "), "keyword") == []
            assert found(memory, text, "semantic") == []
    assert faults(path) == []


# Reading


def test_everything_can_be_read(file):
    with contextlib.closing(sqlite3.connect(file)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for name in names:
            connection.execute(f'SELECT * FROM "{name}"').fetchall()
        row = connection.execute("SELECT text, scope, tags, metadata FROM record WHERE id = 'rockets'").fetchone()
    assert {"record", "embedding", "change", "code_index", "code_page"} <= set(names)
    assert row == (ROCKETS, "user/1", '["space"]', '{"team":"infra"}')


def test_codes_can_be_read_and_are_there_if_the_space_is_large(file, request):
    with contextlib.closing(sqlite3.connect(file)) as connection:
        codes = read_codes(connection, 1, DIMENSIONS)
    assert len(codes) == (FILLER + 3 if request.node.callspec.params["file"] == "codes" else 0)


def test_the_keyword_index_can_be_asked(file):
    chunks = "SELECT record_key FROM chunk_fts JOIN chunk ON chunk.key = chunk_fts.rowid WHERE chunk_fts MATCH ?"
    sql = f"SELECT id FROM record WHERE key IN ({chunks})"
    assert execute(file, sql, "turtl") == [("turtles",)]
    assert execute(file, sql, "绿茶") == [("tea",)]


def test_vectors_are_plain_little_endian_floats(file):
    ((blob,),) = execute(
        file,
        "SELECT vector FROM embedding JOIN chunk ON chunk.key = chunk_key JOIN record ON record.key = record_key "
        "WHERE record.id = 'tea'",
    )
    assert blob == embedder().embed_passages([TEA]).astype("<f4").tobytes()


def test_an_integrity_check_needs_no_extension(file):
    assert execute(file, "PRAGMA integrity_check") == [("ok",)]
    assert execute(file, "PRAGMA foreign_key_check") == []


# Adding


def test_a_text_alone_makes_a_record(file):
    execute(file, "INSERT INTO record(text) VALUES (?)", "Whales sing below the ice")
    with open_memory(file) as memory:
        (record,) = [record for record in memory.records() if record.text == "Whales sing below the ice"]
        assert (record.scope, record.kind, record.tags, record.metadata, record.importance) == (
            "", "memory", (), {}, 0.5
        )  # fmt: skip
        assert len(record.id) == 24
        assert record.created_at == record.updated_at
        hits = memory.search("whales sing", mode="keyword")
        assert [hit.record.id for hit in hits] == [record.id]


def test_a_record_with_all_its_columns_comes_back_as_it_was_written(file):
    execute(
        file,
        "INSERT INTO record(id, scope, session, turn, role, kind, text, payload, metadata, tags, source, importance, "
        "created_at, updated_at, accessed_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        "new", "user/1", "s", 2, "Bob", "fact", "鲸鱼在冰下唱歌", '{"p": 1}', '{"k": "海洋"}', '["动物"]', "book", 1,
        1_700_000_000_000_000, 1_700_000_000_000_001, 1_700_000_000_000_002, 4_000_000_000_000_000,
    )  # fmt: skip
    check(file, [("Bob: 鲸鱼在冰下唱歌", "new")])
    with open_memory(file) as memory:
        (record,) = memory.get("new")
        assert (record.payload, record.metadata, record.tags, record.source) == (
            {"p": 1},
            {"k": "海洋"},
            ("动物",),
            "book",
        )
        assert (record.created_at.timestamp(), record.expires_at.timestamp()) == (1_700_000_000, 4_000_000_000)
        assert [message.id for message in memory.session("s", scope="user/1").messages()] == ["turtles", "new"]
        assert found(memory, "动物 海洋", "keyword") == ["new"]


def test_many_rows_added_at_once_are_all_taken_up(file):
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        rows = [(f"row {n} 第{n}行", "bulk") for n in range(600)]
        connection.executemany("INSERT INTO record(text, scope) VALUES (?, ?)", rows)
    with open_memory(file) as memory:
        assert (memory.count("bulk"), memory.flush(), vector_faults(memory)) == (600, 0, [])
        assert memory.search("第599行", scope="bulk", mode="keyword")[0].record.text == "row 599 第599行"
    assert faults(file) == []


# Changing and deleting


def test_a_changed_text_replaces_the_old_one_in_both_indexes(file):
    execute(file, "UPDATE record SET text = ? WHERE id = 'rockets'", "Whales sing")
    check(file, [("Anna: Whales sing", "rockets")], absent=[f"Anna: {ROCKETS}"])


def test_a_text_of_the_same_length_is_not_taken_for_the_old_one(file):
    with open_memory(file) as memory:
        memory.add("0123456789", id="given", scope="user/1", vector=[1.0, 0.0], space="host")
    execute(file, "UPDATE record SET text = '9876543210' WHERE id = 'given'")
    check(file, [("9876543210", "given")], absent=["0123456789"])
    with open_memory(file) as memory:
        assert [space.vectors for space in memory.stats().spaces if space.name == "host"] == [0]


def test_a_vector_of_a_host_stays_if_the_text_does(file):
    with open_memory(file) as memory:
        memory.add("Whales sing", id="given", scope="user/1", vector=[1.0, 0.0], space="host")
    execute(file, "UPDATE record SET tags = '[\"sea\"]' WHERE id = 'given'")
    with open_memory(file) as memory:
        assert [space.vectors for space in memory.stats().spaces if space.name == "host"] == [1]


@pytest.mark.parametrize(
    ("change", "word"),
    [("tags = '[\"whale\"]'", "whale"), ('metadata = \'{"k": "whale"}\'', "whale"), ("role = 'Eve'", "eve")],
)
def test_changed_labels_and_roles_are_found(file, change, word):
    execute(file, f"UPDATE record SET {change} WHERE id = 'rockets'")
    with open_memory(file) as memory:
        assert [hit.record.id for hit in memory.search(word, mode="keyword")] == ["rockets"]
        gone = {"tags": "space", "metadata": "infra", "role": "anna"}[change.split()[0]]
        assert len(memory.search(gone, mode="keyword")) == 0


def test_a_record_moved_to_another_scope_is_found_there_only(file):
    execute(file, "UPDATE record SET scope = 'user/9' WHERE id = 'rockets'")
    with open_memory(file) as memory:
        for mode in ("keyword", "semantic"):
            assert "rockets" not in [hit.record.id for hit in memory.search(ROCKETS, scope="user/1", mode=mode)]
            assert [hit.record.id for hit in memory.search(ROCKETS, scope="user/9", mode=mode)] == ["rockets"]


def test_a_deleted_row_is_found_no_more_and_leaves_nothing(file):
    execute(file, "DELETE FROM record WHERE id = 'rockets'")
    check(file, [(TURTLES, "turtles"), (TEA, "tea")], absent=[f"Anna: {ROCKETS}"])
    assert execute(
        file, "SELECT count(*) FROM chunk JOIN record ON record.key = record_key WHERE text = ?", ROCKETS
    ) == [(0,)]


def test_all_rows_can_be_deleted(file):
    execute(file, "DELETE FROM record")
    assert execute(file, "SELECT (SELECT count(*) FROM chunk), (SELECT count(*) FROM embedding)") == [(0, 0)]
    check(file, [], absent=[TURTLES, TEA])


def test_a_new_key_takes_the_chunks_along(file):
    execute(file, "UPDATE record SET key = 900 WHERE id = 'tea'")
    check(file, [(TEA, "tea"), (TURTLES, "turtles")])


# Conflicts


def test_a_replaced_row_is_the_new_one(file):
    execute(file, "INSERT OR REPLACE INTO record(id, scope, text) VALUES ('rockets', 'user/1', 'Whales sing')")
    check(file, [("Whales sing", "rockets"), (TEA, "tea")], absent=[f"Anna: {ROCKETS}"])


def test_a_row_replaced_by_its_key_is_the_new_one(file):
    ((key,),) = execute(file, "SELECT key FROM record WHERE id = 'rockets'")
    execute(file, "REPLACE INTO record(key, id, scope, text) VALUES (?, 'whales', 'user/1', 'Whales sing')", key)
    check(file, [("Whales sing", "whales"), (TEA, "tea")], absent=[f"Anna: {ROCKETS}"])


def test_a_row_that_takes_the_place_of_two_is_the_only_one_left(file):
    ((key,),) = execute(file, "SELECT key FROM record WHERE id = 'rockets'")
    execute(file, "REPLACE INTO record(key, id, scope, text) VALUES (?, 'turtles', 'user/1', 'Whales sing')", key)
    check(file, [("Whales sing", "turtles"), (TEA, "tea")], absent=[f"Anna: {ROCKETS}", TURTLES])


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT OR IGNORE INTO record(id, text) VALUES ('turtles', 'Whales sing')",
        "INSERT INTO record(id, text) VALUES ('turtles', 'Whales sing') ON CONFLICT(id) DO NOTHING",
        "INSERT INTO record(id, text) VALUES ('turtles', 'x') ON CONFLICT(id) DO UPDATE SET importance = 1",
        "UPDATE OR IGNORE record SET id = 'turtles' WHERE id = 'rockets'",
    ],
)
def test_an_ignored_conflict_changes_nothing(file, sql):
    before = execute(file, "SELECT key, chunk_key, vector FROM embedding ORDER BY key")
    execute(file, sql)
    execute(file, "INSERT INTO record(id, text) VALUES ('later', 'a later row')")
    assert execute(file, "SELECT key, chunk_key, vector FROM embedding ORDER BY key") == before
    check(file, [(TURTLES, "turtles"), (f"Anna: {ROCKETS}", "rockets")])


def test_a_row_renamed_after_an_ignored_conflict_keeps_its_chunks(file):
    execute(file, "INSERT OR IGNORE INTO record(id, text) VALUES ('turtles', 'Whales sing')")
    execute(file, "UPDATE record SET id = 'tortoises' WHERE id = 'turtles'")
    check(file, [(TURTLES, "tortoises"), (TEA, "tea")])


def test_an_upsert_is_a_change(file):
    execute(
        file,
        "INSERT INTO record(id, text) VALUES ('turtles', 'Whales sing') "
        "ON CONFLICT(id) DO UPDATE SET text = excluded.text",
    )
    check(file, [("Whales sing", "turtles")], absent=[TURTLES])


def test_a_row_that_takes_the_id_of_another_replaces_it(file):
    execute(file, "UPDATE OR REPLACE record SET id = 'turtles' WHERE id = 'rockets'")
    check(file, [(f"Anna: {ROCKETS}", "turtles"), (TEA, "tea")], absent=[TURTLES])


def test_a_row_that_takes_the_key_of_another_replaces_it(file):
    ((key,),) = execute(file, "SELECT key FROM record WHERE id = 'turtles'")
    execute(file, "UPDATE OR REPLACE record SET key = ? WHERE id = 'tea'", key)
    check(file, [(TEA, "tea")], absent=[TURTLES])


@pytest.mark.parametrize("recursive", [0, 1])
@pytest.mark.parametrize("foreign_keys", [0, 1])
def test_conflicts_are_settled_alike_whatever_another_program_has_switched_on(file, recursive, foreign_keys):
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"PRAGMA recursive_triggers = {recursive}")
        connection.execute(f"PRAGMA foreign_keys = {foreign_keys}")
        connection.execute("REPLACE INTO record(id, scope, text) VALUES ('rockets', 'user/1', 'Whales sing')")
        connection.execute("UPDATE OR REPLACE record SET id = 'turtles' WHERE id = 'tea'")
        connection.execute("UPDATE record SET key = 901 WHERE id = 'turtles'")
    assert faults(file) == []
    check(file, [("Whales sing", "rockets"), (TEA, "turtles")], absent=[TURTLES, f"Anna: {ROCKETS}"])
