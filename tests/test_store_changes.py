"""The change log names the records whose chunks, vectors or places changed, whoever changed them, and stays short."""

from __future__ import annotations

import pytest
from store_support import beside, embedder, faults

from recall_core import Memory
from recall_core.store.upgrades import CHANGES_KEPT


@pytest.fixture
def memory(db_path):
    with Memory.open(db_path, embedder=embedder()) as memory:
        for id in ("a", "b", "c"):
            memory.add(f"Rockets fly {id}", id=id, scope="user/1", session="s", tags=["space"])
        yield memory


@pytest.fixture
def keys(memory):
    """Return the keys of the records by id, as they were at first."""
    return dict(read(memory, "SELECT id, key FROM record"))


def read(memory, sql):
    with memory._engine.store.database.read() as connection:
        return connection.execute(sql).fetchall()


def changed(memory, change):
    """Return the keys of the records that the log names for a change: a function, or SQL of another program."""
    seq = memory._engine.store.blocks.last_change()
    if isinstance(change, str):
        beside(memory._engine.store.path, change)
    else:
        change()
    return memory._engine.store.blocks.changed_since(seq)[1]


# By us


@pytest.mark.parametrize(
    "revision",
    [
        {"text": "Turtles swim"},
        {"tags": ["sea"]},
        {"metadata": {"team": "infra"}},
        {"role": "Anna"},
        {"expires_at": "2099-01-01"},
        {"vector": [1.0, 2.0], "space": "host"},
    ],
    ids=lambda revision: next(iter(revision)),
)
def test_an_update_of_ours_is_noted(memory, keys, revision):
    assert changed(memory, lambda: memory.update("b", **revision)) == {keys["b"]}


def test_a_new_record_is_noted(memory):
    noted = changed(memory, lambda: memory.add("Whales sing", id="new"))
    assert noted == {key for (key,) in read(memory, "SELECT key FROM record WHERE id = 'new'")}


def test_deleted_records_are_noted(memory, keys):
    assert changed(memory, lambda: memory.delete(["a", "c"])) == {keys["a"], keys["c"]}


def test_a_text_that_is_touched_again_is_not_noted(memory):
    assert changed(memory, lambda: memory.add("Rockets fly b", scope="user/1", on_duplicate="touch")) == frozenset()


def test_what_only_reads_is_not_noted(memory):
    assert changed(memory, lambda: memory.search("Rockets fly")) == frozenset()


def test_a_change_that_is_rolled_back_is_not_noted(memory):
    def fail():
        with memory._engine.store.records.transaction():
            memory.update("b", text="Turtles swim")
            raise KeyError

    def try_it():
        with pytest.raises(KeyError):
            fail()

    assert changed(memory, try_it) == frozenset()


# By other programs


@pytest.mark.parametrize(
    "assignment",
    ["text = 'Turtles'", "scope = 'user/2'", "session = 't'", "session = NULL", "turn = 7", "expires_at = 1",
     "created_at = 1", "id = 'z'"],
)  # fmt: skip
def test_an_update_beside_us_of_what_a_search_reads_is_noted(memory, keys, assignment):
    assert changed(memory, f"UPDATE record SET {assignment} WHERE id = 'b'") == {keys["b"]}


@pytest.mark.parametrize(
    "assignment",
    ["accessed_at = 7", "importance = 1", "kind = 'fact'", "payload = '1'", "updated_at = 7", "text = text",
     "scope = scope, session = session"],
)  # fmt: skip
def test_an_update_of_anything_else_is_not_noted(memory, assignment):
    assert changed(memory, f"UPDATE record SET {assignment} WHERE id = 'b'") == frozenset()


@pytest.mark.parametrize("assignment", ["tags = '[\"sea\"]'", 'metadata = \'{"k": "sea"}\'', "role = 'Eve'"])
def test_labels_that_change_beside_us_are_noted_at_the_latest_when_they_are_indexed(memory, keys, assignment):
    def change_and_flush():
        beside(memory._engine.store.path, f"UPDATE record SET {assignment} WHERE id = 'b'")
        memory.flush()

    assert changed(memory, change_and_flush) == {keys["b"]}


def test_a_row_that_is_added_beside_us_is_noted_when_it_is_indexed(memory):
    def add_and_flush():
        beside(memory._engine.store.path, "INSERT INTO record(id, text) VALUES ('new', 'Whales sing')")
        memory.flush()

    noted = changed(memory, add_and_flush)
    assert noted == {key for (key,) in read(memory, "SELECT key FROM record WHERE id = 'new'")}


def test_a_row_that_is_deleted_beside_us_is_noted(memory, keys):
    assert changed(memory, "DELETE FROM record WHERE id = 'b'") == {keys["b"]}


@pytest.mark.parametrize("pragma", ["", "PRAGMA recursive_triggers = 1; ", "PRAGMA foreign_keys = 1; "])
def test_a_row_that_is_replaced_beside_us_is_noted(memory, keys, pragma):
    noted = changed(memory, f"{pragma}INSERT OR REPLACE INTO record(id, text) VALUES ('b', 'Whales sing')")
    assert noted == {keys["b"]}


def test_a_row_that_gets_another_key_is_noted_by_both(memory, keys):
    assert changed(memory, "UPDATE record SET key = 900 WHERE id = 'b'") == {keys["b"], 900}


def test_a_row_that_replaces_another_by_its_id_is_noted_with_it(memory, keys):
    assert changed(memory, "UPDATE OR REPLACE record SET id = 'a' WHERE id = 'b'") == {keys["a"], keys["b"]}


def test_vectors_that_change_beside_us_are_noted(memory, keys):
    chunk = "(SELECT chunk.key FROM chunk JOIN record ON record.key = record_key WHERE id = 'b')"
    for sql in (
        f"UPDATE embedding SET vector = zeroblob(64) WHERE chunk_key = {chunk}",
        f"DELETE FROM embedding WHERE chunk_key = {chunk}",
        f"INSERT INTO embedding(chunk_key, space_id, vector) SELECT {chunk}, 1, zeroblob(64)",
    ):
        assert changed(memory, sql) == {keys["b"]}


def test_a_deleted_space_is_noted_for_all_that_had_vectors_in_it(memory, keys):
    memory.update("b", vector=[1.0, 2.0], space="host")
    assert changed(memory, "DELETE FROM space WHERE name = 'host'") == {keys["b"]}


# Its length


def test_only_the_last_changes_are_kept(memory, keys, db_path):
    start = memory._engine.store.blocks.last_change()
    with memory._engine.store.database.write() as connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
            f"INSERT INTO change(record_key) SELECT {keys['a']} FROM n"
        )
    ((count,),) = read(memory, "SELECT count(*) FROM change")
    assert CHANGES_KEPT <= count < CHANGES_KEPT + 1024
    blocks = memory._engine.store.blocks
    last = blocks.last_change()
    assert last == start + 20_000
    assert blocks.changed_since(start) == (last, None)
    assert blocks.changed_since(last - CHANGES_KEPT) == (last, frozenset({keys["a"]}))
    assert faults(db_path) == []


def test_a_log_that_another_program_has_cut_is_not_trusted(memory):
    blocks = memory._engine.store.blocks
    seq = blocks.last_change()
    memory.update("a", text="Turtles swim")
    memory.update("b", text="Turtles swim")
    beside(memory._engine.store.path, f"DELETE FROM change WHERE seq = {seq + 1}")
    assert blocks.changed_since(seq)[1] is None
    beside(memory._engine.store.path, "DELETE FROM change")
    assert blocks.changed_since(seq)[1] is None
