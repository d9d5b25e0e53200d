"""Whatever is done to a file, by us or by the stock sqlite3, in whatever order: both indexes agree with the records."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_support import embedder, faults, use_small_index, vector_faults

from recall_core import Memory
from recall_core.errors import RecordNotFoundError

WORDS = [f"w{first}{second}q" for first in "abcdefgh" for second in "xyz"]

# By another program. :i and :j are ids, :t is a text.
STATEMENTS = [
    "INSERT INTO record(id, text) VALUES (:i, :t)",
    "INSERT OR REPLACE INTO record(id, text) VALUES (:i, :t)",
    "INSERT OR IGNORE INTO record(id, text) VALUES (:i, :t)",
    "INSERT INTO record(id, text) VALUES (:i, :t) ON CONFLICT(id) DO UPDATE SET text = excluded.text",
    "REPLACE INTO record(key, id, text) VALUES ((SELECT key FROM record WHERE id = :i), :j, :t)",
    "UPDATE record SET text = :t WHERE id = :i",
    "UPDATE record SET role = :t WHERE id = :i",
    "UPDATE OR REPLACE record SET id = :i WHERE id = :j",
    "UPDATE OR IGNORE record SET id = :i WHERE id = :j",
    "UPDATE OR REPLACE record SET key = (SELECT key FROM record WHERE id = :i) WHERE id = :j",
    "UPDATE record SET key = key + 1000 WHERE id = :i",
    "DELETE FROM record WHERE id = :i",
    "DELETE FROM embedding",
    "VACUUM",
]
OURS = {
    "add": lambda memory, i, t: memory.add(t, id=i, on_duplicate="replace"),
    "add as Anna": lambda memory, i, t: memory.add(t, id=i, on_duplicate="replace", role="Anna"),
    "update": lambda memory, i, t: memory.update(i, text=t),
    "update role": lambda memory, i, t: memory.update(i, role="Bob"),
    "update vector": lambda memory, i, t: memory.update(i, vector=[1.0, float(len(t))], space="host"),
    "delete": lambda memory, i, t: memory.delete(i),
}
ids = st.sampled_from("abcd")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True).map(" ".join)
steps = st.tuples(st.sampled_from([*STATEMENTS, *OURS]), ids, ids, texts, st.booleans(), st.booleans())


def execute(path, statement, bindings, foreign_keys, recursive_triggers):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA foreign_keys = {int(foreign_keys)}")
        connection.execute(f"PRAGMA recursive_triggers = {int(recursive_triggers)}")
        with contextlib.suppress(sqlite3.IntegrityError):
            connection.execute(statement, bindings)
    assert faults(path) == []


def check(path):
    with Memory.open(path, embedder=embedder()) as memory:
        assert (memory.flush(), vector_faults(memory)) == (0, [])
        records = memory.records()
        for word in WORDS:
            found = {hit.record.id for hit in memory.search(word, mode="keyword", limit=50)}
            assert found == {record.id for record in records if word in f"{record.role} {record.text}".split()}
        for record in records:
            spoken = record.text if record.role is None else f"{record.role}: {record.text}"
            hits = memory.search(spoken, mode="semantic", fusion="plain", limit=50)
            assert {hit.record.id: hit.why.similarity for hit in hits}[record.id] == pytest.approx(1, abs=1e-4)


@settings(max_examples=25)
@given(st.lists(steps, min_size=5, max_size=25))
def test_any_sequence_of_changes_leaves_a_sound_file(sequence):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        use_small_index(patch, index_from=3, most_chunks=1)
        path = Path(folder) / "memory.db"
        Memory.open(path, embedder=embedder()).close()
        for what, i, j, text, foreign_keys, recursive_triggers in sequence:
            if what in OURS:
                with Memory.open(path, embedder=embedder()) as memory, contextlib.suppress(RecordNotFoundError):
                    OURS[what](memory, i, text)
            else:
                execute(path, what, {"i": i, "j": j, "t": text}, foreign_keys, recursive_triggers)
        check(path)
        assert faults(path) == []
