"""The chunks of a file that wait for a vector: the embedding queue, shared by all processes that have the file open."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import apsw

from ..filters import Selection
from .compile import SQLValue, compile_selection
from .connection import select, select_one
from .database import Database
from .protocols import Backlog, PendingChunk, Space
from .vectors import check_own

LEASE = 10_000_000  # microseconds that a chunk is kept for whoever embeds it; renewed while that takes longer
RETRY_AFTER = 60_000_000  # microseconds until what could not be embedded is tried again; doubles with each failure
LONGEST_DELAY = 64 * RETRY_AFTER

# A lease or a delay that reaches much further than any of ours is that of a clock which was wrong: it binds nobody.
# (Ours may reach a bit further, too: who waits for the write lock has looked at the clock before.)
LEASED = f"owner IS NOT NULL AND leased_until > ?1 AND leased_until <= ?1 + {8 * LEASE}"
DUE = f"""
FROM pending JOIN chunk ON chunk.key = pending.chunk_key JOIN record ON record.key = chunk.record_key
WHERE pending.attempts <= ?2 AND record.indexed > 0
AND (pending.next_at <= ?1 OR pending.next_at > ?1 + {2 * LONGEST_DELAY})
"""
# A text that is being embedded for one chunk is not embedded for another at the same time.
UNCLAIMED = f"AND chunk.hash NOT IN (SELECT hash FROM pending JOIN chunk ON chunk.key = chunk_key WHERE {LEASED})"
AMONG = "AND pending.chunk_key IN (SELECT value FROM json_each(?4))"
CLAIM = f"""
SELECT pending.chunk_key, chunk.hash, chunk.start, chunk.stop, record.key
{DUE} {UNCLAIMED} {{among}} ORDER BY pending.attempts, pending.chunk_key LIMIT ?3
"""
LEND = "UPDATE pending SET owner = ?, leased_until = ? WHERE chunk_key IN (SELECT value FROM json_each(?))"
SPOKEN = "SELECT key, role, text FROM record WHERE key IN (SELECT value FROM json_each(?))"
# Only while the chunk still says what was embedded.
SETTLE = """
INSERT INTO embedding(chunk_key, space_id, vector) SELECT key, ?, ? FROM chunk WHERE key = ? AND hash = ?
ON CONFLICT(chunk_key, space_id) DO UPDATE SET vector = excluded.vector WHERE NOT given
"""
SETTLED = "DELETE FROM pending WHERE chunk_key = ? AND EXISTS (SELECT 1 FROM chunk WHERE key = chunk_key AND hash = ?)"
# It is the text that failed, for all chunks that wait with it.
FAIL = f"""
UPDATE pending SET attempts = attempts + ?1, error = ?2, owner = NULL, leased_until = 0,
  next_at = ?3 + min(?4 << min(attempts, 6), {LONGEST_DELAY})
WHERE chunk_key IN (SELECT key FROM chunk WHERE hash = ?5)
"""
RELEASE = "UPDATE pending SET owner = NULL, leased_until = 0 WHERE owner IN (SELECT value FROM json_each(?))"
COUNT = f"""
SELECT count(*), count(error), count(*) FILTER (WHERE attempts > ?2), count(*) FILTER (WHERE {LEASED}) FROM pending
"""


class PendingTable:
    """Chunks without a vector of the memory's own embedder, who is embedding them, and how often that has failed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(
        self, owner: str, limit: int, now: int, *, most_failures: int, keys: Sequence[int] | None = None
    ) -> list[PendingChunk]:
        """Lend chunks that may be tried at `now` (microseconds) to `owner`, and return them; of `keys` if given.

        Those that have failed least often come first, so that none keeps the others waiting, then the oldest. One that
        has failed more than `most_failures` times rests. Nothing is written if none is due.
        """
        bindings: list[SQLValue] = [now, most_failures, limit]
        among = "" if keys is None else AMONG
        if keys is not None:
            bindings.append(json.dumps(list(keys)))
        with self._database.read() as connection:
            if select_one(connection, CLAIM.format(among=among), (now, most_failures, 1, *bindings[3:])) is None:
                return []
        with self._database.write() as connection:
            rows = select(connection, CLAIM.format(among=among), bindings)
            connection.execute(LEND, (owner, now + LEASE, json.dumps([key for key, *_ in rows])))
            return _read(connection, rows)

    def renew(self, owners: Sequence[str], now: int) -> None:
        """Let the leases of these owners last for another while from `now` on."""
        with self._database.write() as connection:
            for owner in owners:
                connection.execute("UPDATE pending SET leased_until = ? WHERE owner = ?", (now + LEASE, owner))

    def release(self, owners: Sequence[str]) -> None:
        """Give back what these owners have claimed."""
        with self._database.write() as connection:
            connection.execute(RELEASE, (json.dumps(list(owners)),))

    def settle(self, space: Space, chunks: Sequence[PendingChunk], vectors: Mapping[bytes, bytes]) -> None:
        """Store our own vectors, by text hash, of chunks that waited for them.

        Chunks that were deleted, or say something else meanwhile, are passed over; the latter go on waiting. Raises
        EmbedderMismatchError if the file went over to another model meanwhile.
        """
        with self._database.write() as connection:
            check_own(connection, self._database.path, space)
            connection.executemany(SETTLE, [(space.id, vectors[chunk.hash], chunk.key, chunk.hash) for chunk in chunks])
            connection.executemany(SETTLED, [(chunk.key, chunk.hash) for chunk in chunks])

    def fail(self, errors: Mapping[bytes, str], now: int, *, delay: int = RETRY_AFTER, counts: bool = True) -> None:
        """Note why texts, by their hashes, could not be embedded; they are tried again `delay` microseconds after
        `now`, after twice as long with each failure that `counts`, up to 64 minutes.
        """
        with self._database.write() as connection:
            rows = [(int(counts), error, now, delay, hash_) for hash_, error in errors.items()]
            connection.executemany(FAIL, rows)

    def retry(self, *, most_failures: int, resting: bool = False) -> None:
        """Let chunks that could not be embedded be tried again at once, and those that rest, too, if asked for."""
        where = "next_at > 0 AND attempts <= ?1"
        if resting:
            where += " OR attempts > ?1"
        with self._database.read() as connection:
            if select_one(connection, f"SELECT 1 FROM pending WHERE {where} LIMIT 1", (most_failures,)) is None:
                return
        attempts = "CASE WHEN attempts > ?1 THEN 0 ELSE attempts END"
        with self._database.write() as connection:
            connection.execute(f"UPDATE pending SET next_at = 0, attempts = {attempts} WHERE {where}", (most_failures,))

    def has_open(self, now: int, most_failures: int, keys: Sequence[int] | None = None) -> bool:
        """Tell whether chunks, of `keys` if given, are being embedded or could be at `now` (microseconds)."""
        sql = f"SELECT 1 {DUE}"
        bindings: list[SQLValue] = [now, most_failures]
        if keys is not None:
            sql, bindings = f"{sql} {AMONG}", [*bindings, 1, json.dumps(list(keys))]
        with self._database.read() as connection:
            return select_one(connection, f"{sql} LIMIT 1", bindings) is not None

    def waiting(self, most_failures: int) -> int:
        """Count the chunks that wait and do not rest."""
        sql = "SELECT (SELECT count(*) FROM pending) - (SELECT count(*) FROM pending WHERE attempts > ?)"  # both quick
        with self._database.read() as connection:
            return int(select(connection, sql, (most_failures,))[0][0])

    def count(self, now: int, most_failures: int) -> Backlog:
        """Count the chunks that wait, by their state at `now` (microseconds)."""
        with self._database.read() as connection:
            return Backlog(*select(connection, COUNT, (now, most_failures))[0])

    def count_selected(self, selection: Selection) -> int:
        """Count the chunks that wait of the selected records."""
        clause = compile_selection(selection)
        sql = f"""
        SELECT count(*) FROM pending JOIN chunk ON chunk.key = chunk_key JOIN record ON record.key = chunk.record_key
        WHERE {clause.sql}
        """
        with self._database.read() as connection:
            return int(select(connection, sql, clause.bindings)[0][0])

    def errors(self, limit: int) -> list[tuple[str, int]]:
        """Return the last errors of the chunks that wait, the most frequent first, and how many have each."""
        sql = """
        SELECT error, count(*) FROM pending WHERE error IS NOT NULL GROUP BY error ORDER BY count(*) DESC, error LIMIT ?
        """
        with self._database.read() as connection:
            return [(str(error), count) for error, count in select(connection, sql, (limit,))]


def _read(connection: apsw.Connection, rows: Sequence[tuple[int, bytes, int, int, int]]) -> list[PendingChunk]:
    """Return the chunks of rows with their texts."""
    keys = sorted({record_key for *_, record_key in rows})
    spoken = {key: (role, text) for key, role, text in select(connection, SPOKEN, (json.dumps(keys),))}
    return [
        PendingChunk(key, hash_, spoken[record_key][0], spoken[record_key][1][start:stop])
        for key, hash_, start, stop, record_key in rows
    ]
