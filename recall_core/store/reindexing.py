"""Records by their keys, to be indexed anew batch by batch, and how far an unfinished run has come."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..filters import Selection
from ..models import Span
from .compile import compile_selection
from .connection import select
from .database import Database
from .dictionary import FIRST_KEY, SAVE, find_progress, read_note
from .protocols import ChunkDraft, Indexed
from .records import read_written

MARK = "reindex"  # key of meta
ADVANCE = """
UPDATE meta SET value = json_set(value, '$.after', ?1)
WHERE key = 'reindex' AND json_extract(value, '$.by') = ?2 AND json_extract(value, '$.after') < ?1
"""
SPANS = """
SELECT record_key, start, stop FROM chunk WHERE record_key IN (SELECT value FROM json_each(?))
ORDER BY record_key, place
"""
TERMS = """
SELECT key, start, stop, tokens, latin, grams, words, labels FROM chunk WHERE record_key = ? ORDER BY place
"""
UPDATE_TERMS = "UPDATE chunk SET tokens = ?, latin = ?, grams = ?, words = ?, labels = ? WHERE key = ?"


class ReindexTable:
    """The records of one database as a list to work off. What other programs wrote, and nobody indexed, is not in it:
    see `RecordTable.stale`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self) -> int:
        """Return the key of the newest record."""
        with self._database.read() as connection:
            return int(select(connection, "SELECT ifnull(max(key), ?) FROM record", (FIRST_KEY,))[0][0])

    def count(self, selection: Selection, after: int, last: int) -> int:
        """Count the selected records behind the key `after`, up to the key `last`."""
        clause = compile_selection(selection)
        sql = f"SELECT count(*) FROM record WHERE indexed > 0 AND key > ? AND key <= ? AND {clause.sql}"
        with self._database.read() as connection:
            return int(select(connection, sql, (after, last, *clause.bindings))[0][0])

    def page(self, selection: Selection, after: int, last: int, limit: int) -> list[Indexed]:
        """Return selected records behind the key `after`, up to the key `last`, in the order of their keys."""
        clause = compile_selection(selection)
        which = f"indexed > 0 AND key > ? AND key <= ? AND {clause.sql}"
        with self._database.read() as connection:
            known = [stale for stale, _ in read_written(connection, which, (after, last, *clause.bindings, limit))]
            spans: dict[int, list[Span]] = {stale.key: [] for stale in known}
            for key, start, stop in select(connection, SPANS, (json.dumps(list(spans)),)):
                spans[key].append((start, stop))
        return [Indexed(stale.key, stale.record, tuple(spans[stale.key])) for stale in known]

    def replace(self, known: Indexed, chunks: Sequence[ChunkDraft]) -> bool:
        """Write the terms of a record's chunks; tell whether any of them differed from what was there.

        Nothing is done if the record was changed, or deleted, since it was read. Vectors stay.
        """
        with self._database.write() as connection:
            found = read_written(connection, "indexed > 0 AND key = ?", (known.key, 1))
            old = select(connection, TERMS, (known.key,))
            if not found or found[0][0].record != known.record or [row[1:3] for row in old] != list(known.spans):
                return False
            changed = [
                (*found_by, key)
                for (key, _, _, *before), found_by in zip(old, map(_terms, chunks), strict=True)
                if before != found_by
            ]
            connection.executemany(UPDATE_TERMS, changed)
            return bool(changed)

    def begin(self, by: str) -> int:
        """Return the key behind which an unfinished run goes on. `by` says what terms are made by: a run by anything
        else begins anew.
        """
        with self._database.write() as connection:
            known = read_note(connection, MARK)
            if known.get("by") == by:
                return find_progress(known, by)
            connection.execute(SAVE, (MARK, json.dumps({"by": by, "after": FIRST_KEY})))
            return FIRST_KEY

    def advance(self, by: str, after: int) -> None:
        """Note that a run has come to the key `after`."""
        with self._database.write() as connection:
            connection.execute(ADVANCE, (after, by))

    def finish(self, by: str) -> None:
        """Note that a run is over."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM meta WHERE key = ? AND json_extract(value, '$.by') = ?", (MARK, by))


def _terms(chunk: ChunkDraft) -> list[int | str]:
    return [chunk.tokens, chunk.latin, chunk.grams, chunk.words, chunk.labels]
