"""An open memory answers as one that was opened just now, whatever has happened to the file since it last looked."""

from __future__ import annotations

import contextlib
import tempfile
from datetime import timedelta
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scope_support import (
    ALL,
    MODES,
    SCOPES,
    WORDS,
    assert_alike,
    fill,
    ids,
    look,
    make_records,
    open_memory,
    order,
)
from store_support import beside
from support import NOW, FixedClock

from recall_core import scope_cache
from recall_core.errors import RecordExistsError, RecordNotFoundError
from recall_core.scope_cache import ScopeCache
from recall_core.store.upgrades import CHANGES_KEPT


@pytest.fixture
def memory(db_path, clock):
    with open_memory(db_path, clock) as memory:
        yield memory


@pytest.fixture
def store(memory):
    return memory._engine.store


# Any sequence of changes


OURS = {
    "add": lambda memory, c: memory.add(c.text, id=c.id, scope=c.scope, on_duplicate="replace"),
    "add in a session": lambda memory, c: memory.add(
        c.text, id=c.id, scope=c.scope, session="talk", turn=c.turn, on_duplicate="replace"
    ),
    "append": lambda memory, c: memory.session("talk", scope=c.scope).append("user", c.text, turn=c.turn),
    "update text": lambda memory, c: memory.update(c.id, text=c.text),
    "update metadata": lambda memory, c: memory.update(c.id, metadata={"about": c.text}),
    "update role": lambda memory, c: memory.update(c.id, role=["Anna", "Bob", "user"][c.turn % 3]),
    "move": lambda memory, c: memory.update(c.id, scope=c.scope),
    "update session": lambda memory, c: memory.update(c.id, session="other", turn=c.turn),
    "update turn": lambda memory, c: memory.update(c.id, turn=c.turn),
    "update time": lambda memory, c: memory.update(c.id, created_at=NOW - timedelta(days=400 * c.turn)),
    "update expiry": lambda memory, c: memory.update(c.id, ttl=60 + c.turn),
    "update vector": lambda memory, c: memory.update(c.id, vector=[1.0 + c.turn, *[1.0] * 15]),
    "delete": lambda memory, c: memory.delete([c.id]),
    "delete a session": lambda memory, c: memory.session("other", scope=c.scope).delete(),
}
# By another program.
STATEMENTS = [
    "INSERT OR REPLACE INTO record(id, scope, text, turn) VALUES (:id, :scope, :text, :turn)",
    "INSERT OR IGNORE INTO record(id, scope, session, turn, text) VALUES (:id, :scope, 'talk', :turn, :text)",
    "UPDATE record SET text = :text WHERE id = :id",
    "UPDATE record SET scope = :scope WHERE id = :id",
    "UPDATE record SET scope = :scope, text = :text WHERE id = :id",
    "UPDATE record SET session = 'talk', turn = :turn WHERE id = :id",
    "UPDATE OR REPLACE record SET id = :id WHERE id = :other",
    "UPDATE record SET key = key + 1000 WHERE id = :id",
    "UPDATE record SET expires_at = created_at WHERE id = :id",
    "UPDATE record SET role = 'Bob' WHERE id = :id",
    "DELETE FROM record WHERE id = :id",
    "DELETE FROM embedding WHERE chunk_key IN (SELECT key FROM chunk WHERE key % 5 = :turn)",
]


class Change:
    """What a step may need."""

    def __init__(self, what, id, other, scope, turn, words):
        self.what, self.id, self.other, self.scope, self.turn = what, id, other, scope, turn
        self.text = " ".join(words)

    def __repr__(self):
        return f"Change{(self.what, self.id, self.other, self.scope, self.turn, self.text.split())!r}"


changes = st.builds(
    Change,
    st.sampled_from([*OURS, *STATEMENTS, "an hour passes"]),
    *[st.sampled_from(["r000", "r001", "r002", "n0", "n1"])] * 2,
    st.sampled_from(SCOPES),
    st.integers(0, 4),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
)


def make_change(memory, path, clock, change):
    if change.what in OURS:
        with contextlib.suppress(RecordNotFoundError, RecordExistsError):
            OURS[change.what](memory, change)
    elif change.what == "an hour passes":
        clock.advance(3600)
    else:
        # A second connection as another process has it; Python's sqlite3 would be a second copy of SQLite in this one.
        bindings = {"id": change.id, "other": change.other, "scope": change.scope, "turn": change.turn}
        with contextlib.closing(apsw.Connection(str(path))) as connection:
            connection.execute(change.what, {**bindings, "text": change.text})


@settings(max_examples=12)
@given(st.lists(st.tuples(changes, st.booleans()), min_size=2, max_size=8), st.booleans())
def test_a_memory_that_was_open_all_along_answers_like_one_opened_now(sequence, follows_long):
    clock = FixedClock()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if follows_long:
            patch.setattr(scope_cache, "FOLLOWED_SHARE", 1)
        path = Path(folder) / "memory.db"
        with open_memory(path, clock) as memory:
            memory.add_many(make_records(30))
            for mode in MODES:
                look(memory, mode)
            for change, flushes in sequence:
                make_change(memory, path, clock, change)
                with open_memory(path, clock) as fresh:  # takes up what another program has written
                    fresh.flush()
                    assert_alike(look(memory, "keyword"), look(fresh, "keyword"))
                    assert found(memory, "semantic") == found(fresh, "semantic")
                    if flushes:
                        memory.flush()
                        assert_alike(look(memory, "hybrid"), look(fresh, "hybrid"))
            memory.flush()
            with open_memory(path, clock) as fresh:
                for mode in MODES:
                    assert order(memory, mode) == order(fresh, mode)
                    assert_alike(look(memory, mode), look(fresh, mode))


def found(memory, mode):
    return {scope: hits.keys() for scope, hits in look(memory, mode).items()}


def test_what_another_process_writes_is_followed(db_path, memory):
    memory.add_many(make_records(40))
    look(memory, "hybrid")
    beside(
        db_path,
        "INSERT INTO record(id, scope, text) VALUES ('new', 'a', 'turtles deploy')",
        "UPDATE record SET scope = 'b' WHERE id = 'r000'",
        "DELETE FROM record WHERE id = 'r001'",
    )
    assert memory.flush() == 0
    with open_memory(db_path) as fresh:
        for mode in MODES:
            assert_alike(look(memory, mode), look(fresh, mode))
    assert {"new", "r000"} <= {record_id for hits in found(memory, "semantic").values() for record_id in hits}


# What is held


def test_a_scope_is_read_once(memory, store):
    fill(memory, {"a": 20})
    cache = ScopeCache(store)
    assert cache.open("a") is cache.open("a")


def test_a_change_in_another_scope_leaves_a_held_one_as_it_is(memory, store):
    fill(memory, {"a": 20, "b": 20})
    cache = ScopeCache(store)
    held = cache.open("a")
    frame = held.frame
    memory.add("docker", scope="b")
    memory.update("b1", text="turtles")
    memory.delete("b2")
    assert cache.open("a") is held
    assert held.frame is frame
    assert cache.open("a") is held


def test_a_change_in_a_held_scope_reads_the_changed_records_alone(memory, store):
    fill(memory, {"a": 30})
    cache = ScopeCache(store)
    large = cache.open("a").frame.blocks[0]
    memory.add("docker", scope="a", id="new")
    memory.update("a1", text="turtles")
    memory.delete("a2")
    frame = cache.open("a").frame
    assert frame.blocks[0] is large
    assert sorted(frame.blocks[1].record_ids) == ["a1", "new"]
    assert frame.chunks == 30


def test_a_scope_that_has_changed_a_lot_is_read_anew(memory, store):
    fill(memory, {"a": 30})
    cache = ScopeCache(store)
    cache.open("a")
    fill(memory, {"a/below": 30})
    assert [len(block) for block in cache.open("a").frame.blocks] == [60]


def test_more_changes_than_the_file_keeps_are_caught_up_with(memory, store):
    fill(memory, {"a": 20, "b": 300})
    assert len(memory.search("docker", scope="a", mode="keyword", limit=ALL)) == 20
    seq = store.blocks.last_change()
    memory.delete("a1")
    memory.add("docker", scope="a", id="new")
    with store.database.write() as connection:
        for _ in range(CHANGES_KEPT // 300 + 8):
            connection.execute("UPDATE record SET created_at = created_at + 1 WHERE scope = 'b'")
        ((kept,),) = connection.execute("SELECT count(*) FROM change")
    assert kept < CHANGES_KEPT + 2048
    assert store.blocks.changed_since(seq)[1] is None
    hits = ids(memory.search("docker", scope="a", mode="keyword", limit=ALL))
    assert sorted(hits) == sorted({f"a{number}" for number in range(20)} - {"a1"} | {"new"})


def test_the_scopes_searched_last_are_held_up_to_a_limit(memory, store, monkeypatch):
    monkeypatch.setattr(scope_cache, "HELD_CHUNKS", 50)
    fill(memory, {"a": 20, "b": 20, "c": 20})
    cache = ScopeCache(store)
    a, b = cache.open("a"), cache.open("b")
    assert cache.open("a") is a
    cache.open("c")
    assert cache.open("a") is a
    assert cache.open("b") is not b


def test_a_scope_above_the_limit_of_all_is_held_alone(memory, store, monkeypatch):
    monkeypatch.setattr(scope_cache, "HELD_CHUNKS", 10)
    fill(memory, {"a": 20})
    cache = ScopeCache(store)
    assert cache.open("a") is cache.open("a")


def test_a_scope_that_grows_too_large_is_not_held_until_it_shrinks(memory, store):
    fill(memory, {"a": 30})
    cache = ScopeCache(store, most_chunks=31)
    assert cache.open("a") is not None
    memory.add("docker", id="last", scope="a")
    assert cache.open("a") is not None
    memory.add("docker", id="more", scope="a")
    assert cache.open("a") is None
    assert cache.open("a") is None
    memory.delete(["last", "more"])
    assert cache.open("a").frame.chunks == 30


def test_changed_records_do_not_make_a_scope_too_large(memory, store):
    fill(memory, {"a": 30})
    cache = ScopeCache(store, most_chunks=30)
    cache.open("a")
    memory.update("a1", text="turtles")
    assert cache.open("a").frame.chunks == 30


def test_a_scope_that_was_too_large_is_counted_again_after_many_changes(memory, store):
    fill(memory, {"a": 60})
    cache = ScopeCache(store, most_chunks=20)
    assert cache.open("a") is None
    memory.delete([f"a{number}" for number in range(15, 60)])
    assert cache.open("a").frame.chunks == 15


def test_what_is_forgotten_is_read_anew(memory, store):
    fill(memory, {"a": 20})
    cache = ScopeCache(store)
    held = cache.open("a")
    cache.forget()
    assert cache.open("a") is not held


def test_an_empty_scope_can_be_held_and_filled(memory):
    fill(memory, {"a": 20})
    assert len(memory.search("docker", scope="b")) == 0
    memory.add("docker", scope="b", id="first")
    assert ids(memory.search("docker", scope="b")) == ["first"]
