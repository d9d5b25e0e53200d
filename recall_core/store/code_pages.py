"""The codes of a space's vectors as they are kept in the file: pages of 1,024 places, one for each chunk key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw

from ..embedding import normalize
from .connection import select, select_one
from .protocols import Space
from .vectors import stack_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..models import Vectors

PLACES = 1024  # of a page; the chunk with key k has place k % 1024 of page k // 1024
CENTRE_SAMPLE = 4_096  # vectors whose mean is the centre

CHANGED = "SELECT chunk_key FROM vector_change WHERE space_id = ? ORDER BY chunk_key LIMIT ?"
CHANGED_VECTORS = """
SELECT embedding.chunk_key, embedding.vector FROM vector_change
JOIN embedding ON embedding.chunk_key = vector_change.chunk_key AND embedding.space_id = vector_change.space_id
WHERE vector_change.space_id = ? AND vector_change.chunk_key <= ? ORDER BY vector_change.chunk_key
"""
SETTLE = "DELETE FROM vector_change WHERE space_id = ? AND chunk_key <= ?"
# Hashes are spread evenly, so the first ones are a sample, the same one in whichever order texts were stored.
FIRST_BY_HASH = """
SELECT chunk.key, embedding.vector FROM chunk JOIN embedding ON embedding.chunk_key = chunk.key AND space_id = ?
ORDER BY chunk.hash LIMIT ?
"""
SAVE_PAGE = """
INSERT INTO code_page(space_id, number, version, present, codes) VALUES (?, ?, ?, ?, ?)
ON CONFLICT(space_id, number) DO UPDATE
SET version = excluded.version, present = excluded.present, codes = excluded.codes
"""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it is read: which of its places have a code, and the codes of these, in their order."""

    number: int
    present: NDArray[np.bool_]
    codes: NDArray[np.uint8]


def read_centre(connection: apsw.Connection, space: Space) -> Vectors | None:
    """Return what a space's codes are centred by, shape (dimensions,); None if it has no codes yet."""
    import numpy as np

    row = select_one(connection, "SELECT centre FROM code_index WHERE space_id = ?", (space.id,))
    return None if row is None else np.frombuffer(row[0], dtype="<f4")


def create_pages(connection: apsw.Connection, space: Space) -> None:
    """Choose the centre of a space's codes."""
    rows = select(connection, FIRST_BY_HASH, (space.id, CENTRE_SAMPLE))
    vectors = normalize(stack_vectors(rows, space.dimensions)[1])
    centre = vectors.mean(axis=0, dtype="f8").astype("<f4")
    connection.execute(
        "INSERT INTO code_index(space_id, version, centre) VALUES (?, 0, ?)", (space.id, centre.tobytes())
    )


def take_up_changes(connection: apsw.Connection, space: Space, limit: int) -> int:
    """Bring up to `limit` changed vectors into the pages; return how many changes were taken up."""
    import numpy as np

    from ..codes import code_bytes, encode

    changed = np.array([key for (key,) in select(connection, CHANGED, (space.id, limit))], dtype=np.int64)
    centre = read_centre(connection, space)
    if not len(changed) or centre is None:
        return 0
    last = int(changed[-1])
    keys, vectors = stack_vectors(select(connection, CHANGED_VECTORS, (space.id, last)), space.dimensions)
    codes = encode(normalize(vectors), centre)
    found = np.array(keys, dtype=np.int64)
    version = _next_version(connection, space)
    for number in np.unique(changed // PLACES).tolist():
        present, laid = _lay_out(_read_page(connection, space, number), code_bytes(space.dimensions))
        present[changed[changed // PLACES == number] % PLACES] = False
        inside = found // PLACES == number
        present[found[inside] % PLACES] = True
        laid[found[inside] % PLACES] = codes[inside]
        page = (np.packbits(present, bitorder="little").tobytes(), laid[present].tobytes())
        connection.execute(SAVE_PAGE, (space.id, number, version, *page))
    connection.execute(SETTLE, (space.id, last))
    return len(changed)


def read_pages(connection: apsw.Connection, space: Space, version: int) -> tuple[int, list[Page]]:
    """Return the version of a space's codes, and the pages that changed after `version`."""
    import numpy as np

    from ..codes import code_bytes

    row = select_one(connection, "SELECT version FROM code_index WHERE space_id = ?", (space.id,))
    now = 0 if row is None else int(row[0])
    if now == version:
        return now, []
    sql = "SELECT number, present, codes FROM code_page WHERE space_id = ? AND version > ? ORDER BY number"
    pages = []
    for number, present, codes in select(connection, sql, (space.id, version)):
        flags = np.unpackbits(np.frombuffer(present, dtype=np.uint8), bitorder="little").astype(bool)
        pages.append(Page(number, flags, np.frombuffer(codes, np.uint8).reshape(-1, code_bytes(space.dimensions))))
    return now, pages


def _next_version(connection: apsw.Connection, space: Space) -> int:
    sql = "UPDATE code_index SET version = version + 1 WHERE space_id = ? RETURNING version"
    ((version,),) = select(connection, sql, (space.id,))
    return int(version)


def _read_page(connection: apsw.Connection, space: Space, number: int) -> tuple[bytes, bytes]:
    sql = "SELECT present, codes FROM code_page WHERE space_id = ? AND number = ?"
    row = select_one(connection, sql, (space.id, number))
    return (bytes(PLACES // 8), b"") if row is None else (row[0], row[1])


def _lay_out(page: tuple[bytes, bytes], width: int) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """Return which places of a page have a code, and an array with all places."""
    import numpy as np

    present = np.unpackbits(np.frombuffer(page[0], dtype=np.uint8), bitorder="little").astype(bool)
    laid = np.zeros((PLACES, width), dtype=np.uint8)
    laid[present] = np.frombuffer(page[1], dtype=np.uint8).reshape(-1, width)
    return present, laid
