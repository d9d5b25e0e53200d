"""The conversations of a file: their titles, their messages in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ..filters import Selection, restricts_records
from ..models import Record
from .compile import SQLValue, compile_scope, compile_selection
from .connection import select, select_one
from .database import Database
from .protocols import SessionInfo, SessionKey
from .rows import RECORD_COLUMNS, row_record

LIST = """
SELECT scope, id, max(title), min(created_at), max(updated_at), sum(records) FROM (
  SELECT scope, session AS id, NULL AS title, min(created_at) AS created_at, max(created_at) AS updated_at,
    count(*) AS records
  FROM record WHERE session IS NOT NULL AND {selection} GROUP BY scope, session
  UNION ALL
  SELECT scope, id, title, created_at, created_at, 0 FROM session AS record WHERE {titled}
) GROUP BY scope, id ORDER BY max(updated_at) DESC, scope, id
"""
FIND = """
SELECT scope, id, max(title), min(created_at), max(updated_at), sum(records) FROM (
  SELECT scope, session AS id, NULL AS title, min(created_at) AS created_at, max(created_at) AS updated_at,
    count(*) AS records
  FROM record WHERE scope = ? AND session = ? AND {selection} GROUP BY scope, session
  UNION ALL
  SELECT scope, id, title, created_at, created_at, 0 FROM session WHERE scope = ? AND id = ?
) GROUP BY scope, id
"""
SAVE = """
INSERT INTO session(scope, id, title, created_at) VALUES (?, ?, ?, ?)
ON CONFLICT(scope, id) DO UPDATE SET title = excluded.title
"""
ADD = """
INSERT INTO session(scope, id, title, created_at) VALUES (?, ?, ?, ?)
ON CONFLICT(scope, id) DO UPDATE SET title = excluded.title, created_at = excluded.created_at WHERE ? OR title IS NULL
"""
TITLES = "SELECT scope, id, title, created_at, created_at, 0 FROM session AS record WHERE title IS NOT NULL AND {which}"
HELD = "(scope, id) IN (SELECT scope, session FROM record WHERE {selection})"
HOLDING = """
SELECT DISTINCT scope, session FROM record WHERE id IN (SELECT value FROM json_each(?)) AND session IS NOT NULL
"""
DROP_BARE = """
DELETE FROM session WHERE scope = ?1 AND id = ?2 AND NOT EXISTS (SELECT 1 FROM record WHERE scope = ?1 AND session = ?2)
"""
# `before` is a record of the session; the page ends with the one in front of it.
PAGE = f"""
SELECT * FROM (
  SELECT {RECORD_COLUMNS}, record.place, record.key FROM record WHERE scope = ? AND session = ? AND {{selection}}
  {{before}} ORDER BY record.place DESC, record.created_at DESC, record.key DESC LIMIT ?
) ORDER BY place, created_at, key
"""
BEFORE = """
AND (record.place, record.created_at, record.key) <
  (SELECT place, created_at, key FROM record WHERE id = ? AND scope = ? AND session = ?)
"""


class SessionTable:
    """Conversations by scope and session id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, selection: Selection) -> list[SessionInfo]:
        """Return the sessions that have selected records, or a title, in the scope; the last active one first."""
        records = compile_selection(selection)
        titled = compile_selection(Selection(scope=selection.scope, now=0, ignores_expiry=True))
        sql = LIST.format(selection=records.sql, titled=titled.sql)
        with self._database.read() as connection:
            rows = select(connection, sql, (*records.bindings, *titled.bindings))
        return [SessionInfo(*row) for row in rows]

    def find(self, scope: str, session: str, now: int) -> SessionInfo | None:
        """Return one session of exactly this scope, None if nothing is stored of it."""
        clause = compile_selection(Selection(now=now))
        bindings = (scope, session, *clause.bindings, scope, session)
        with self._database.read() as connection:
            row = select_one(connection, FIND.format(selection=clause.sql), bindings)
        return SessionInfo(*row) if row else None

    def holds(self, scope: str, session: str, id: object) -> bool:
        """Tell whether a record is stored in a session."""
        sql = "SELECT 1 FROM record WHERE id = ? AND scope = ? AND session = ?"
        with self._database.read() as connection:
            return isinstance(id, str) and select_one(connection, sql, (id, scope, session)) is not None

    def save(self, scope: str, session: str, title: str | None, now: int) -> None:
        """Store a session's title."""
        with self._database.write() as connection:
            connection.execute(SAVE, (scope, session, title, now))

    def titles(self, selection: Selection) -> list[SessionInfo]:
        """Return the sessions with a title in the selection's scope, by scope and id; if that asks for more than a
        scope, those that have selected records. Nothing is counted.
        """
        clause = compile_scope(selection.scope)
        sql = TITLES.format(which=clause.sql)
        if restricts_records(selection):
            clause = compile_selection(selection)
            sql = TITLES.format(which=HELD.format(selection=clause.sql))
        with self._database.read() as connection:
            return [SessionInfo(*row) for row in select(connection, f"{sql} ORDER BY scope, id", clause.bindings)]

    def add(self, scope: str, session: str, title: str, created_at: int, replaces: bool) -> None:
        """Store a session's title and when it was made, unless it has a title and this one is not to replace it."""
        with self._database.write() as connection:
            connection.execute(ADD, (scope, session, title, created_at, replaces))

    def messages(self, scope: str, session: str, limit: int, before: str | None, now: int) -> list[Record]:
        """Return the last `limit` records of a session, or the last ones before the record `before`, in turn order."""
        clause = compile_selection(Selection(scope="", now=now))
        bindings: tuple[SQLValue, ...] = (scope, session, *clause.bindings)
        if before is not None:
            bindings += (before, scope, session)
        sql = PAGE.format(selection=clause.sql, before="" if before is None else BEFORE)
        with self._database.read() as connection:
            return [row_record(row) for row in select(connection, sql, (*bindings, limit))]

    def holding(self, ids: Sequence[str]) -> list[SessionKey]:
        """Return the sessions that hold any of these records."""
        with self._database.read() as connection:
            return [SessionKey(*row) for row in select(connection, HOLDING, (json.dumps(ids),))]

    def drop_bare(self, keys: Iterable[SessionKey]) -> None:
        """Delete the titles of those of these sessions that hold no record any more."""
        with self._database.write() as connection:
            connection.executemany(DROP_BARE, list(keys))

    def delete(self, scope: str, session: str) -> int:
        """Delete a session: its records and its title; return the number of records."""
        with self._database.write() as connection:
            sql = "DELETE FROM record WHERE scope = ? AND session = ? RETURNING 1"
            deleted = select(connection, sql, (scope, session))
            connection.execute("DELETE FROM session WHERE scope = ? AND id = ?", (scope, session))
        return len(deleted)
