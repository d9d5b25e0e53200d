"""Records beside others in their sessions, and records and chunks in full, looked up by key."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..filters import Selection
from ..models import Chunk, Record
from .compile import compile_selection
from .connection import select
from .database import Database
from .rows import COLUMNS, RECORD_COLUMNS, row_record

HYDRATE = f"""
SELECT {RECORD_COLUMNS}, chunk.key, chunk.place, chunk.start, chunk.stop
FROM chunk JOIN record ON record.key = chunk.record_key
WHERE chunk.key IN (SELECT value FROM json_each(?))
"""
# The records beside each of some in their sessions, in the order of the conversation: by turn, then time, then
# insertion. The n-th before or after, from 0.
BESIDE = """
(SELECT record.key FROM record WHERE record.scope = here.scope AND record.session = here.session
AND (record.place, record.created_at, record.key) {side} (here.place, here.created_at, here.key) AND {selection}
ORDER BY record.place {order}, record.created_at {order}, record.key {order} LIMIT 1 OFFSET {place})
"""
SESSION_SIZES = """
SELECT pair.key, count(*) FROM json_each(?) AS pair
JOIN record ON record.scope = pair.value ->> 0 AND record.session = pair.value ->> 1
WHERE {selection} GROUP BY pair.key
"""


class CandidateTable:
    """Looks up chunks by key, with their records."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def neighbours(self, record_keys: Sequence[int], selection: Selection) -> dict[int, tuple[int | None, ...]]:
        """Return for each of these records, all in sessions, the keys of the selected ones two before, one before, one
        after and two after it.
        """
        clause = compile_selection(selection)
        parts = [
            BESIDE.format(side=side, order=order, place=place, selection=clause.sql)
            for side, order, place in (("<", "DESC", 1), ("<", "DESC", 0), (">", "ASC", 0), (">", "ASC", 1))
        ]
        among = "here.key IN (SELECT value FROM json_each(?))"
        sql = f"SELECT here.key, {', '.join(parts)} FROM record AS here WHERE {among}"
        with self._database.read() as connection:
            rows = select(connection, sql, (*(4 * clause.bindings), json.dumps(list(record_keys))))
        return {key: tuple(beside) for key, *beside in rows}

    def session_sizes(self, sessions: Sequence[tuple[str, str]], selection: Selection) -> dict[tuple[str, str], int]:
        """Return the number of records of each (scope, session) that have not expired."""
        clause = compile_selection(Selection(now=selection.now, ignores_expiry=selection.ignores_expiry))
        with self._database.read() as connection:
            rows = select(
                connection, SESSION_SIZES.format(selection=clause.sql), (json.dumps(sessions), *clause.bindings)
            )
        return {sessions[place]: size for place, size in rows}

    def hydrate(self, chunk_keys: Sequence[int]) -> dict[int, tuple[Record, Chunk]]:
        """Return the record and the chunk of each of these chunk keys; deleted ones are missing."""
        with self._database.read() as connection:
            rows = select(connection, HYDRATE, (json.dumps(list(chunk_keys)),))
        found = {}
        for row in rows:
            record = row_record(row)
            key, place, start, stop = row[len(COLUMNS) :]
            found[key] = (record, Chunk(place, start, stop, record.text[start:stop]))
        return found
