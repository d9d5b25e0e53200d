"""The keyword index: FTS5 over terms that recall_core made finds the candidates in large scopes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import apsw

from ..bm25 import Corpus
from ..filters import Selection, restricts_records
from ..text import match_expression
from .compile import Clause, compile_selection
from .connection import select, select_one
from .database import Database

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Reading bm25() of a row takes FTS5 1 to 2 µs, handing a row to Python 0.2, all rows of a term as one text 0.05.
ROWS = "SELECT group_concat(rowid) FROM chunk_fts WHERE chunk_fts MATCH ?"
NEWEST_ROWS = """
SELECT group_concat(rowid) FROM (SELECT rowid FROM chunk_fts WHERE chunk_fts MATCH ? ORDER BY rowid DESC LIMIT ?)
"""
COUNT = "SELECT doc FROM temp.term WHERE term = ?"
# FTS5 keeps its totals in row 1 of its data table, as varints: rows, then the tokens of each column.
TOTALS = "SELECT block FROM chunk_fts_data WHERE id = 1"
PASSING = """
SELECT chunk.key, chunk.tokens FROM json_each(?) AS one
CROSS JOIN chunk ON chunk.key = one.value CROSS JOIN record ON record.key = chunk.record_key WHERE {selection}
"""

MOST_ROWS = 200_000  # of all terms together, the rarest first: more are read only if the rarest term has more
NEWEST = 50_000  # rows of a rarest term with more than that
PROBES = (4_000, 40_000)  # with a filter, so many of the best are looked at before all of them


class KeywordTable:
    """The keyword index of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def search(self, terms: Sequence[str], corpus: Corpus, selection: Selection, limit: int) -> list[int]:
        """Return the keys of about `limit` selected chunks that hold the terms which tell most.

        How often a chunk holds a term is not looked at; of equal ones the shortest come first.
        """
        import numpy as np

        clause = compile_selection(selection)
        with self._database.read() as connection:
            keys, scores = add_up_terms(connection, terms, corpus)
            order = np.lexsort((-keys, -scores))
            keys, scores = keys[order], scores[order]
            restricted = selection.scope != "" or restricts_records(selection)
            found: list[int] = []
            for probe in (*PROBES, len(keys)) if restricted else (2 * limit, *PROBES, len(keys)):
                # With all that are as good as the last one, so that the shortest of them can be chosen.
                reach = int(np.searchsorted(-scores, -scores[probe - 1], side="right")) if probe <= len(keys) else probe
                reach = min(reach, max(probe, PROBES[0]))
                found = take_passing(connection, clause, keys[:reach], scores[:reach], limit)
                if len(found) >= limit or reach >= len(keys):
                    break
        return found

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


def choose_terms(terms: Sequence[str], counts: Mapping[str, int], most: int) -> list[str]:
    """Return the rarest terms that occur at all, as long as they have at most `most` rows together; at least one."""
    known = sorted((term for term in terms if counts.get(term)), key=lambda term: (counts[term], term))
    chosen, rows = known[:1], counts[known[0]] if known else 0
    for term in known[1:]:
        rows += counts[term]
        if rows > most:
            break
        chosen.append(term)
    return chosen


def add_up_terms(
    connection: apsw.Connection, terms: Sequence[str], corpus: Corpus
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the keys of the chunks that hold any of the terms, and the sum of idf of those that each holds."""
    import numpy as np

    found, weights = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for term in choose_terms(terms, corpus.counts, MOST_ROWS):
        expression = match_expression([term])
        if corpus.counts[term] > MOST_ROWS:
            ((text,),) = select(connection, NEWEST_ROWS, (expression, NEWEST))
        else:
            ((text,),) = select(connection, ROWS, (expression,))
        found.append(np.fromstring(text or "", dtype=np.int64, sep=","))
        weights.append(np.full(len(found[-1]), corpus.idf(term)))
    keys, places = np.unique(np.concatenate(found), return_inverse=True)
    return keys, np.bincount(places, weights=np.concatenate(weights), minlength=len(keys)).astype(np.float64)


def take_passing(
    connection: apsw.Connection, clause: Clause, keys: NDArray[np.int64], scores: NDArray[np.float64], limit: int
) -> list[int]:
    """Return the keys of the best `limit` that are selected; of equal ones the shorter, then the newer."""
    rows = select(connection, PASSING.format(selection=clause.sql), (json.dumps(keys.tolist()), *clause.bindings))
    score = dict(zip(keys.tolist(), scores.tolist(), strict=True))
    return [key for key, _ in sorted(rows, key=lambda row: (-score[row[0]], row[1], -row[0]))[:limit]]


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
