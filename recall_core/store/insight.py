"""What insights read of the file: all texts of a selection with their vectors, their terms, and how many of what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ..filters import Selection
from .compile import compile_selection
from .connection import select
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
BATCH = 4_096  # vectors that are taken from the database at a time


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

        from ..embedding import normalize
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
        return normalize(sums)


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, BATCH)):
        yield batch
