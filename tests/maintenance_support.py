"""What the tests of maintenance share: a look at terms and changes, and worker processes that are killed.

Run as a script it is such a worker: `python maintenance_support.py WORK PATH NUMBER`.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from store_support import embedder

from recall_core import Memory


def find_term(path: Path, term: str) -> list[str]:
    """Return the ids of the records that the keyword index of a closed file has as holding a term, as it is."""
    sql = """
    SELECT record.id FROM chunk_fts JOIN chunk ON chunk.key = chunk_fts.rowid JOIN record ON record.key = record_key
    WHERE chunk_fts MATCH ? ORDER BY record.id
    """
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [id for (id,) in connection.execute(sql, (f'"{term}"',))]


def last_change(memory: Memory) -> int:
    """Return the number of the last change that the file has noted."""
    return memory._engine.store.blocks.last_change()


def changed_ids(memory: Memory, since: int) -> set[str]:
    """Return the ids of the records whose chunks were written since a change."""
    keys = memory._engine.store.blocks.changed_since(since)[1]
    with memory._engine.store.database.read() as connection:
        rows = connection.execute("SELECT key, id FROM record").fetchall()
    return {id for key, id in rows if key in keys}


def fill(path: Path, count: int = 300) -> None:
    """Store records with vectors, Chinese and English; every tenth says 灰度发布平台."""
    with Memory.open(path, embedder=embedder()) as memory:
        memory.add_many(make_record(number) for number in range(count))


def found(memory: Memory, **arguments: object) -> list[list[tuple[str, object]]]:
    """Return what a few searches find, and how relevant."""
    queries = ("灰度发布平台", "note 17", "项目部署", "76032")
    return [
        [(hit.record.id, pytest.approx(hit.relevance)) for hit in memory.search(query, limit=20, **arguments)]
        for query in queries
    ]


def make_record(number: int) -> dict[str, object]:
    """Return the record of this number."""
    middle = "灰度发布平台上线了" if number % 10 == 0 else "项目部署"
    return {"id": f"{number:05}", "text": f"note {number}: {middle} {number * 7919 % 104729}", "tags": ["note"]}
