"""Nearest neighbours: exact over the vectors while they are few, through their codes once a space is large."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw
import numpy as np
from numpy.typing import NDArray

from ..codes import code_bytes, find_nearest, make_planes
from ..filters import Selection, restricts_records
from ..forks import Lock
from ..vectors import normalize
from .code_pages import (
    PLACES,
    Page,
    count_changes,
    count_vectors,
    create_pages,
    drop_empty_pages,
    drop_pages,
    has_pages,
    next_page,
    read_centre,
    read_pages,
    read_version,
    rebuild_page,
    take_up_changes,
)
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
BEFORE_FIRST_PAGE = -(1 << 53) - 1
MANY = 250_000  # codes; among more, twice as many have to be kept to find the nearest
# With a filter, so many of the nearest are looked at before all selected chunks are asked for.
PROBES = (2_000, 20_000)

SELECTED = """
FROM record JOIN chunk ON chunk.record_key = record.key
JOIN embedding ON embedding.chunk_key = chunk.key AND embedding.space_id = ? WHERE {selection}
"""
AMONG = "chunk.key IN (SELECT value FROM json_each(?))"
UNSEEN = "chunk.key IN (SELECT chunk_key FROM vector_change WHERE space_id = embedding.space_id)"
SEEN = "NOT EXISTS (SELECT 1 FROM vector_change WHERE space_id = ? AND chunk_key = chunk.key)"


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

    def refresh(self, space: Space, *, at_once: bool = False) -> bool:  # noqa: ARG002
        """Do nothing: the vectors are the index."""
        return False

    def rebuild(self, space: Space) -> Iterator[int]:  # noqa: ARG002
        """Do nothing: the vectors are the index."""
        return iter(())

    def compact(self, space: Space) -> None:
        """Do nothing: the vectors are the index."""


@dataclass(frozen=True, slots=True)
class Held:
    """A space's codes in memory: planes, shape (words, n), and the chunk key of each code, shape (n,)."""

    version: int
    planes: NDArray[np.uint64]
    keys: NDArray[np.int64]


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
        self._lock = Lock()

    def nearest(self, space: Space, direction: Vectors, selection: Selection, limit: int) -> Nearest:
        """Return about `limit` chunks with the largest dot products of their unit vectors with `direction`."""
        clause = compile_selection(selection)
        with self._database.read() as connection:
            if read_centre(connection, space) is None:
                return self._exact.nearest(space, direction, selection, limit)
            held = self._follow(connection, space)
            limit *= 2 if len(held.keys) > MANY else 1
            found = search_codes(connection, space, held, direction, selection, limit)
            unseen, vectors = load_selected(connection, space, clause, UNSEEN)
        near = sort_by_product(unseen, vectors, direction)[:limit]
        keys = sorted({*found, *near})
        complete = len(found) < limit and len(unseen) <= limit
        return Nearest(keys, len(keys) if complete else len(held.keys) + len(unseen))

    def refresh(self, space: Space, *, at_once: bool = False) -> bool:
        """Take up some of the vectors that were stored or deleted since, and tell whether others are left.

        Makes the codes once the space is large.
        """
        return self._take_up(space, least=1 if at_once else min(REFRESH_FROM, self._index_from))

    def _take_up(self, space: Space, least: int) -> bool:
        """Take up some changes if there are at least so many, and tell whether others are left."""
        with self._database.read() as connection:
            enough = least if has_pages(connection, space) else self._index_from
            if count_changes(connection, space, enough) < enough:
                return False
        with self._database.write() as connection:
            if read_centre(connection, space) is None and not create_pages(connection, space, self._index_from):
                return False
            return take_up_changes(connection, space, REFRESH_BATCH) == REFRESH_BATCH

    def rebuild(self, space: Space) -> Iterator[int]:
        """Make the codes of a space anew from its vectors, page by page; yield how many vectors each step has taken up.

        The centre stays, so that old and new codes serve side by side. If it can't be read, all codes go first.
        """
        with self._database.write() as connection:
            if has_pages(connection, space) and read_centre(connection, space) is None:
                drop_pages(connection, space)
        number: int | None = BEFORE_FIRST_PAGE
        while number is not None:
            taken = 0
            with self._database.write() as connection:
                centre = read_centre(connection, space)
                for _ in range(REFRESH_BATCH // PLACES):
                    number = None if centre is None or number is None else next_page(connection, space, number)
                    if number is not None and centre is not None:
                        taken += rebuild_page(connection, space, centre, number)
            yield taken
        while self.refresh(space):
            yield REFRESH_BATCH

    def compact(self, space: Space) -> None:
        """Take up all changes, and let go of empty pages; of a space that has become small, of all codes."""
        with self._database.read() as connection:
            coded = has_pages(connection, space)
            is_small = coded and count_vectors(connection, space, self._index_from // 2) < self._index_from // 2
        if not coded or is_small:
            with self._database.write() as connection:
                drop_pages(connection, space)
            return
        while self._take_up(space, least=1):
            pass
        with self._database.write() as connection:
            drop_empty_pages(connection, space)

    def _follow(self, connection: apsw.Connection, space: Space) -> Held:
        """Return the codes as they now are."""
        with self._lock:
            if space.id not in self._held:  # the file may have moved to another model
                there = {id for (id,) in select(connection, "SELECT id FROM space WHERE name NOT GLOB 'memory:*'")}
                self._held = {id: held for id, held in self._held.items() if id in there}
            held = self._held.get(space.id) or make_held(space)
            version = read_version(connection, space)
            if version == held.version:
                return held
            if version < held.version:  # made anew, or lost with the log
                held = make_held(space)
            held = replace_pages(held, version, read_pages(connection, space, held.version))
            if not self._database.is_writing():  # what may be rolled back is not kept
                self._held[space.id] = held
            return held


def make_held(space: Space) -> Held:
    """Return the codes of a space that has none yet."""
    return Held(0, np.zeros((code_bytes(space.dimensions) // 8, 0), np.uint64), np.zeros(0, np.int64))


def replace_pages(held: Held, version: int, pages: Sequence[Page]) -> Held:
    """Return codes with some pages replaced or added. The old ones stay as they are: another thread may read them."""
    kept = ~np.isin(held.keys // PLACES, np.array([page.number for page in pages], dtype=np.int64))
    keys = np.concatenate([held.keys[kept], *(page.keys for page in pages)])
    planes = np.empty((len(held.planes), len(keys)), np.uint64)
    old = int(np.count_nonzero(kept))
    np.compress(kept, held.planes, axis=1, out=planes[:, :old])
    if pages:
        planes[:, old:] = make_planes(np.concatenate([page.codes for page in pages]))
    return Held(version, planes, keys)


def search_codes(
    connection: apsw.Connection, space: Space, held: Held, direction: Vectors, selection: Selection, limit: int
) -> list[int]:
    """Return the keys of about `limit` selected chunks whose codes are up to date and nearest to a direction.

    A selection is applied before the nearest are taken: to the nearest of all, as long as enough of them pass, and else
    to all chunks first.
    """
    clause = compile_selection(selection)
    every = np.ones(len(held.keys), bool)
    restricted = selection.scope != "" or restricts_records(selection)
    for probe in PROBES if restricted else (limit, *PROBES):
        near = find_nearest(held.planes, every, direction, max(probe, limit))
        passing = np.isin(held.keys[near], select_keys(connection, space, clause, held.keys[near].tolist()))
        if np.count_nonzero(passing) >= limit or len(near) == len(every):
            return list_keys(held, near[passing], direction, limit)
    allowed = np.isin(held.keys, select_keys(connection, space, clause, None))
    return list_keys(held, find_nearest(held.planes, allowed, direction, limit), direction, limit)


def list_keys(held: Held, rows: NDArray[np.int64], direction: Vectors, limit: int) -> list[int]:
    """Return the keys of about `limit` of some rows, those whose codes are nearest to a direction, ascending."""
    if len(rows) > 2 * limit:
        rows = rows[find_nearest(held.planes[:, rows], np.ones(len(rows), bool), direction, limit)]
    keys: list[int] = np.sort(held.keys[rows]).tolist()
    return keys


def select_keys(
    connection: apsw.Connection, space: Space, clause: Clause, among: Sequence[int] | None
) -> NDArray[np.int64]:
    """Return the keys of the selected chunks whose codes are up to date, or of those among some."""
    where = f"{clause.sql} AND {SEEN}" + (f" AND {AMONG}" if among is not None else "")
    sql = f"SELECT chunk.key FROM chunk JOIN record ON record.key = chunk.record_key WHERE {where}"
    bindings = [*clause.bindings, space.id, *([json.dumps(among)] if among is not None else [])]
    return np.array([key for (key,) in select(connection, sql, bindings)], dtype=np.int64)


def load_selected(
    connection: apsw.Connection, space: Space, clause: Clause, condition: str = "1"
) -> tuple[list[int], Vectors]:
    """Return the keys of the selected chunks that have a vector and fulfil a condition, and the vectors."""
    where = f"{SELECTED.format(selection=clause.sql)} AND {condition}"
    sql = f"SELECT chunk.key, embedding.vector {where} ORDER BY chunk.key"
    return stack_vectors(select(connection, sql, (space.id, *clause.bindings)), space.dimensions)


def sort_by_product(keys: Sequence[int], vectors: Vectors, direction: Vectors) -> list[int]:
    """Return keys in the order of the dot products of their vectors with a direction; of equal ones by key."""
    products = (normalize(vectors) @ direction).tolist()
    order = sorted(range(len(keys)), key=lambda place: (-products[place], keys[place]))
    return [keys[place] for place in order]
