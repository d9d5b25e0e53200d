"""Nearest neighbours: exact over the vectors while they are few, through their codes once a space is large."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw
import numpy as np
from numpy.typing import NDArray

from ..codes import code_bytes, find_nearest, make_planes
from ..embedding import normalize
from ..filters import Selection, restricts_records
from .code_pages import PLACES, Page, create_pages, read_centre, read_pages, take_up_changes
from .compile import Clause, compile_selection
from .connection import select
from .database import Database
from .protocols import Nearest, Space
from .vectors import stack_vectors

if TYPE_CHECKING:
    from ..models import Vectors

# From so many vectors on a space gets codes. Below, the vectors themselves are compared.
INDEX_FROM = 16_384
# So many changed vectors are taken up at a time; fewer wait, and are compared one by one.
REFRESH_FROM, REFRESH_BATCH = 256, 4_096
# With a filter, so many of the nearest are looked at before all selected chunks are asked for.
PROBES = (2_000, 20_000)

SELECTED = """
FROM record JOIN chunk ON chunk.record_key = record.key
JOIN embedding ON embedding.chunk_key = chunk.key AND embedding.space_id = ? WHERE {selection}
"""
AMONG = "chunk.key IN (SELECT value FROM json_each(?))"
UNSEEN = "chunk.key IN (SELECT chunk_key FROM vector_change WHERE space_id = embedding.space_id)"


class ExactIndex:
    """Compares the query with every selected vector. Needs no index, and is slow only in large selections."""

    name = "exact"

    def __init__(self, database: Database) -> None:
        self._database = database

    def nearest(self, space: Space, direction: Vectors, selection: Selection, limit: int) -> Nearest:
        """Return the chunks with the largest dot products of their unit vectors with `direction`."""
        clause = compile_selection(selection)
        with self._database.read() as connection:
            keys, vectors = load_selected(connection, space, clause)
        return Nearest(sort_by_product(keys, vectors, direction)[:limit], len(keys))

    def refresh(self, space: Space) -> bool:  # noqa: ARG002
        """Do nothing: the vectors are the index."""
        return False


@dataclass(frozen=True, slots=True)
class Held:
    """A space's codes in memory: planes, shape (words, places), the chunk key of each place, and which have a code."""

    version: int
    planes: NDArray[np.uint64]
    keys: NDArray[np.int64]
    present: NDArray[np.bool_]


class CodeIndex:
    """Scans codes of one bit per dimension, which a process reads once and keeps in step with the file.

    The pages of codes are written by `refresh` alone, from the changes that triggers note, so that other programs can
    change the file. What is not taken up yet is compared as well, one by one.
    """

    name = "codes"

    def __init__(self, database: Database, *, index_from: int = INDEX_FROM) -> None:
        self._database = database
        self._exact = ExactIndex(database)
        self._index_from = index_from
        self._held: dict[int, Held] = {}
        self._lock = threading.Lock()

    def nearest(self, space: Space, direction: Vectors, selection: Selection, limit: int) -> Nearest:
        """Return about `limit` chunks with the largest dot products of their unit vectors with `direction`."""
        clause = compile_selection(selection)
        with self._database.read() as connection:
            if read_centre(connection, space) is None:
                return self._exact.nearest(space, direction, selection, limit)
            held = self._follow(connection, space)
            unseen, _ = load_selected(connection, space, clause, UNSEEN)
            found = search_codes(connection, held, direction, selection, clause, limit)
        keys = sorted({*found, *unseen})
        return Nearest(keys, len(keys) if len(found) < limit else max(len(keys), int(np.count_nonzero(held.present))))

    def refresh(self, space: Space) -> bool:
        """Take up some of the vectors that were stored or deleted since, and tell whether others are left.

        Makes the codes once the space is large.
        """
        with self._database.read() as connection:
            changes = count_changes(connection, space, max(self._index_from, REFRESH_FROM))
            has_codes = read_centre(connection, space) is not None
        if changes < (min(REFRESH_FROM, self._index_from) if has_codes else self._index_from):
            return False
        with self._database.write() as connection:
            if read_centre(connection, space) is None:
                create_pages(connection, space)
            return take_up_changes(connection, space, REFRESH_BATCH) == REFRESH_BATCH

    def _follow(self, connection: apsw.Connection, space: Space) -> Held:
        """Return the codes as they now are."""
        with self._lock:
            held = self._held.get(space.id) or make_held(space)
            version, pages = read_pages(connection, space, held.version)
            if version != held.version:
                held = replace_pages(held, version, pages)
                self._held[space.id] = held
            return held


def make_held(space: Space) -> Held:
    """Return the codes of a space that has none yet."""
    words = code_bytes(space.dimensions) // 8
    return Held(0, np.zeros((words, 0), np.uint64), np.zeros(0, np.int64), np.zeros(0, bool))


def replace_pages(held: Held, version: int, pages: Sequence[Page]) -> Held:
    """Return codes with some pages replaced or added. The old ones stay as they are: another thread may read them."""
    numbers = (held.keys[::PLACES] // PLACES).tolist()
    added = [page.number for page in pages if page.number not in set(numbers)]
    more = len(added) * PLACES
    planes = np.concatenate([held.planes, np.zeros((len(held.planes), more), np.uint64)], axis=1)
    present = np.concatenate([held.present, np.zeros(more, bool)])
    places = {number: place for place, number in enumerate([*numbers, *added])}
    for page in pages:
        part = slice(places[page.number] * PLACES, (places[page.number] + 1) * PLACES)
        present[part] = page.present
        planes[:, part][:, page.present] = make_planes(page.codes)
    firsts = np.array(list(places), dtype=np.int64) * PLACES
    keys = (firsts[:, None] + np.arange(PLACES)).ravel()
    return Held(version, planes, keys, present)


def search_codes(
    connection: apsw.Connection, held: Held, direction: Vectors, selection: Selection, clause: Clause, limit: int
) -> list[int]:
    """Return the keys of about `limit` selected chunks whose codes are nearest to a direction.

    A selection is applied before the nearest are taken: to the nearest of all, as long as enough of them pass, and else
    to all chunks first.
    """
    restricted = selection.scope != "" or restricts_records(selection)
    for probe in PROBES if restricted else (limit,):
        near = find_nearest(held.planes, held.present, direction, max(probe, limit))
        passing = np.isin(held.keys[near], select_keys(connection, clause, held.keys[near].tolist()))
        if np.count_nonzero(passing) >= limit or len(near) < probe:
            return list_keys(held, near[passing], direction, limit)
    allowed = held.present & np.isin(held.keys, select_keys(connection, clause, None))
    return list_keys(held, find_nearest(held.planes, allowed, direction, limit), direction, limit)


def list_keys(held: Held, rows: NDArray[np.int64], direction: Vectors, limit: int) -> list[int]:
    """Return the keys of about `limit` of some rows, those whose codes are nearest to a direction."""
    near = find_nearest(held.planes[:, rows], np.ones(len(rows), bool), direction, limit)
    keys: list[int] = held.keys[rows[near]].tolist()
    return keys


def select_keys(connection: apsw.Connection, clause: Clause, among: Sequence[int] | None) -> list[int]:
    """Return the keys of the selected chunks, or of those among some."""
    sql = f"SELECT chunk.key FROM chunk JOIN record ON record.key = chunk.record_key WHERE {clause.sql}"
    if among is None:
        return [key for (key,) in select(connection, sql, clause.bindings)]
    rows = select(connection, f"{sql} AND {AMONG}", (*clause.bindings, json.dumps(list(among))))
    return [key for (key,) in rows]


def load_selected(
    connection: apsw.Connection, space: Space, clause: Clause, condition: str = "1"
) -> tuple[list[int], Vectors]:
    """Return the keys of the selected chunks that have a vector and fulfil a condition, and the vectors."""
    where = f"{SELECTED.format(selection=clause.sql)} AND {condition}"
    sql = f"SELECT chunk.key, embedding.vector {where} ORDER BY chunk.key"
    return stack_vectors(select(connection, sql, (space.id, *clause.bindings)), space.dimensions)


def count_changes(connection: apsw.Connection, space: Space, most: int) -> int:
    """Return how many vectors changed since the codes were last refreshed, up to `most`."""
    sql = "SELECT count(*) FROM (SELECT 1 FROM vector_change WHERE space_id = ? LIMIT ?)"
    return int(select(connection, sql, (space.id, most))[0][0])


def sort_by_product(keys: Sequence[int], vectors: Vectors, direction: Vectors) -> list[int]:
    """Return keys in the order of the dot products of their vectors with a direction; of equal ones by key."""
    products = (normalize(vectors) @ direction).tolist()
    order = sorted(range(len(keys)), key=lambda place: (-products[place], keys[place]))
    return [keys[place] for place in order]
