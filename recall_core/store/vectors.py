"""The vectors of a file: the spaces they live in, and the truth as float32 blobs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import apsw

from ..errors import EmbedderMismatchError
from ..filters import Selection
from .compile import compile_scope, compile_selection
from .connection import MEMORY_PATH, select, select_one
from .database import Database
from .protocols import OWN_SPACE, RESERVED, Space, StoredVector

if TYPE_CHECKING:
    from ..models import Vectors

SPACE_COLUMNS = "id, name, model, dimensions"
# A vector that a caller brought belongs to its record, not to every record with the same text.
KNOWN = """
SELECT chunk.hash, embedding.vector FROM chunk
JOIN embedding ON embedding.chunk_key = chunk.key AND embedding.space_id = ? AND NOT embedding.given
WHERE chunk.hash IN (SELECT unhex(value) FROM json_each(?)) AND length(embedding.vector) = ? GROUP BY chunk.hash
"""
# The hashes of texts are spread evenly, so the first ones are a sample, the same one however they were stored.
SAMPLE = """
SELECT min(chunk.key), embedding.vector FROM chunk JOIN record ON record.key = chunk.record_key
JOIN embedding ON embedding.chunk_key = chunk.key AND embedding.space_id = ?
WHERE {scope} GROUP BY chunk.hash ORDER BY chunk.hash LIMIT ?
"""
COPIES = """
SELECT chunk.key FROM json_each(?) AS one JOIN chunk AS known ON known.key = one.value
JOIN chunk ON chunk.hash = known.hash JOIN record ON record.key = chunk.record_key WHERE {selection} LIMIT ?
"""
SAVE = """
INSERT INTO embedding(chunk_key, space_id, vector, given) SELECT key, ?, ?, ? FROM chunk WHERE key = ?
ON CONFLICT(chunk_key, space_id) DO UPDATE SET vector = excluded.vector, given = excluded.given
WHERE excluded.given OR NOT given
"""

OF_RECORDS = f"""
SELECT record.id, space.id, space.name, space.model, space.dimensions, chunk.place, chunk.start, chunk.stop,
  embedding.given, embedding.vector
FROM record JOIN chunk ON chunk.record_key = record.key
JOIN embedding ON embedding.chunk_key = chunk.key JOIN space ON space.id = embedding.space_id
WHERE record.id IN (SELECT value FROM json_each(?)) AND substr(space.name, 1, {len(RESERVED)}) <> '{RESERVED}'
  AND typeof(embedding.vector) = 'blob' AND length(embedding.vector) = 4 * space.dimensions
ORDER BY record.id, space.name, chunk.place
"""


class VectorTable:
    """The vector spaces of a file and the vectors in them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def spaces(self) -> list[Space]:
        """Return the file's vector spaces, oldest first."""
        with self._database.read() as connection:
            return [Space(*row) for row in select(connection, f"SELECT {SPACE_COLUMNS} FROM space ORDER BY id")]

    def find_space(self, name: str) -> Space | None:
        """Return the space of this name, None if there is none yet."""
        with self._database.read() as connection:
            row = select_one(connection, f"SELECT {SPACE_COLUMNS} FROM space WHERE name = ?", (name,))
        return Space(*row) if row else None

    def ensure_space(self, name: str, model: str, dimensions: int) -> Space:
        """Return the space of this name, made if need be. Raises EmbedderMismatchError if another model made it."""
        space = self.find_space(name)
        if space is None:
            with self._database.write() as connection:
                connection.execute(
                    "INSERT INTO space(name, model, dimensions) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    (name, model, dimensions),
                )
            space = self.find_space(name)
        if space is None or (space.model, space.dimensions) != (model, dimensions):
            raise EmbedderMismatchError(describe_mismatch(self._database.path, name, space, model, dimensions))
        return space

    def count_pending(self) -> int:
        """Return how many chunks wait for a vector."""
        with self._database.read() as connection:
            return int(select(connection, "SELECT count(*) FROM pending")[0][0])

    def known(self, space: Space, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the stored vectors of these texts, so that no text is embedded twice in a file."""
        wanted = json.dumps([hash_.hex() for hash_ in hashes])
        with self._database.read() as connection:
            return dict(select(connection, KNOWN, (space.id, wanted, 4 * space.dimensions)))

    def of_records(self, ids: Sequence[str]) -> list[StoredVector]:
        """Return the vectors of these records, by record, space and chunk; those of spaces in the making are not."""
        with self._database.read() as connection:
            rows = select(connection, OF_RECORDS, (json.dumps(list(ids)),))
        return [
            StoredVector(
                record_id=id_, space=Space(*space), place=place, start=start, end=stop, given=bool(given), data=data
            )
            for id_, *space, place, start, stop, given, data in rows
        ]

    def save(self, space: Space, vectors: Mapping[int, bytes], *, settles: bool, given: bool = False) -> None:
        """Store vectors (little-endian float32) by chunk key; `settles` says that the chunks wait for none any more.

        A vector that a caller has `given` is not overwritten by one of ours. Chunks that were deleted meanwhile are
        passed over.
        """
        with self._database.write() as connection:
            connection.executemany(SAVE, [(space.id, vector, given, key) for key, vector in vectors.items()])
            if settles:
                connection.executemany("DELETE FROM pending WHERE chunk_key = ?", [(key,) for key in vectors])

    def sample(self, space: Space, scope: str, size: int, *, apart: bool = False) -> tuple[int, Vectors]:
        """Return how many chunks a scope and its subtree have, and the vectors of `size` different texts of it.

        `apart` holds up no other thread's reads meanwhile.
        """
        clause = compile_scope(scope)
        count = f"SELECT count(*) FROM record JOIN chunk ON chunk.record_key = record.key WHERE {clause.sql}"
        with contextlib.ExitStack() as stack:
            if apart and self._database.path != MEMORY_PATH:
                connection, step = stack.enter_context(self._database.apart())
                stack.enter_context(step)
            else:
                connection = stack.enter_context(self._database.read())
            chunks = int(select(connection, count, clause.bindings)[0][0])
            rows = select(connection, SAMPLE.format(scope=clause.sql), (space.id, *clause.bindings, size))
        return chunks, stack_vectors(rows, space.dimensions)[1]

    def copies(self, keys: Sequence[int], selection: Selection, most: int) -> list[int]:
        """Return the keys of up to `most` selected chunks that say the same as one of these."""
        clause = compile_selection(selection)
        sql = COPIES.format(selection=clause.sql)
        with self._database.read() as connection:
            rows = select(connection, sql, (json.dumps(list(keys)), *clause.bindings, most))
        return [key for (key,) in rows]

    def load(self, space: Space, keys: Sequence[int]) -> tuple[list[int], Vectors]:
        """Return the keys that have a vector in the space, ascending, and the vectors, shape (n, dimensions)."""
        sql = """
        SELECT chunk_key, vector FROM embedding
        WHERE space_id = ? AND chunk_key IN (SELECT value FROM json_each(?)) ORDER BY chunk_key
        """
        with self._database.read() as connection:
            rows = select(connection, sql, (space.id, json.dumps(list(keys))))
        return stack_vectors(rows, space.dimensions)

    def of_firsts(self, space: Space, record_keys: Sequence[int]) -> tuple[list[int], Vectors]:
        """Return the keys of these records whose first chunk has a vector in the space, and the vectors, shape
        (n, dimensions).
        """
        sql = """
        SELECT chunk.record_key, embedding.vector FROM chunk
        JOIN embedding ON embedding.chunk_key = chunk.key AND embedding.space_id = ?
        WHERE chunk.record_key IN (SELECT value FROM json_each(?)) AND chunk.place = 0
        """
        with self._database.read() as connection:
            rows = select(connection, sql, (space.id, json.dumps(list(record_keys))))
        return stack_vectors(rows, space.dimensions)


def stack_vectors(rows: Sequence[tuple[int, bytes]], dimensions: int) -> tuple[list[int], Vectors]:
    """Return the keys of rows of (key, blob) and their vectors, shape (n, dimensions).

    Another program may have stored anything: what is no vector of a finite length above 0 is left out.
    """
    import numpy as np

    whole = [(key, blob) for key, blob in rows if isinstance(blob, bytes) and len(blob) == 4 * dimensions]
    keys = [key for key, _ in whole]
    vectors = np.frombuffer(b"".join(blob for _, blob in whole), dtype="<f4").reshape(len(whole), dimensions)
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors)
    usable = np.isfinite(squares) & (squares > 0)
    if usable.all():
        return keys, vectors
    return [key for key, use in zip(keys, usable, strict=True) if use], vectors[usable]


def check_own(connection: apsw.Connection, path: str, space: Space) -> None:
    """Raise EmbedderMismatchError if another space has become the memory's own since `space` was asked for."""
    row = select_one(connection, f"SELECT {SPACE_COLUMNS} FROM space WHERE name = ?", (OWN_SPACE,))
    own = Space(*row) if row else None
    if space.name == OWN_SPACE and (own is None or own.id != space.id):
        raise EmbedderMismatchError(describe_mismatch(path, OWN_SPACE, own, space.model, space.dimensions))


def describe_mismatch(path: str, name: str, space: Space | None, model: str, dimensions: int) -> str:
    """Say which model made the vectors of a space, which was given, and the two ways out."""
    made = "no model" if space is None else f"{space.model} ({space.dimensions} dimensions)"
    other = (
        "move the file to the other model: recall reembed --model …, or Memory.reembed"
        if name == OWN_SPACE
        else "give the vectors of the other model a space of their own"
    )
    return (
        f"the vectors of {path} (space {name!r}) were made by {made}, not by {model} ({dimensions} dimensions). "
        f"Either open the file with the embedder that made them (or with embedder=None, for keywords only), or {other}"
    )
