"""Reads chunks for scoring: those of a scope, of some records, or given ones; and what changed since."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import apsw

from ..chunk_rows import QUESTION_TOKENS, ChunkRow
from ..filters import Selection
from .compile import Clause, compile_scope, compile_selection
from .connection import select
from .database import Database
from .protocols import Space
from .vectors import stack_vectors

if TYPE_CHECKING:
    from ..models import Vectors

CLOSING = "char(32, 9, 10, 13, 34, 39, 41, 93) || '”’」』）】》'"  # what may follow the mark that ends a sentence
# Whether a longer text asks changes nothing, and reading it for each of its chunks would take long.
ROWS = f"""
SELECT chunk.key, record.key, record.id, record.scope, record.session, record.role, record.place, record.created_at,
  record.expires_at, chunk.tokens,
  chunk.tokens < {QUESTION_TOKENS[1]} AND substr(rtrim(record.text, {CLOSING}), -1) IN ('?', '？'),
  chunk.hash, chunk.latin, chunk.grams, chunk.words, chunk.labels
FROM record JOIN chunk ON chunk.record_key = record.key WHERE {{which}} ORDER BY record.key, chunk.place
"""
VECTORS = """
SELECT chunk.key, embedding.vector FROM record JOIN chunk ON chunk.record_key = record.key
JOIN embedding ON embedding.chunk_key = chunk.key AND embedding.space_id = ? WHERE {which}
"""
AMONG_RECORDS = "record.key IN (SELECT value FROM json_each(?))"
AMONG_CHUNKS = "chunk.key IN (SELECT value FROM json_each(?))"


class BlockTable:
    """What scoring reads of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last_change(self) -> int:
        """Return the number of the last change."""
        with self._database.read() as connection:
            return _last_change(connection)

    def changed_since(self, seq: int) -> tuple[int, frozenset[int] | None]:
        """Return the number of the last change and the keys of the records that changed after change `seq`, None if
        that is too long ago.
        """
        with self._database.read() as connection:
            last = _last_change(connection)
            if last == seq:
                return last, frozenset()
            rows = select(connection, "SELECT seq, record_key FROM change WHERE seq > ? ORDER BY seq", (seq,))
        complete = last > seq and len(rows) == last - seq
        return last, frozenset(key for _, key in rows) if complete else None

    def count_chunks(self, scope: str, most: int) -> int:
        """Count the chunks of a scope and its subtree, up to `most`."""
        clause = compile_scope(scope)
        sql = f"""
        SELECT count(*) FROM
          (SELECT 1 FROM record JOIN chunk ON chunk.record_key = record.key WHERE {clause.sql} LIMIT ?)
        """
        with self._database.read() as connection:
            return int(select(connection, sql, (*clause.bindings, most))[0][0])

    def of_scope(self, scope: str) -> list[ChunkRow]:
        """Return all chunks of a scope and its subtree, by record and place."""
        return self._rows(compile_scope(scope))

    def of_records(self, keys: Iterable[int], scope: str) -> list[ChunkRow]:
        """Return the chunks of those of these records that lie in a scope or its subtree."""
        return self._rows(_both(_among(AMONG_RECORDS, keys), compile_scope(scope)))

    def of_chunks(self, keys: Iterable[int]) -> list[ChunkRow]:
        """Return these chunks."""
        return self._rows(_among(AMONG_CHUNKS, keys))

    def vectors_of_scope(self, space: Space, scope: str) -> tuple[list[int], Vectors]:
        """Return the keys of a scope's chunks that have a vector, and the vectors, shape (n, dimensions)."""
        return self._vectors(space, compile_scope(scope))

    def vectors_of_records(self, space: Space, keys: Iterable[int], scope: str) -> tuple[list[int], Vectors]:
        """The same for the chunks of some records of a scope."""
        return self._vectors(space, _both(_among(AMONG_RECORDS, keys), compile_scope(scope)))

    def select_records(self, selection: Selection) -> list[int]:
        """Return the keys of the selected records."""
        clause = compile_selection(selection)
        with self._database.read() as connection:
            rows = select(connection, f"SELECT record.key FROM record WHERE {clause.sql}", clause.bindings)
        return [key for (key,) in rows]

    def _rows(self, clause: Clause) -> list[ChunkRow]:
        with self._database.read() as connection:
            return [ChunkRow._make(row) for row in select(connection, ROWS.format(which=clause.sql), clause.bindings)]

    def _vectors(self, space: Space, clause: Clause) -> tuple[list[int], Vectors]:
        with self._database.read() as connection:
            rows = select(connection, VECTORS.format(which=clause.sql), (space.id, *clause.bindings))
        return stack_vectors(rows, space.dimensions)


def _last_change(connection: apsw.Connection) -> int:
    ((seq,),) = select(connection, "SELECT ifnull(max(seq), 0) FROM change")
    return int(seq)


def _among(condition: str, keys: Iterable[int]) -> Clause:
    return Clause(condition, (json.dumps(sorted(keys)),))


def _both(*clauses: Clause) -> Clause:
    return Clause(
        " AND ".join(clause.sql for clause in clauses), tuple(b for clause in clauses for b in clause.bindings)
    )
