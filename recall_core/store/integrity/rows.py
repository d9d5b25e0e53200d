"""The records and vectors of a file, read one batch after the other, and named where they can't be read or used."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from ...damage import MOST_NAMED, Damage, make_damage
from ...models import Record
from ..connection import select
from ..protocols import Space
from ..rows import COLUMNS, TEXT_COLUMNS, hash_bytes, row_record, text_hash
from ..schema import FIRST_TIME, LAST_TIME, MAX_NAME, MAX_SCOPE
from ..vectors import stack_vectors
from .access import Access

BATCH = 256  # records, with their chunks
VECTORS = 1_024


def _named(column: str, *, optional: bool = True) -> str:
    holds = f"typeof({column}) = 'text' AND length({column}) BETWEEN 1 AND {MAX_NAME}"
    return f"{column} IS NULL OR {holds}" if optional else holds


def _timed(column: str, *, optional: bool = False) -> str:
    holds = f"typeof({column}) = 'integer' AND {column} BETWEEN {FIRST_TIME} AND {LAST_TIME}"
    return f"{column} IS NULL OR {holds}" if optional else holds


def _json(column: str, kind: str) -> str:
    return (
        f"typeof({column}) = 'text' AND CASE WHEN json_valid({column}) THEN json_type({column}) = '{kind}' ELSE 0 END"
    )


# What has to hold of each column: the constraints of the table, and what its triggers see to.
SOUND = {
    "id": _named("id", optional=False),
    "scope": f"typeof(scope) = 'text' AND length(scope) <= {MAX_SCOPE}",
    "session": _named("session"),
    "turn": "typeof(turn) IN ('integer', 'null')",
    "role": _named("role"),
    "kind": _named("kind", optional=False),
    "text": "typeof(text) = 'text'",
    "payload": "payload IS NULL OR typeof(payload) = 'text' AND json_valid(payload)",
    "metadata": _json("metadata", "object"),
    "tags": f"""
    {_json("tags", "array")} AND CASE WHEN json_valid(tags) THEN NOT EXISTS (SELECT 1 FROM json_each(tags)
      WHERE type <> 'text' OR length(value) NOT BETWEEN 1 AND {MAX_NAME}) END
    """,
    "source": _named("source"),
    "importance": "typeof(importance) IN ('integer', 'real') AND importance BETWEEN 0 AND 1",
    "created_at": _timed("created_at"),
    "updated_at": _timed("updated_at"),
    "accessed_at": _timed("accessed_at", optional=True),
    "expires_at": _timed("expires_at", optional=True),
}
BROKEN = "concat_ws(' ', " + ", ".join(f"iif({holds}, NULL, '{name}')" for name, holds in SOUND.items()) + ")"
VALUES = ", ".join(
    f"CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END" if name in TEXT_COLUMNS else name
    for name in COLUMNS
)
RECORDS = f"SELECT key, {BROKEN}, indexed, text_hash, {VALUES} FROM record WHERE key >= ? ORDER BY key LIMIT ?"
CHUNKS = """
SELECT record_key, place, start, stop, tokens, hash, latin, grams, words, labels FROM chunk
WHERE record_key BETWEEN ? AND ? ORDER BY record_key, place, key
"""
# Found through an index alone, for the table itself can't be read.
IDS = "SELECT key, CAST(id AS BLOB) FROM record INDEXED BY sqlite_autoindex_record_1"
# Such a record is indexed anew for the text that it has, so that vectors which callers brought stay with it.
MARK = "UPDATE record SET indexed = 0, text_hash = ? WHERE key = ? AND indexed > 0"


@dataclass(frozen=True, slots=True)
class ChunkValues:
    """What the file holds of a chunk, of whatever types."""

    place: Any
    start: Any
    stop: Any
    tokens: Any
    hash: Any
    latin: Any
    grams: Any
    words: Any
    labels: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A record as it was found: None, and why, if it can't be used. `current` says that its text is the
    indexed one; `chunks` is None where they can't be read.
    """

    key: int
    id: str
    record: Record | None
    broken: str
    indexed: bool
    current: bool
    chunks: tuple[ChunkValues, ...] | None


class Names:
    """Counts, and keeps the first names."""

    def __init__(self) -> None:
        self.count = 0
        self.names: list[str] = []

    def add(self, name: str) -> None:
        """Count a name."""
        self.count += 1
        if len(self.names) < MOST_NAMED:
            self.names.append(name)


def examine_records(access: Access) -> Iterator[Examined]:
    """Return all records with their chunks, in the order of their keys, some hundred at a time.

    Of those that can't be read at all there is the id alone, with "unreadable" for what is broken.
    """
    first = -(1 << 63)
    while True:
        try:
            with access.read() as connection:
                batch = _read_batch(connection, first, BATCH)
        except (apsw.CorruptError, apsw.IOError):
            yield from _examine_singly(access, first)
            return
        yield from batch
        if len(batch) < BATCH:
            return
        first = batch[-1].key + 1


def examine_some(access: Access, keys: Sequence[int]) -> Iterator[Examined]:
    """Return those of these records that are there still, with their chunks."""
    for key in keys:
        with access.read() as connection:
            found = _read_batch(connection, key, 1)
        yield from (one for one in found if one.key == key)


def find_vector_damage(access: Access) -> Iterator[Damage]:
    """Name the records whose vectors are damaged."""
    broken = Names()
    with access.read() as connection:
        spaces = [Space(*row) for row in select(connection, "SELECT id, name, model, dimensions FROM space")]
    for space in spaces:
        for keys in _broken_vectors(access, space):
            with access.read() as connection:
                for id_ in _vector_owners(connection, keys):
                    broken.add(id_)
    if broken.count:
        yield make_damage("vector-broken", broken.count, records=broken.names)


def mark_stale(access: Access, examined: Sequence[Examined]) -> None:
    """Ask for these records to be indexed anew."""
    rows = [(text_hash(one.record.text), one.key) for one in examined if one.record is not None]
    with access.write() as connection:
        connection.executemany(MARK, rows)


def _read_batch(connection: apsw.Connection, first: int, limit: int) -> list[Examined]:
    rows = select(connection, RECORDS, (first, limit))
    if not rows:
        return []
    try:
        found = select(connection, CHUNKS, (rows[0][0], rows[-1][0]))
    except (apsw.Error, UnicodeDecodeError):  # the records can be read all the same
        return [_examine(row, None) for row in rows]
    chunks = {
        key: tuple(ChunkValues(*values) for _, *values in group)
        for key, group in itertools.groupby(found, lambda row: row[0])
    }
    return [_examine(row, chunks.get(row[0], ())) for row in rows]


def _examine(row: Sequence[Any], chunks: tuple[ChunkValues, ...] | None) -> Examined:
    key, broken, indexed, known_hash, *values = row
    id_ = values[0].decode("utf-8", "replace") if isinstance(values[0], bytes) else str(values[0])
    current = False
    record = None
    if not broken:
        current = hash_bytes(values[COLUMNS.index("text")]) == known_hash
        try:
            record = row_record([value.decode("utf-8") if isinstance(value, bytes) else value for value in values])
        except UnicodeDecodeError:
            broken = "text" if indexed else ""  # what is not indexed yet is made readable then
    return Examined(
        key=key, id=id_, record=record, broken=broken, indexed=bool(indexed), current=current, chunks=chunks
    )


def _examine_singly(access: Access, first: int) -> Iterator[Examined]:
    """Return the records from a key on where some can't be read, one by one as an index knows them."""
    with access.read() as connection:
        known = select(connection, IDS)
    for key, id_ in sorted(known):
        if key < first:
            continue
        try:
            with access.read() as connection:
                yield from _read_batch(connection, key, 1)
        except (apsw.CorruptError, apsw.IOError):
            name = id_.decode("utf-8", "replace")
            yield Examined(key=key, id=name, record=None, broken="unreadable", indexed=True, current=False, chunks=())


def _broken_vectors(access: Access, space: Space) -> Iterator[list[int]]:
    """Return the keys of the embeddings of a space that are no vectors, a list for each batch that has some."""
    sql = "SELECT key, vector FROM embedding WHERE key > ? AND space_id = ? ORDER BY key LIMIT ?"
    after = -(1 << 63)
    while True:
        with access.read() as connection:
            rows = select(connection, sql, (after, space.id, VECTORS))
        usable = set(stack_vectors(rows, space.dimensions)[0])
        if len(usable) < len(rows):
            yield [key for key, _ in rows if key not in usable]
        if len(rows) < VECTORS:
            return
        after = rows[-1][0]


def _vector_owners(connection: apsw.Connection, keys: Sequence[int]) -> Iterator[str]:
    sql = """
    SELECT record.id FROM embedding JOIN chunk ON chunk.key = chunk_key JOIN record ON record.key = record_key
    WHERE embedding.key = ?
    """
    for key in keys:  # one that belongs to no record is told of elsewhere
        yield from (str(owner) for (owner,) in select(connection, sql, (key,)))
