"""The way of a file to another model: a second space that is filled beside the memory's own, and takes its place.

The new space is called `memory:next` until it is complete; then the two change names in one transaction, and the old
one, `memory:old:` and its number, is emptied bit by bit.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import apsw

from .connection import select, select_one
from .database import Database
from .protocols import NEXT_SPACE, OLD_SPACE, OWN_SPACE, Space
from .vectors import SPACE_COLUMNS

CLEARED_AT_ONCE = 2_048  # vectors deleted in one transaction

# CROSS JOIN: the chunks one after the other, each with its record. One that is not embedded as a rule, but has a vector
# that a caller brought, gets one in its place.
MISSING = f"""
SELECT chunk.key, chunk.hash, chunk.start, chunk.stop, record.key
FROM chunk CROSS JOIN record ON record.key = chunk.record_key
WHERE chunk.key > ? AND record.indexed > 0 AND (chunk.embeds OR EXISTS
    (SELECT 1 FROM embedding JOIN space ON space.id = space_id AND name = '{OWN_SPACE}' WHERE chunk_key = chunk.key))
  AND NOT EXISTS (SELECT 1 FROM embedding WHERE chunk_key = chunk.key AND space_id = ?)
  AND chunk.key NOT IN (SELECT value FROM json_each(?))
ORDER BY chunk.key LIMIT ?
"""
RECORDS = "SELECT key, id, role, text FROM record WHERE key IN (SELECT value FROM json_each(?))"
# Only while the chunk still says what was embedded.
FILL = """
INSERT INTO embedding(chunk_key, space_id, vector) SELECT key, ?, ? FROM chunk WHERE key = ? AND hash = ?
ON CONFLICT(chunk_key, space_id) DO NOTHING
"""
NOTE = """
INSERT INTO vector_change(space_id, chunk_key) SELECT ?, key FROM chunk WHERE key = ? AND hash = ?
ON CONFLICT DO NOTHING
"""
REQUEUE = f"""
DELETE FROM pending;
INSERT INTO pending(chunk_key) SELECT key FROM chunk WHERE embeds AND NOT EXISTS
  (SELECT 1 FROM embedding JOIN space ON space.id = space_id AND name = '{OWN_SPACE}' WHERE chunk_key = chunk.key);
"""
GIVEN = f"""
SELECT {", ".join(f"space.{column}" for column in SPACE_COLUMNS.split(", "))}, embedding.vector
FROM record JOIN chunk ON chunk.record_key = record.key
JOIN embedding ON embedding.chunk_key = chunk.key AND embedding.given JOIN space ON space.id = embedding.space_id
WHERE record.id = ? ORDER BY chunk.place DESC
"""
CLEAR = """
DELETE FROM embedding WHERE key IN
  (SELECT key FROM embedding WHERE key > ?2 AND space_id = ?1 ORDER BY key LIMIT ?3) RETURNING key
"""


@dataclass(frozen=True, slots=True)
class MissingChunk:
    """A chunk without a vector in the new space: its record, who speaks, and the text."""

    key: int
    hash: bytes
    record_id: str
    role: str | None
    text: str


class MoveTable:
    """The spaces that a file moves from and to."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, model: str, dimensions: int) -> tuple[Space | None, bool]:
        """Return the new space, made if there is none, and whether it was made now; None if the file is there already.

        A space that was there may be another model's.
        """
        with self._database.write() as connection:
            own, known = _find(connection, OWN_SPACE), _find(connection, NEXT_SPACE)
            if known is not None:
                return known, False
            if own is not None and (own.model, own.dimensions) == (model, dimensions):
                return None, False
            sql = "INSERT INTO space(name, model, dimensions) VALUES (?, ?, ?)"
            connection.execute(sql, (NEXT_SPACE, model, dimensions))
            return _find(connection, NEXT_SPACE), True

    def count(self, space: Space) -> tuple[int, int]:
        """Return how many chunks have a vector in a space, and how many are embedded at all."""
        sql = "SELECT (SELECT count(*) FROM embedding WHERE space_id = ?), (SELECT count(*) FROM chunk WHERE embeds)"
        with self._database.read() as connection:
            ((done, chunks),) = select(connection, sql, (space.id,))
        return int(done), int(chunks)

    def last_chunk(self) -> int:
        """Return the key of the newest chunk, 0 if there is none."""
        with self._database.read() as connection:
            ((key,),) = select(connection, "SELECT ifnull(max(key), 0) FROM chunk")
        return int(key)

    def missing(self, space: Space, after: int, limit: int, without: Iterable[int] = ()) -> list[MissingChunk]:
        """Return chunks from behind the key `after` that have no vector in a space, but for some."""
        with self._database.read() as connection:
            rows = select(connection, MISSING, (after, space.id, json.dumps(list(without)), limit))
            keys = json.dumps(sorted({record_key for *_, record_key in rows}))
            records = {key: (id, role, text) for key, id, role, text in select(connection, RECORDS, (keys,))}
        return [
            MissingChunk(key, hash_, *records[record_key][:2], records[record_key][2][start:stop])
            for key, hash_, start, stop, record_key in rows
        ]

    def fill(self, space: Space, vectors: Sequence[tuple[int, bytes, bytes]]) -> None:
        """Store vectors (key, hash, vector) in the new space; chunks that say something else now are passed over.

        Nobody searches that space yet, so no change is noted but for its own index: what other processes hold in memory
        stays as it is.
        """
        with self._database.write() as connection, _without_triggers(connection):
            connection.executemany(FILL, [(space.id, vector, key, hash_) for key, hash_, vector in vectors])
            connection.executemany(NOTE, [(space.id, key, hash_) for key, hash_, _ in vectors])

    def given(self, record_id: str) -> list[tuple[Space, bytes]]:
        """Return the vectors that callers brought for a record, with their spaces."""
        with self._database.read() as connection:
            return [(Space(*space), vector) for *space, vector in select(connection, GIVEN, (record_id,))]

    def switch(self, space: Space, refused: Mapping[int, str], next_at: int) -> None:
        """Put the new space in the place of the memory's own.

        Chunks without a vector in it wait for one; those that the model refused, and why, until `next_at`
        (microseconds).
        """
        with self._database.write() as connection:
            _retire(connection, OWN_SPACE)
            connection.execute("UPDATE space SET name = ? WHERE id = ?", (OWN_SPACE, space.id))
            connection.execute(REQUEUE)
            connection.executemany(
                "UPDATE pending SET attempts = 1, next_at = ?, error = ? WHERE chunk_key = ?",
                [(next_at, error, key) for key, error in refused.items()],
            )

    def abandon(self) -> Space | None:
        """Give up the new space, and return what it was; None if there is none."""
        with self._database.read() as connection:
            if (space := _find(connection, NEXT_SPACE)) is None:
                return None
        with self._database.write() as connection:
            _retire(connection, NEXT_SPACE)
        return space

    def clear(self) -> int:
        """Delete the vectors of spaces that were replaced or given up, bit by bit; return how many there were."""
        with self._database.read() as connection:
            old = select(connection, "SELECT id FROM space WHERE substr(name, 1, ?) = ?", (len(OLD_SPACE), OLD_SPACE))
        return sum(self._clear(space_id) for (space_id,) in old)

    def _clear(self, space_id: int) -> int:
        deleted, after = 0, 0
        while True:
            with self._database.write() as connection, _without_triggers(connection):
                keys = [key for (key,) in select(connection, CLEAR, (space_id, after, CLEARED_AT_ONCE))]
                connection.execute("DELETE FROM vector_change WHERE space_id = ?", (space_id,))
            deleted += len(keys)
            if len(keys) < CLEARED_AT_ONCE:
                break
            after = max(keys)
        with self._database.write() as connection:
            connection.execute("DELETE FROM space WHERE id = ?", (space_id,))
        return deleted


def _find(connection: apsw.Connection, name: str) -> Space | None:
    row = select_one(connection, f"SELECT {SPACE_COLUMNS} FROM space WHERE name = ?", (name,))
    return Space(*row) if row else None


def _retire(connection: apsw.Connection, name: str) -> None:
    connection.execute("UPDATE space SET name = ? || id WHERE name = ?", (OLD_SPACE, name))


@contextlib.contextmanager
def _without_triggers(connection: apsw.Connection) -> Iterator[None]:
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    try:
        yield
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
