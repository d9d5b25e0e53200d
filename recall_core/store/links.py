"""The links between records."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..filters import Selection
from ..models import Link
from ..times import from_micros
from .compile import compile_selection
from .connection import select
from .database import Database

# `record` is the alias that a selection reads: each end has to be one that it admits.
ENDS = """
FROM link
JOIN (SELECT record.key, record.id FROM record WHERE {selection}) AS source ON source.key = link.from_key
JOIN (SELECT record.key, record.id FROM record WHERE {selection}) AS target ON target.key = link.to_key
"""
LINK = """
INSERT INTO link(from_key, to_key, kind, created_at) SELECT source.key, target.key, ?, ?
FROM record AS source JOIN record AS target WHERE source.id = ? AND target.id = ? ON CONFLICT DO NOTHING
"""
UNLINK = """
DELETE FROM link WHERE from_key = (SELECT key FROM record WHERE id = ?)
AND to_key = (SELECT key FROM record WHERE id = ?) AND (?3 IS NULL OR kind = ?3) RETURNING 1
"""
NAMED = "SELECT key FROM record WHERE id IN (SELECT value FROM json_each(?))"


class LinkTable:
    """The links of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, source: str, target: str, kind: str, now: int) -> None:
        """Link two records by their ids; a link that is there stays as it is."""
        with self._database.write() as connection:
            connection.execute(LINK, (kind, now, source, target))

    def delete(self, source: str, target: str, kind: str | None) -> int:
        """Delete the links from one record to another, of one kind or of all; return how many there were."""
        with self._database.write() as connection:
            return len(select(connection, UNLINK, (source, target, kind)))

    def find(self, ids: Sequence[str], selection: Selection) -> list[Link]:
        """Return the links from and to these records, both of whose ends are selected; the oldest first."""
        clause = compile_selection(selection)
        ends = ENDS.format(selection=clause.sql)
        which = f"WHERE link.from_key IN ({NAMED}) OR link.to_key IN ({NAMED})"
        sql = f"SELECT source.id, target.id, link.kind, link.created_at {ends} {which} ORDER BY 4, 1, 2, 3"
        named = json.dumps(ids)
        with self._database.read() as connection:
            if not select(connection, "SELECT 1 FROM link LIMIT 1"):
                return []
            rows = select(connection, sql, (*clause.bindings, *clause.bindings, named, named))
        return [
            Link(source=source, target=target, kind=kind, created_at=from_micros(created_at))
            for source, target, kind, created_at in rows
        ]
