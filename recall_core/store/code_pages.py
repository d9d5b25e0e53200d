"""The codes of a space's vectors as they are kept in the file: pages of 1,024 places, one for each chunk key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw

from ..vectors import normalize
from .connection import select, select_one
from .protocols import Space
from .vectors import stack_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..models import Vectors

PLACES = 1024  # of a page; the chunk with key k has place k % 1024 of page k // 1024
CENTRE_SAMPLE = 4_096  # vectors whose mean is the centre

COUNT_CHANGES = "SELECT count(*) FROM (SELECT 1 FROM vector_change WHERE space_id = ? LIMIT ?)"
FORGET_DELETED = """
DELETE FROM vector_change WHERE space_id = ?1 AND chunk_key NOT IN (SELECT chunk_key FROM embedding WHERE space_id = ?1)
"""
# Without foreign keys another program can store any value as a key; integers come before all others.
CHANGED = """
SELECT chunk_key FROM vector_change WHERE space_id = ? AND typeof(chunk_key) = 'integer' ORDER BY chunk_key LIMIT ?
"""
CHANGED_VECTORS = """
SELECT embedding.chunk_key, embedding.vector FROM vector_change
JOIN embedding ON embedding.chunk_key = vector_change.chunk_key AND embedding.space_id = vector_change.space_id
WHERE vector_change.space_id = ? AND vector_change.chunk_key <= ? AND typeof(vector_change.chunk_key) = 'integer'
ORDER BY vector_change.chunk_key
"""
PAGE_VECTORS = """
SELECT chunk_key, vector FROM embedding
WHERE space_id = ? AND chunk_key BETWEEN ? AND ? AND typeof(chunk_key) = 'integer' ORDER BY chunk_key
"""
PAGE_CHANGES = """
SELECT chunk_key FROM vector_change WHERE space_id = ? AND chunk_key BETWEEN ? AND ? AND typeof(chunk_key) = 'integer'
"""
SETTLE_PAGE = "DELETE FROM vector_change WHERE space_id = ? AND chunk_key BETWEEN ? AND ?"
SETTLE = "DELETE FROM vector_change WHERE space_id = ? AND chunk_key <= ?"
# Hashes are spread evenly, so the first ones are a sample, the same one in whichever order texts were stored. A text
# that is stored several times counts once.
FIRST_BY_HASH = """
SELECT min(chunk.key), embedding.vector FROM chunk JOIN embedding ON embedding.chunk_key = chunk.key AND space_id = ?
GROUP BY chunk.hash ORDER BY chunk.hash LIMIT ?
"""
SAVE_PAGE = """
INSERT INTO code_page(space_id, number, version, present, codes) VALUES (?, ?, ?, ?, ?)
ON CONFLICT(space_id, number) DO UPDATE
SET version = excluded.version, present = excluded.present, codes = excluded.codes
"""


@dataclass(frozen=True, slots=True)
class Page:
    """A page: the chunk keys that have a code in it, shape (n,), and their codes, shape (n, bytes)."""

    number: int
    keys: NDArray[np.int64]
    codes: NDArray[np.uint8]


def has_pages(connection: apsw.Connection, space: Space) -> bool:
    """Tell whether a space has codes."""
    return select_one(connection, "SELECT 1 FROM code_index WHERE space_id = ?", (space.id,)) is not None


def read_centre(connection: apsw.Connection, space: Space) -> Vectors | None:
    """Return what a space's codes are centred by, shape (dimensions,); None if it has no codes, or can't be read."""
    import numpy as np

    row = select_one(connection, "SELECT centre FROM code_index WHERE space_id = ?", (space.id,))
    if row is None or len(row[0]) != 4 * space.dimensions:
        return None
    centre = np.frombuffer(row[0], dtype="<f4")
    return centre if np.isfinite(centre).all() else None


def create_pages(connection: apsw.Connection, space: Space, least: int) -> bool:
    """Choose the centre of a space's codes, if it has at least so many vectors; tell whether it has."""
    import numpy as np

    connection.execute("DELETE FROM code_index WHERE space_id = ?", (space.id,))  # one that can't be read
    connection.execute(FORGET_DELETED, (space.id,))
    if count_changes(connection, space, least) < least:
        return False
    rows = select(connection, FIRST_BY_HASH, (space.id, CENTRE_SAMPLE))
    vectors = normalize(stack_vectors(rows, space.dimensions)[1])
    centre = vectors.mean(axis=0, dtype="f8") if len(vectors) else np.zeros(space.dimensions)
    connection.execute(
        "INSERT INTO code_index(space_id, centre) VALUES (?, ?)", (space.id, centre.astype("<f4").tobytes())
    )
    return True


def count_changes(connection: apsw.Connection, space: Space, most: int) -> int:
    """Return how many vectors changed since the codes were last refreshed, up to `most`."""
    return int(select(connection, COUNT_CHANGES, (space.id, most))[0][0])


def count_vectors(connection: apsw.Connection, space: Space, most: int) -> int:
    """Return how many vectors a space has, up to `most`."""
    sql = "SELECT count(*) FROM (SELECT 1 FROM embedding WHERE space_id = ? LIMIT ?)"
    return int(select(connection, sql, (space.id, most))[0][0])


def take_up_changes(connection: apsw.Connection, space: Space, limit: int) -> int:
    """Bring up to `limit` changed vectors into the pages; return how many changes were taken up.

    A page that is missing or can't be read is made anew from all of its vectors.
    """
    import numpy as np

    changed = np.array([key for (key,) in select(connection, CHANGED, (space.id, limit))], dtype=np.int64)
    centre = read_centre(connection, space)
    if not len(changed) or centre is None:
        return 0
    last = int(changed[-1])
    keys, codes = _encode(select(connection, CHANGED_VECTORS, (space.id, last)), space, centre)
    version = _next_version(connection, space)
    for number in np.unique(changed // PLACES).tolist():
        page = _read_page(connection, space, number)
        if page is None:
            page = _make_page(connection, space, number, centre)
        else:
            stay, inside = ~np.isin(page.keys, changed), keys // PLACES == number
            page = Page(
                number,
                np.concatenate([page.keys[stay], keys[inside]]),
                np.concatenate([page.codes[stay], codes[inside]]),
            )
        _save_page(connection, space, version, page)
    connection.execute(SETTLE, (space.id, last))
    return len(changed)


def next_page(connection: apsw.Connection, space: Space, after: int) -> int | None:
    """Return the number of the first page behind `after` that vectors or codes belong to."""
    sql = """
    SELECT min(number) FROM (
      SELECT min(number) AS number FROM code_page WHERE space_id = ?1 AND number > ?2
      UNION ALL
      SELECT min(chunk_key) >> 10 FROM embedding WHERE space_id = ?1 AND chunk_key >= (?2 + 1) * 1024)
    """
    ((number,),) = select(connection, sql, (space.id, after))
    return None if number is None else int(number)


def rebuild_page(connection: apsw.Connection, space: Space, centre: Vectors, number: int) -> int:
    """Make a page anew from its vectors; return how many there are. One without any is dropped."""
    page = _make_page(connection, space, number, centre)
    if len(page.keys):
        _save_page(connection, space, _next_version(connection, space), page)
    else:
        connection.execute("DELETE FROM code_page WHERE space_id = ? AND number = ?", (space.id, number))
    connection.execute(SETTLE_PAGE, (space.id, *_keys_of(number)))
    return len(page.keys)


def drop_pages(connection: apsw.Connection, space: Space) -> None:
    """Drop a space's codes; all of its vectors are compared in full from now on."""
    connection.execute("DELETE FROM code_index WHERE space_id = ?", (space.id,))
    connection.execute(FORGET_DELETED, (space.id,))


def drop_empty_pages(connection: apsw.Connection, space: Space) -> None:
    """Drop the pages that hold no code. Who holds them in memory finds no chunk of theirs any more."""
    connection.execute("DELETE FROM code_page WHERE space_id = ? AND present = zeroblob(128)", (space.id,))


def verify_page(connection: apsw.Connection, space: Space, number: int) -> bool:
    """Tell whether a page can be read and holds the codes of its vectors, but for those that changed since."""
    import numpy as np

    page, centre = _read_page(connection, space, number), read_centre(connection, space)
    if centre is None:
        return False
    changed = np.array([key for (key,) in select(connection, PAGE_CHANGES, (space.id, *_keys_of(number)))], np.int64)
    wanted = _make_page(connection, space, number, centre)
    expected = ~np.isin(wanted.keys, changed)
    if page is None:
        return not expected.any() and not _has_page(connection, space, number)
    settled = ~np.isin(page.keys, changed)
    return np.array_equal(page.keys[settled], wanted.keys[expected]) and np.array_equal(
        page.codes[settled], wanted.codes[expected]
    )


def read_version(connection: apsw.Connection, space: Space) -> int:
    """Return a number that grows whenever a space's codes change."""
    row = select_one(connection, "SELECT version FROM code_index WHERE space_id = ?", (space.id,))
    return 0 if row is None else int(row[0])


def read_pages(connection: apsw.Connection, space: Space, version: int) -> list[Page]:
    """Return the pages that changed after `version`. One that can't be read is empty."""
    import numpy as np

    from ..codes import code_bytes

    sql = "SELECT number, present, codes FROM code_page WHERE space_id = ? AND version > ? ORDER BY number"
    nothing = (np.zeros(0, np.int64), np.zeros((0, code_bytes(space.dimensions)), np.uint8))
    return [
        _decode(space, number, present, codes) or Page(number, *nothing)
        for number, present, codes in select(connection, sql, (space.id, version))
    ]


def _next_version(connection: apsw.Connection, space: Space) -> int:
    sql = "UPDATE code_index SET version = version + 1 WHERE space_id = ? RETURNING version"
    ((version,),) = select(connection, sql, (space.id,))
    return int(version)


def _encode(
    rows: Sequence[tuple[int, bytes]], space: Space, centre: Vectors
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the keys of rows of (key, blob) that are vectors, and their codes."""
    import numpy as np

    from ..codes import encode

    keys, vectors = stack_vectors(rows, space.dimensions)
    return np.array(keys, dtype=np.int64), encode(normalize(vectors), centre)


def _keys_of(number: int) -> tuple[int, int]:
    """Return the first and the last chunk key of a page."""
    return number * PLACES, number * PLACES + PLACES - 1


def _make_page(connection: apsw.Connection, space: Space, number: int, centre: Vectors) -> Page:
    whole = (space.id, *_keys_of(number))
    return Page(number, *_encode(select(connection, PAGE_VECTORS, whole), space, centre))


def _has_page(connection: apsw.Connection, space: Space, number: int) -> bool:
    sql = "SELECT 1 FROM code_page WHERE space_id = ? AND number = ?"
    return select_one(connection, sql, (space.id, number)) is not None


def _read_page(connection: apsw.Connection, space: Space, number: int) -> Page | None:
    sql = "SELECT present, codes FROM code_page WHERE space_id = ? AND number = ?"
    row = select_one(connection, sql, (space.id, number))
    return None if row is None else _decode(space, number, *row)


def _decode(space: Space, number: int, present: bytes, codes: bytes) -> Page | None:
    """Return a page, None if its codes are not as many as it says."""
    import numpy as np

    from ..codes import code_bytes

    places = np.flatnonzero(np.unpackbits(np.frombuffer(present, dtype=np.uint8), bitorder="little"))
    width = code_bytes(space.dimensions)
    if len(codes) != len(places) * width:
        return None
    return Page(number, number * PLACES + places, np.frombuffer(codes, dtype=np.uint8).reshape(-1, width))


def _save_page(connection: apsw.Connection, space: Space, version: int, page: Page) -> None:
    import numpy as np

    order = np.argsort(page.keys)
    present = np.zeros(PLACES, dtype=bool)
    present[page.keys % PLACES] = True
    blobs = (np.packbits(present, bitorder="little").tobytes(), page.codes[order].tobytes())
    connection.execute(SAVE_PAGE, (space.id, page.number, version, *blobs))
