"""Nearest neighbours: exact over the blobs, or through a vec0 table once a space is large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import apsw

from ..embedding import normalize
from ..filters import Selection
from .compile import Clause, compile_selection
from .connection import select, select_one
from .database import Database
from .protocols import Nearest, Space, VectorIndex
from .vectors import stack_vectors

if TYPE_CHECKING:
    from ..models import Vectors

# From so many vectors on a space gets a vec0 table. Below, reading the blobs is as fast and needs no second copy.
INDEX_FROM = 5_000
# Selections of up to so many chunks are compared exactly, whatever the size of the space.
EXACT_UP_TO = 5_000
VEC0_LIMIT = 4096  # vec0 refuses a larger k
VEC0_CHUNK = 256  # rows in a block of vec0; its default of 1024 is slower to fill
REFRESH_BATCH = 1_000

SELECTED = """
FROM record JOIN chunk ON chunk.record_key = record.key
JOIN embedding ON embedding.chunk_key = chunk.key AND embedding.space_id = ? WHERE {selection}
"""


# The vec0 table has an older vector of such a chunk, or none.
UNSEEN = """
EXISTS (SELECT 1 FROM vector_change WHERE vector_change.space_id = embedding.space_id
  AND vector_change.chunk_key = chunk.key)
"""


class ExactIndex:
    """Compares the query with every selected vector. Needs no index, and is slow only in large selections."""

    name = "exact"

    def __init__(self, database: Database, *, exact_up_to: int = EXACT_UP_TO) -> None:
        self._database = database
        self._exact_up_to = exact_up_to

    def nearest(self, space: Space, query: Vectors, selection: Selection, limit: int) -> Nearest:
        """Return all selected chunks if they are few, else the `limit` whose cosine with `query` is largest."""
        clause = compile_selection(selection)
        with self._database.read() as connection:
            rows = select(
                connection,
                f"SELECT chunk.key, embedding.vector {SELECTED.format(selection=clause.sql)} ORDER BY chunk.key",
                (space.id, *clause.bindings),
            )
        keys, vectors = stack_vectors(rows, space.dimensions)
        if len(keys) <= max(limit, self._exact_up_to):
            return Nearest(keys, vectors, len(keys))
        order = sort_by_cosine(keys, vectors, query)[:limit]
        return Nearest([keys[place] for place in order], vectors[order], len(keys))

    def refresh(self, space: Space) -> bool:  # noqa: ARG002
        """Do nothing: the blobs are the index."""
        return False


class Vec0Index:
    """Implements VectorIndex with sqlite-vec: exact for small selections, a vec0 scan with pre-filter for large ones.

    The vec0 table of a space is written by `refresh` alone, from the changes that triggers note, so that programs
    without the extension can change the file.
    """

    name = "vec0"

    def __init__(self, database: Database, *, index_from: int = INDEX_FROM, exact_up_to: int = EXACT_UP_TO) -> None:
        self._database = database
        self._exact = ExactIndex(database, exact_up_to=exact_up_to)
        self._index_from = index_from
        self._exact_up_to = exact_up_to

    def nearest(self, space: Space, query: Vectors, selection: Selection, limit: int) -> Nearest:
        """Return all selected chunks if they are few, else the `limit` whose cosine with `query` is largest."""
        clause = compile_selection(selection)
        with self._database.read() as connection:
            compared = count_selected(connection, space, clause) if has_table(connection, space) else 0
            if compared <= max(limit, self._exact_up_to):
                return self._exact.nearest(space, query, selection, limit)
            rows = scan(connection, space, query, clause, min(limit, VEC0_LIMIT))
            rows += load_unseen(connection, space, clause)
        keys, vectors = stack_vectors(rows, space.dimensions)
        order = sort_by_cosine(keys, vectors, query)[:limit]
        return Nearest([keys[place] for place in order], vectors[order], compared)

    def refresh(self, space: Space) -> bool:
        """Take up some of the vectors that were stored or deleted since, and tell whether others are left.

        Builds the table once the space is large. Searches compare what is left one by one.
        """
        with self._database.read() as connection:
            changes = count_changes(connection, space)
            if changes == 0 or (changes < self._index_from and not has_table(connection, space)):
                return False
        with self._database.write() as connection:
            if not has_table(connection, space):
                create_table(connection, space)
            return apply_changes(connection, space, REFRESH_BATCH) == REFRESH_BATCH


def open_index(database: Database) -> VectorIndex:
    """Return the best index that this machine can run."""
    if not database.has_vec0:
        return ExactIndex(database, exact_up_to=EXACT_UP_TO)
    return Vec0Index(database, index_from=INDEX_FROM, exact_up_to=EXACT_UP_TO)


def table_name(space: Space) -> str:
    """Return the name of a space's vec0 table."""
    return f"vector_{space.id}"


def has_table(connection: apsw.Connection, space: Space) -> bool:
    """Tell whether a space has its vec0 table yet."""
    sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
    return select_one(connection, sql, (table_name(space),)) is not None


def create_table(connection: apsw.Connection, space: Space) -> None:
    """Create a space's vec0 table, empty. It holds unit vectors, for which L2 orders as the cosine does."""
    connection.execute(
        f"CREATE VIRTUAL TABLE {table_name(space)} USING vec0("
        f"chunk_key INTEGER PRIMARY KEY, vector float[{space.dimensions}], chunk_size={VEC0_CHUNK})"
    )


def count_changes(connection: apsw.Connection, space: Space) -> int:
    """Return how many vectors changed since the index was last refreshed."""
    sql = "SELECT count(*) FROM vector_change WHERE space_id = ?"
    return int(select(connection, sql, (space.id,))[0][0])


def count_selected(connection: apsw.Connection, space: Space, clause: Clause) -> int:
    """Return how many vectors of a space are selected."""
    sql = f"SELECT count(*) {SELECTED.format(selection=clause.sql)}"
    return int(select(connection, sql, (space.id, *clause.bindings))[0][0])


def apply_changes(connection: apsw.Connection, space: Space, limit: int) -> int:
    """Bring up to `limit` changed vectors into the vec0 table; return how many changes were taken up."""
    table = table_name(space)
    changes = select(
        connection,
        "SELECT chunk_key FROM vector_change WHERE space_id = ? ORDER BY chunk_key LIMIT ?",
        (space.id, limit),
    )
    connection.executemany(f"DELETE FROM {table} WHERE chunk_key = ?", changes)
    rows = select(
        connection,
        """SELECT embedding.chunk_key, embedding.vector FROM vector_change
        JOIN embedding ON embedding.chunk_key = vector_change.chunk_key AND embedding.space_id = vector_change.space_id
        WHERE vector_change.space_id = ? ORDER BY vector_change.chunk_key LIMIT ?""",
        (space.id, limit),
    )
    last = changes[-1][0] if changes else 0
    keys, vectors = stack_vectors([row for row in rows if row[0] <= last], space.dimensions)
    inserts = zip(keys, (unit.tobytes() for unit in normalize(vectors)), strict=True)
    connection.executemany(f"INSERT INTO {table}(chunk_key, vector) VALUES (?, ?)", inserts)
    connection.executemany(
        "DELETE FROM vector_change WHERE space_id = ? AND chunk_key = ?", [(space.id, key) for (key,) in changes]
    )
    return len(changes)


def scan(
    connection: apsw.Connection, space: Space, query: Vectors, clause: Clause, limit: int
) -> list[tuple[int, bytes]]:
    """Return (chunk key, blob) of the vectors nearest to the query, among the selected ones that the table knows.

    The selection is applied before the nearest are taken.
    """
    unit = normalize(query.reshape(1, -1))
    sql = f"""
    WITH near AS MATERIALIZED (
      SELECT chunk_key FROM {table_name(space)} WHERE vector MATCH ? AND k = ?
      AND chunk_key IN (SELECT chunk.key {SELECTED.format(selection=clause.sql)} AND NOT {UNSEEN})
    )
    SELECT near.chunk_key, embedding.vector FROM near
    JOIN embedding ON embedding.chunk_key = near.chunk_key AND embedding.space_id = ?
    """
    return select(connection, sql, (unit.tobytes(), limit, space.id, *clause.bindings, space.id))


def load_unseen(connection: apsw.Connection, space: Space, clause: Clause) -> list[tuple[int, bytes]]:
    """Return (chunk key, blob) of the selected vectors that the table has not seen yet; mostly there are none."""
    sql = f"SELECT chunk.key, embedding.vector {SELECTED.format(selection=clause.sql)} AND {UNSEEN}"
    return select(connection, sql, (space.id, *clause.bindings))


def sort_by_cosine(keys: Sequence[int], vectors: Vectors, query: Vectors) -> list[int]:
    """Return the places of keys in the order of their vectors' cosines with the query; of equal ones by key."""
    cosines = (normalize(vectors) @ query).tolist()
    return sorted(range(len(keys)), key=lambda place: (-cosines[place], keys[place]))
