"""What the ranking needs to know of chunks and their neighbours, looked up by key."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from ..filters import Selection
from ..models import Chunk, Record
from ..ranking import QUESTION_TOKENS
from .compile import Clause, compile_selection
from .connection import select
from .database import Database
from .protocols import Candidate
from .rows import COLUMNS, RECORD_COLUMNS, row_record

CLOSING = "char(32, 9, 10, 13, 34, 39, 41, 93) || '”’」』）】》'"  # what may follow the mark that ends a sentence
# Whether a longer text asks changes nothing, and reading it for each of its chunks would take long.
DESCRIBE = f"""
SELECT chunk.key, record.key, record.id, record.scope, record.session, record.created_at, chunk.tokens,
  chunk.tokens < {QUESTION_TOKENS[1]} AND substr(rtrim(record.text, {CLOSING}), -1) IN ('?', '？')
FROM chunk JOIN record ON record.key = chunk.record_key
WHERE chunk.key IN (SELECT value FROM json_each(?)) ORDER BY chunk.key
"""
HYDRATE = f"""
SELECT {RECORD_COLUMNS}, chunk.key, chunk.place, chunk.start, chunk.stop
FROM chunk JOIN record ON record.key = chunk.record_key
WHERE chunk.key IN (SELECT value FROM json_each(?))
"""
# The records beside one in its session, in the order of the conversation: by turn, then time, then insertion.
BESIDE = """
SELECT record.key FROM record, (SELECT scope, session, place, created_at, key FROM record WHERE key = ?) AS here
WHERE record.scope = here.scope AND record.session = here.session
AND (record.place, record.created_at, record.key) {side} (here.place, here.created_at, here.key) AND {selection}
ORDER BY record.place {order}, record.created_at {order}, record.key {order} LIMIT ?
"""


class CandidateTable:
    """Looks up chunks by key, with their records."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self, chunk_keys: Sequence[int]) -> list[Candidate]:
        """Return a Candidate for each of these chunks, by ascending chunk key."""
        with self._database.read() as connection:
            rows = select(connection, DESCRIBE, (json.dumps(list(chunk_keys)),))
        return [
            Candidate(
                chunk_key=chunk_key,
                record_key=record_key,
                record_id=record_id,
                scope=scope,
                session=session,
                created_at=created_at,
                tokens=tokens,
                asks=bool(asks),
            )
            for chunk_key, record_key, record_id, scope, session, created_at, tokens, asks in rows
        ]

    def neighbours(self, record_keys: Sequence[int], distance: int, selection: Selection) -> dict[int, dict[int, int]]:
        """Return for each record in a session the keys of selected neighbours by offset: -distance..-1, 1..distance."""
        clause = compile_selection(selection)
        with self._database.read() as connection:
            return {
                key: {
                    **_beside(connection, key, clause, distance, forward=False),
                    **_beside(connection, key, clause, distance, forward=True),
                }
                for key in record_keys
            }

    def chunks_of(self, record_keys: Sequence[int]) -> list[int]:
        """Return the keys of all chunks of these records."""
        sql = "SELECT key FROM chunk WHERE record_key IN (SELECT value FROM json_each(?)) ORDER BY key"
        with self._database.read() as connection:
            return [key for (key,) in select(connection, sql, (json.dumps(list(record_keys)),))]

    def session_sizes(self, sessions: Sequence[tuple[str, str]], now: int) -> dict[tuple[str, str], int]:
        """Return the number of records of each (scope, session) that have not expired at `now` (microseconds)."""
        clause = compile_selection(Selection(now=now))
        sql = f"SELECT count(*) FROM record WHERE scope = ? AND session = ? AND {clause.sql}"
        with self._database.read() as connection:
            return {pair: select(connection, sql, (*pair, *clause.bindings))[0][0] for pair in sessions}

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


def _beside(connection: apsw.Connection, key: int, clause: Clause, distance: int, *, forward: bool) -> dict[int, int]:
    side, order, step = (">", "ASC", 1) if forward else ("<", "DESC", -1)
    sql = BESIDE.format(side=side, order=order, selection=clause.sql)
    rows = select(connection, sql, (key, *clause.bindings, distance))
    return {step * (place + 1): neighbour for place, (neighbour,) in enumerate(rows)}
