"""The keyword index: FTS5 over terms that recall_core made finds the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from ..bm25 import WEIGHTS, Corpus
from ..filters import Selection
from ..text import match_expression
from .compile import compile_selection
from .connection import select, select_one
from .database import Database

SEARCH = """
SELECT chunk.key FROM chunk_fts JOIN chunk ON chunk.key = chunk_fts.rowid JOIN record ON record.key = chunk.record_key
WHERE chunk_fts MATCH ? AND {selection}
ORDER BY bm25(chunk_fts, {weights}), record.created_at DESC, chunk.key DESC LIMIT ?
"""
COUNT = "SELECT doc FROM temp.term WHERE term = ?"
# FTS5 keeps its totals in row 1 of its data table, as varints: rows, then the tokens of each column.
TOTALS = "SELECT block FROM chunk_fts_data WHERE id = 1"


class KeywordTable:
    """The keyword index of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def search(self, terms: Sequence[str], selection: Selection, limit: int) -> list[int]:
        """Return the selected chunks that hold any of the terms, best first."""
        expression = match_expression(terms)
        if expression is None:
            return []
        clause = compile_selection(selection)
        weights = ", ".join(str(weight) for weight in astuple(WEIGHTS))
        sql = SEARCH.format(weights=weights, selection=clause.sql)
        with self._database.read() as connection:
            rows = select(connection, sql, (expression, *clause.bindings, limit))
        return [key for (key,) in rows]

    def describe(self, terms: Sequence[str]) -> Corpus:
        """Return what the index knows of all chunks and of these terms."""
        counts = {}
        with self._database.read() as connection:
            row = select_one(connection, TOTALS)
            for term in terms:
                found = select_one(connection, COUNT, (term,))
                counts[term] = found[0] if found else 0
        chunks, latin, grams, *_ = (*read_varints(row[0] if row else b""), 0, 0, 0)
        return Corpus(chunks, (latin + grams / 2) / max(chunks, 1), counts)


def read_varints(data: bytes) -> list[int]:
    """Return the numbers of a run of SQLite varints: seven bits a byte, most significant first, at most nine bytes."""
    numbers, value, length = [], 0, 0
    for byte in data:
        length += 1
        value = (value << 8) | byte if length == 9 else (value << 7) | (byte & 0x7F)
        if byte < 0x80 or length == 9:
            numbers.append(value)
            value, length = 0, 0
    return numbers
