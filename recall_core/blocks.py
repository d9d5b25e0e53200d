"""Chunks as columns: a block holds what scoring needs to know of many chunks, one array entry for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from .bm25 import COLUMNS, WEIGHTS
from .chunk_rows import ChunkRow

Rows = NDArray[np.int32]
Keys = NDArray[np.int64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

NEVER = np.iinfo(np.int64).max  # when a record expires that has no date of expiry

_ROW_BITS, _COLUMN_BITS = 24, 2  # of a sort key: which row, which column


@dataclass(frozen=True, slots=True)
class Postings:
    """Which rows hold a term, and how often: weighted counts over the four columns of terms."""

    vocabulary: Mapping[str, int]
    starts: NDArray[np.int64]
    rows: Rows
    frequencies: Floats

    def find(self, term: str) -> tuple[Rows, Floats]:
        """Return the rows that hold a term, ascending, and its weighted frequency in each."""
        number = self.vocabulary.get(term)
        if number is None:
            return self.rows[:0], self.frequencies[:0]
        part = slice(self.starts[number], self.starts[number + 1])
        return self.rows[part], self.frequencies[part]


@dataclass(frozen=True, slots=True)
class Block:
    """Chunks ordered by record key and place. The first arrays have an entry per chunk, the others one per record;
    `starts` gives each record's first chunk.
    """

    chunk_keys: Keys
    hashes: Keys
    tokens: Rows
    lengths: Floats  # in terms, for BM25
    postings: Postings
    starts: Rows
    record_keys: Keys
    record_ids: tuple[str, ...]
    sessions: tuple[tuple[str, str] | None, ...]  # scope and session id
    roles: tuple[str | None, ...]
    places: Keys
    created: Keys
    expires: Keys
    asks: Flags

    def __len__(self) -> int:
        return len(self.chunk_keys)


def build_block(rows: Sequence[ChunkRow], terms: frozenset[str] | None = None) -> Block:
    """Return a block of chunks, given in the order of record key and place. With `terms` only these are indexed."""
    records = np.array([row.record_key for row in rows], dtype=np.int64)
    starts = np.flatnonzero(np.diff(records, prepend=-1)).astype(np.int32)
    firsts = [rows[start] for start in starts.tolist()]
    latin = _count_terms([row.latin for row in rows])
    grams = _count_terms([row.grams for row in rows])
    return Block(
        chunk_keys=np.array([row.chunk_key for row in rows], dtype=np.int64),
        hashes=np.array([int.from_bytes(row.hash[:8], "little", signed=True) for row in rows], dtype=np.int64),
        tokens=np.array([row.tokens for row in rows], dtype=np.int32),
        # The grams column holds each character beside its bigrams, so it counts twice.
        lengths=(latin + grams / 2).astype(np.float32),
        postings=build_postings([(row.latin, row.grams, row.words, row.labels) for row in rows], terms),
        starts=starts,
        record_keys=records[starts],
        record_ids=tuple(row.record_id for row in firsts),
        sessions=tuple(None if row.session is None else (row.scope, row.session) for row in firsts),
        roles=tuple(row.role for row in firsts),
        places=np.array([row.place for row in firsts], dtype=np.int64),
        created=np.array([row.created_at for row in firsts], dtype=np.int64),
        expires=np.array([NEVER if row.expires_at is None else row.expires_at for row in firsts], dtype=np.int64),
        asks=np.array([row.asks for row in firsts], dtype=bool),
    )


def build_postings(texts: Sequence[Sequence[str]], terms: frozenset[str] | None = None) -> Postings:
    """Return the postings of chunks, each given by its four columns of space-separated terms."""
    columns = list(zip(*texts, strict=True))
    vocabulary: dict[str, int] = defaultdict(count().__next__)
    if terms is not None:
        vocabulary = {term: number for number, term in enumerate(sorted(terms))}
    keys = [np.zeros(0, dtype=np.int64)]
    for column, of_column in enumerate(columns):
        found = _find_terms(of_column, vocabulary) if terms is not None else _number_tokens(of_column, vocabulary)
        numbers, owners = found
        keys.append((numbers << (_ROW_BITS + _COLUMN_BITS)) | (owners << _COLUMN_BITS) | column)
    return _group(np.sort(np.concatenate(keys)), dict(vocabulary))


def _number_tokens(texts: Sequence[str], vocabulary: Mapping[str, int]) -> tuple[Keys, Keys]:
    """Return the number of each term in the texts, and the row of the text that it stands in."""
    tokens = " ".join(texts).split(" ")
    owners = np.repeat(np.arange(len(texts)), [text.count(" ") + 1 for text in texts])
    return np.fromiter(map(vocabulary.__getitem__, tokens), np.int64, len(tokens)), owners


def _find_terms(texts: Sequence[str], vocabulary: Mapping[str, int]) -> tuple[Keys, Keys]:
    """The same for the terms of the vocabulary alone, which are searched for: they are few, the others many."""
    joined = f" {'  '.join(texts)} "
    starts = np.cumsum([0, *(len(text) + 2 for text in texts[:-1])])
    numbers: list[int] = []
    places: list[int] = []
    for term, number in vocabulary.items():
        needle, place = f" {term} ", -1
        while (place := joined.find(needle, place + 1)) >= 0:
            numbers.append(number)
            places.append(place)
    owners = np.searchsorted(starts, np.array(places, dtype=np.int64), side="right") - 1
    return np.array(numbers, dtype=np.int64), owners.astype(np.int64)


def _group(keys: NDArray[np.int64], vocabulary: Mapping[str, int]) -> Postings:
    """Sum sorted keys of term, row and column up to one entry for each term and row."""
    weights = np.array([getattr(WEIGHTS, name) for name in COLUMNS], dtype=np.float32)
    places = keys >> _COLUMN_BITS
    firsts = np.flatnonzero(np.diff(places, prepend=-1))
    column_weights = weights[keys & ((1 << _COLUMN_BITS) - 1)]
    frequencies = np.add.reduceat(column_weights, firsts) if len(firsts) else column_weights
    rows = (places[firsts] & ((1 << _ROW_BITS) - 1)).astype(np.int32)
    starts = np.searchsorted(places[firsts] >> _ROW_BITS, np.arange(len(vocabulary) + 1))
    return Postings(vocabulary, starts, rows, frequencies.astype(np.float32))


def _count_terms(texts: Sequence[str]) -> NDArray[np.float64]:
    return np.array([text.count(" ") + 1 if text else 0 for text in texts], dtype=np.float64)
