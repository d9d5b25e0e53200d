"""A chunk and its record, as the store reads them for scoring."""

from __future__ import annotations

from typing import NamedTuple

QUESTION_TOKENS = (20, 40)  # a question shorter than the first is short, one from the second on is not at all


class ChunkRow(NamedTuple):
    """A chunk and its record as the store reads them. Times are microseconds; `place` orders a session's records."""

    chunk_key: int
    record_key: int
    record_id: str
    scope: str
    session: str | None
    role: str | None
    place: int
    created_at: int
    expires_at: int | None
    tokens: int
    asks: int
    hash: bytes
    latin: str
    grams: str
    words: str
    labels: str
