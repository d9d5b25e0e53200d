"""What insights read of the file: all texts of a selection with their vectors, their terms, and how many of what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ..counts import Breakdown, Count, DayCount, SessionCount
from ..filters import Selection
from ..times import MICROS_PER_DAY
from .compile import SQLValue, compile_selection
from .connection import select, select_one
from .database import Database
from .protocols import Space

if TYPE_CHECKING:
    from ..models import Vectors

TEXTS = """
SELECT record.key, record.id, record.scope, record.role, record.kind, record.text, record.created_at, record.importance
FROM record WHERE {which} ORDER BY record.key
"""
VECTORS = """
SELECT chunk.record_key, embedding.vector FROM record JOIN chunk ON chunk.record_key = record.key
JOIN embedding ON embedding.chunk_key = chunk.key AND embedding.space_id = ? WHERE {which}
"""
# What of the links of some records another one would take over: links among these, or that it has, are none.
TAKEN_OVER = """
WITH one(key) AS (SELECT key FROM record WHERE id IN (SELECT value FROM json_each(?1))),
  left(key) AS (SELECT key FROM record WHERE id = ?2)
SELECT DISTINCT iif(from_key IN one, left.key, from_key), iif(to_key IN one, left.key, to_key), kind, min(created_at)
FROM link, left WHERE (from_key IN one) <> (to_key IN one) AND left.key NOT IN (from_key, to_key)
GROUP BY 1, 2, 3
"""
ADD_LINK = "INSERT INTO link(from_key, to_key, kind, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
HAS_LINK = "SELECT 1 FROM link WHERE from_key = ? AND to_key = ? AND kind = ?"
GIVEN = """
SELECT space.id, space.name, space.model, space.dimensions, embedding.vector FROM record
JOIN chunk ON chunk.record_key = record.key JOIN embedding ON embedding.chunk_key = chunk.key AND embedding.given
JOIN space ON space.id = embedding.space_id WHERE record.id = ? ORDER BY chunk.place DESC
"""
TERMS = """
SELECT chunk.record_key, chunk.latin, chunk.words, iif(chunk.words = '', chunk.grams, '')
FROM record JOIN chunk ON chunk.record_key = record.key WHERE {which} ORDER BY chunk.record_key, chunk.place
"""
EPOCH_DAY = date(1970, 1, 1)
BATCH = 4_096  # vectors that are taken from the database at a time


COUNTS = {
    "scopes": "SELECT record.scope, count(*) FROM record WHERE {which} GROUP BY 1",
    "sessions": """
    SELECT record.scope, record.session, count(*) FROM record WHERE record.session IS NOT NULL AND {which} GROUP BY 1, 2
    """,
    "roles": "SELECT record.role, count(*) FROM record WHERE {which} GROUP BY 1",
    "kinds": "SELECT record.kind, count(*) FROM record WHERE {which} GROUP BY 1",
    "tags": """
    SELECT tag.value, count(DISTINCT record.key) FROM record JOIN json_each(record.tags) AS tag WHERE {which} GROUP BY 1
    """,
}
LARGEST = "SELECT * FROM ({counts}) ORDER BY 2 DESC, 1 LIMIT ?"
LARGEST_SESSIONS = "SELECT * FROM ({counts}) ORDER BY 3 DESC, 1, 2 LIMIT ?"
# SQLite divides towards zero, and there are times before 1970.
BY_DAY = f"""
SELECT (record.created_at - ((record.created_at % {MICROS_PER_DAY}) + {MICROS_PER_DAY}) % {MICROS_PER_DAY})
  / {MICROS_PER_DAY}, count(*)
FROM record WHERE {{which}} GROUP BY 1 ORDER BY 1
"""


class TextRow(NamedTuple):
    """A record as insights read it. Times are microseconds."""

    key: int
    id: str
    scope: str
    role: str | None
    kind: str
    text: str
    created_at: int
    importance: float


class InsightTable:
    """What insights read of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def texts(self, selection: Selection) -> list[TextRow]:
        """Return the selected records in the order of their keys."""
        clause = compile_selection(selection)
        with self._database.read() as connection:
            rows = select(connection, TEXTS.format(which=clause.sql), clause.bindings)
        return [TextRow._make(row) for row in rows]

    def vectors(self, space: Space, selection: Selection, keys: Sequence[int]) -> Vectors:
        """Return a unit vector for each of the selected records with these keys, ascending: the mean direction of its
        chunks, zeros if none has one. Shape (records, dimensions).
        """
        import numpy as np

        from ..vectors import normalize
        from .vectors import stack_vectors

        clause = compile_selection(selection)
        known = np.array(keys, dtype=np.int64)
        sums = np.zeros((len(known), space.dimensions), dtype=np.float32)
        with self._database.read() as connection:
            rows = connection.execute(VECTORS.format(which=clause.sql), (space.id, *clause.bindings))
            for batch in _batches(rows):
                owners, vectors = stack_vectors(batch, space.dimensions)
                owner = np.array(owners, dtype=np.int64)
                places = np.searchsorted(known, owner)
                inside = places < len(known)
                inside[inside] = known[places[inside]] == owner[inside]
                np.add.at(sums, places[inside], normalize(vectors[inside]))
        # In place: of 100,000 records these are 150 MB.
        sums /= np.maximum(np.sqrt(np.einsum("ij,ij->i", sums, sums)), 1e-12)[:, None]
        return sums

    def terms(self, selection: Selection) -> dict[int, list[str]]:
        """Return the terms of the selected records by their keys: words, stems and identifiers, and for a script that
        no dictionary cuts pairs of characters.
        """
        clause = compile_selection(selection)
        found: dict[int, list[str]] = {}
        with self._database.read() as connection:
            for key, *columns, grams in connection.execute(TERMS.format(which=clause.sql), clause.bindings):
                own = found.setdefault(key, [])
                for column in columns:
                    own += column.split()
                own += (gram for gram in grams.split() if len(gram) > 1)
        return found

    def count(self, selection: Selection, days: int, limit: int) -> Breakdown:
        """Count the selected records by what they have: at most `limit` counts of each kind, the largest."""
        clause = compile_selection(selection)

        def find(sql: str, *bindings: SQLValue) -> list[tuple[Any, ...]]:
            return select(connection, sql, (*clause.bindings, *bindings))

        counts = {name: sql.format(which=clause.sql) for name, sql in COUNTS.items()}
        with self._database.read() as connection:
            found = {
                name: tuple(Count(*row) for row in find(LARGEST.format(counts=counts[name]), limit))
                for name in ("scopes", "roles", "kinds", "tags")
            }
            sessions = find(LARGEST_SESSIONS.format(counts=counts["sessions"]), limit)
            by_day = find(BY_DAY.format(which=clause.sql))
        totals = accumulate(count for _, count in by_day)
        last = selection.now // MICROS_PER_DAY
        return Breakdown(
            records=sum(count for _, count in by_day),
            scopes=found["scopes"],
            sessions=tuple(SessionCount(*row) for row in sessions),
            roles=found["roles"],
            kinds=found["kinds"],
            tags=found["tags"],
            by_day=tuple(
                DayCount(EPOCH_DAY + timedelta(days=day), count, total)
                for (day, count), total in zip(by_day, totals, strict=True)
            ),
            period_days=days,
            recent=sum(count for day, count in by_day if last - days < day <= last),
            before=sum(count for day, count in by_day if last - 2 * days < day <= last - days),
        )

    def period(self, selection: Selection) -> tuple[int, int] | None:
        """Return when the first and the last selected record was made (microseconds), None if there is none."""
        clause = compile_selection(selection)
        sql = f"SELECT min(created_at), max(created_at) FROM record WHERE {clause.sql}"
        with self._database.read() as connection:
            ((first, last),) = select(connection, sql, clause.bindings)
        return None if first is None else (first, last)

    def links_of(self, ids: Sequence[str], into: str) -> list[tuple[int, int, str, int]]:
        """Return the links that the record `into` would have besides its own if it took over those of others."""
        with self._database.read() as connection:
            wanted = select(connection, TAKEN_OVER, (json.dumps(list(ids)), into))
            return [row for row in wanted if select_one(connection, HAS_LINK, row[:3]) is None]

    def add_links(self, links: Sequence[tuple[int, int, str, int]]) -> None:
        """Store links as `links_of` returns them."""
        with self._database.write() as connection:
            connection.executemany(ADD_LINK, links)

    def given_vectors(self, id: str) -> list[tuple[Space, bytes]]:
        """Return the vectors that callers have brought for a record, one for each space."""
        with self._database.read() as connection:
            rows = select(connection, GIVEN, (id,))
        return list({row[0]: (Space(*row[:4]), row[4]) for row in rows}.values())


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, BATCH)):
        yield batch
