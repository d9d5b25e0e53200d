"""Rows of chunks for the tests of what scoring makes of them: `from row_support import make_row`."""

from __future__ import annotations

import hashlib

from hypothesis import strategies as st

from recall_core.bm25 import WEIGHTS
from recall_core.chunk_rows import ChunkRow

TERMS = ["docker", "deploy", "v1.2.3", "c++", "部署", "喝茶", "茶", "☕"]
COLUMNS = ("latin", "grams", "words", "labels")

terms = st.sampled_from(TERMS)
texts_of_terms = st.lists(terms, max_size=12).map(" ".join)
columns = st.fixed_dictionaries(dict.fromkeys(COLUMNS, texts_of_terms))
queries = st.lists(terms, min_size=1, max_size=6, unique=True)


def make_row(chunk_key: int, record_key: int | None = None, **fields: object) -> ChunkRow:
    """Return a chunk of the record of the same key, unless another is given; each key has a text of its own."""
    record_key = chunk_key if record_key is None else record_key
    defaults = {
        "record_id": f"r{record_key:04}",
        "scope": "user",
        "session": None,
        "role": None,
        "place": 2**63 - 1,
        "created_at": 1_000_000 * record_key,
        "expires_at": None,
        "tokens": 10,
        "asks": 0,
        "hash": hash_text(f"text {chunk_key}"),
        **dict.fromkeys(COLUMNS, ""),
    }
    return ChunkRow(chunk_key=chunk_key, record_key=record_key, **{**defaults, **fields})


def hash_text(text: str) -> bytes:
    """Return the hash of a text, as long as the stored ones."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def count_term(row: ChunkRow, term: str) -> float:
    """Return how often a row holds a term, each column by its weight."""
    return sum(getattr(WEIGHTS, name) * getattr(row, name).split().count(term) for name in COLUMNS)


def measure_length(row: ChunkRow) -> float:
    """Return the length of a row in terms; the grams column has each character twice."""
    return len(row.latin.split()) + len(row.grams.split()) / 2
