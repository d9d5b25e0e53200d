"""What may be removed from a file together: single records, and sessions as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from ..filters import Filter, Selection
from .compile import ALWAYS, Clause, compile_filter, compile_scope, compile_selection
from .connection import select
from .database import Database
from .protocols import Unit

RECORDS = "SELECT scope, NULL, id, 1, created_at FROM record WHERE {base} AND {wanted}"
SESSIONS = """
SELECT scope, session, NULL, count(*), max(created_at) FROM record
WHERE session IS NOT NULL AND {base} GROUP BY scope, session HAVING min({wanted}) = 1
"""
LARGE_SCOPES = "scope IN (SELECT scope FROM record GROUP BY scope HAVING count(*) > ?)"
# Titles of sessions that hold no record any more.
BARE_TITLES = """
DELETE FROM session WHERE (scope, id) IN (SELECT scope, id FROM session AS record WHERE created_at < ? AND {scope}
  AND NOT EXISTS (SELECT 1 FROM record AS message WHERE message.scope = record.scope AND message.session = record.id))
"""


class CleaningTable:
    """The records of one database as units: a record that belongs to no session, or a session."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def records(self, base: Selection, wanted: Filter | None) -> Iterator[Unit]:
        """Yield the wanted ones of the selected records, each by itself, even out of a session."""
        return self._read(RECORDS, base, _compile(wanted))

    def units(self, base: Selection, wanted: Filter | None) -> Iterator[Unit]:
        """Yield the wanted ones of the selected records that belong to no session, and the sessions all of whose
        selected records are wanted.
        """
        yield from self._read(f"{RECORDS} AND session IS NULL", base, _compile(wanted))
        yield from self._read(SESSIONS, base, _compile(wanted))

    def units_of_large_scopes(self, base: Selection, wanted: Filter | None, most: int) -> list[Unit]:
        """Return the units of all scopes with more than so many records: by scope, the newest first."""
        clause, large = _compile(wanted), Clause(LARGE_SCOPES, (most,))
        found = [
            *self._read(f"{RECORDS} AND session IS NULL", base, clause, large),
            *self._read(SESSIONS, base, clause, large),
        ]
        return sorted(found, key=lambda unit: (unit.scope, -unit.last, unit.session or "", unit.id or ""))

    def find_session(self, base: Selection, wanted: Filter | None, unit: Unit) -> Unit | None:
        """Return a session as it now is, None if its selected records are not all wanted."""
        only = Clause("scope = ? AND session = ?", (unit.scope, unit.session))
        return next(self._read(SESSIONS, base, _compile(wanted), only), None)

    def drop_titles(self, scope: str, before: int) -> None:
        """Delete the titles that were given before a time (microseconds) to sessions that hold nothing any more."""
        clause = compile_scope(scope)
        with self._database.write() as connection:
            connection.execute(BARE_TITLES.format(scope=clause.sql), (before, *clause.bindings))

    def count_overdue(self, before: int) -> int:
        """Count the records in the trash that were deleted before a time (microseconds)."""
        with self._database.read() as connection:
            return int(select(connection, "SELECT count(*) FROM trash WHERE deleted_at < ?", (before,))[0][0])

    def _read(self, sql: str, base: Selection, wanted: Clause, only: Clause | None = None) -> Iterator[Unit]:
        chosen = compile_selection(base)
        where, bindings = chosen.sql, chosen.bindings
        if only is not None:
            where, bindings = f"{where} AND {only.sql}", (*bindings, *only.bindings)
        with self._database.read() as connection:
            rows = select(connection, sql.format(base=where, wanted=wanted.sql), (*bindings, *wanted.bindings))
        return (Unit(*row) for row in rows)


def _compile(wanted: Filter | None) -> Clause:
    return ALWAYS if wanted is None else compile_filter(wanted)
