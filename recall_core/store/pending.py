"""The chunks of a file that wait for a vector."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from .compile import SQLValue
from .connection import select, select_one
from .database import Database
from .protocols import PendingChunk, Space

DUE = """
SELECT pending.chunk_key, chunk.hash, chunk.start, chunk.stop, record.key
FROM pending JOIN chunk ON chunk.key = pending.chunk_key JOIN record ON record.key = chunk.record_key
WHERE pending.next_at <= ? AND record.indexed > 0
"""
SPOKEN = "SELECT key, role, text FROM record WHERE key IN (SELECT value FROM json_each(?))"
# Only while the chunk still says what was embedded.
SETTLE = """
INSERT INTO embedding(chunk_key, space_id, vector) SELECT key, ?, ? FROM chunk WHERE key = ? AND hash = ?
ON CONFLICT(chunk_key, space_id) DO UPDATE SET vector = excluded.vector WHERE NOT given
"""
SETTLED = "DELETE FROM pending WHERE chunk_key = ? AND EXISTS (SELECT 1 FROM chunk WHERE key = chunk_key AND hash = ?)"
FAIL = """
UPDATE pending SET attempts = attempts + 1, error = ?, next_at = ? + ? * (1 << min(attempts, 6))
WHERE chunk_key IN (SELECT value FROM json_each(?))
"""


class PendingTable:
    """Chunks without a vector of the memory's own embedder, and how often that has failed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, limit: int, now: int, keys: Sequence[int] | None = None) -> list[PendingChunk]:
        """Return chunks that wait for a vector in the memory's own space and may be tried at `now` (microseconds).

        Those that have failed least often come first, so that none keeps the others waiting.
        """
        sql = DUE
        bindings: list[SQLValue] = [now]
        if keys is not None:
            sql += " AND pending.chunk_key IN (SELECT value FROM json_each(?))"
            bindings.append(json.dumps(list(keys)))
        sql += " ORDER BY pending.attempts, pending.chunk_key LIMIT ?"
        with self._database.read() as connection:
            rows = select(connection, sql, (*bindings, limit))
            keys = sorted({record_key for *_, record_key in rows})
            spoken = {key: (role, text) for key, role, text in select(connection, SPOKEN, (json.dumps(keys),))}
        return [
            PendingChunk(key, hash_, spoken[record_key][0], spoken[record_key][1][start:stop])
            for key, hash_, start, stop, record_key in rows
        ]

    def settle(self, space: Space, chunks: Sequence[PendingChunk], vectors: Mapping[bytes, bytes]) -> None:
        """Store our own vectors, by text hash, of chunks that waited for them.

        Chunks that were deleted, or say something else meanwhile, are passed over; the latter go on waiting.
        """
        with self._database.write() as connection:
            connection.executemany(SETTLE, [(space.id, vectors[chunk.hash], chunk.key, chunk.hash) for chunk in chunks])
            connection.executemany(SETTLED, [(chunk.key, chunk.hash) for chunk in chunks])

    def fail(self, keys: Sequence[int], error: str, now: int, delay: int) -> None:
        """Note that these chunks could not be embedded, and are to be tried again `delay` microseconds after `now`.

        With each further failure the delay doubles, six times at most.
        """
        with self._database.write() as connection:
            connection.execute(FAIL, (error, now, delay, json.dumps(list(keys))))

    def retry(self) -> None:
        """Let chunks that could not be embedded be tried again at once."""
        with self._database.read() as connection:
            if select_one(connection, "SELECT 1 FROM pending WHERE next_at > 0") is None:
                return
        with self._database.write() as connection:
            connection.execute("UPDATE pending SET next_at = 0 WHERE next_at > 0")
