"""The records of a file and their chunks: written, read, deleted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import apsw

from ..errors import RecordExistsError, RecordNotFoundError
from ..filters import Selection
from ..models import Record
from ..times import to_micros
from .compile import compile_selection
from .connection import Database, select, select_one
from .protocols import ChunkDraft, Draft, Stored
from .rows import COLUMNS, RECORD_COLUMNS, record_values, row_record, text_hash

INSERT_RECORD = f"""
INSERT INTO record({", ".join(COLUMNS)}, text_hash, indexed)
VALUES ({", ".join("?" for _ in COLUMNS)}, ?, 1) RETURNING key
"""
UPDATE_RECORD = f"""
UPDATE record SET {", ".join(f"{name} = ?" for name in COLUMNS)}, text_hash = ? WHERE id = ? RETURNING key
"""
INSERT_CHUNK = """
INSERT INTO chunk(record_key, place, start, stop, tokens, hash, latin, grams, words, labels)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key
"""
UPDATE_CHUNK = """
UPDATE chunk SET place = ?, start = ?, stop = ?, tokens = ?, hash = ?, latin = ?, grams = ?, words = ?, labels = ?
WHERE key = ?
"""
CHUNK_TEXTS = """
SELECT chunk.key, chunk.hash, substr(record.text, chunk.start + 1, chunk.stop - chunk.start)
FROM record JOIN chunk ON chunk.record_key = record.key WHERE record.id = ? ORDER BY chunk.place
"""
# The chunks of such vectors wait for one of ours again.
FORGET_GIVEN = """
DELETE FROM embedding WHERE given AND chunk_key IN
  (SELECT chunk.key FROM chunk JOIN record ON record.key = chunk.record_key WHERE record.id = ?)
"""
MARK_INDEXED = "UPDATE record SET indexed = 1 WHERE key = ?"
SAME_TEXT = f"""
SELECT {RECORD_COLUMNS} FROM record WHERE scope = ? AND text_hash = ? AND text = ?
AND (expires_at IS NULL OR expires_at > ?) ORDER BY key DESC LIMIT 1
"""
SAME_TURN = f"""
SELECT {RECORD_COLUMNS} FROM record WHERE scope = ? AND session = ? AND place = ? AND role IS ?
AND (expires_at IS NULL OR expires_at > ?) ORDER BY key LIMIT 1
"""


class RecordTable:
    """Implements RecordStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def transaction(self) -> AbstractContextManager[object]:
        """Make several calls one: all of them happen, or none."""
        return self._database.write()

    def write(self, drafts: Sequence[Draft]) -> list[Stored]:
        """Store drafts in one transaction. Raises RecordExistsError; then nothing is stored."""
        with self._database.write() as connection:
            return [_write_draft(connection, draft) for draft in drafts]

    def update(self, record: Record, chunks: Sequence[ChunkDraft] | None) -> Stored:
        """Overwrite the record with this id; None leaves its chunks as they are. Raises RecordNotFoundError.

        Vectors that callers brought stay with chunks whose text stays, whatever else changes.
        """
        with self._database.write() as connection:
            return _update(connection, record, chunks)

    def get(self, ids: Sequence[str], selection: Selection) -> list[Record]:
        """Return the selected ones of these records, in the order of `ids`."""
        clause = compile_selection(selection)
        sql = f"SELECT {RECORD_COLUMNS} FROM record WHERE id IN (SELECT value FROM json_each(?)) AND {clause.sql}"
        with self._database.read() as connection:
            found = {row[0]: row_record(row) for row in select(connection, sql, (json.dumps(ids), *clause.bindings))}
        return [found[id_] for id_ in ids if id_ in found]

    def page(self, selection: Selection, limit: int, after: str | None) -> list[Record]:
        """Return selected records in the order of their ids, from behind the id `after`."""
        clause = compile_selection(selection)
        sql = f"SELECT {RECORD_COLUMNS} FROM record WHERE id > ? AND {clause.sql} ORDER BY id LIMIT ?"
        with self._database.read() as connection:
            return [row_record(row) for row in select(connection, sql, (after or "", *clause.bindings, limit))]

    def count(self, selection: Selection) -> int:
        """Count the selected records."""
        clause = compile_selection(selection)
        with self._database.read() as connection:
            ((counted,),) = select(connection, f"SELECT count(*) FROM record WHERE {clause.sql}", clause.bindings)
        return int(counted)

    def delete(self, ids: Sequence[str], selection: Selection) -> int:
        """Delete the selected ones of these records with all that was derived from them; return how many."""
        clause = compile_selection(selection)
        sql = f"DELETE FROM record WHERE id IN (SELECT value FROM json_each(?)) AND {clause.sql} RETURNING 1"
        with self._database.write() as connection:
            return len(select(connection, sql, (json.dumps(ids), *clause.bindings)))

    def stale(self, limit: int) -> list[Record]:
        """Return records that another program added or changed, so that their chunks are missing or out of date."""
        sql = f"SELECT {RECORD_COLUMNS} FROM record WHERE indexed = 0 ORDER BY key LIMIT ?"
        with self._database.read() as connection:
            return [row_record(row) for row in select(connection, sql, (limit,))]

    def chunk_keys(self, record_id: str) -> list[int]:
        """Return the keys of a record's chunks, in order."""
        sql = """
        SELECT chunk.key FROM record JOIN chunk ON chunk.record_key = record.key
        WHERE record.id = ? ORDER BY chunk.place
        """
        with self._database.read() as connection:
            return [key for (key,) in select(connection, sql, (record_id,))]


def _write_draft(connection: apsw.Connection, draft: Draft) -> Stored:
    record = draft.record
    if draft.once_per_turn and (existing := _same_turn(connection, record)):
        return Stored(existing, ())
    if draft.named and (existing := _living(connection, record)):
        if draft.on_duplicate == "replace" and existing.scope == record.scope:
            return _replace(connection, draft, existing)
        raise RecordExistsError(_describe_clash(draft, existing))
    if draft.on_duplicate != "keep" and not draft.named and (existing := _same_text(connection, record)):
        return _settle_duplicate(connection, draft, existing)
    return _insert(connection, draft)


def _describe_clash(draft: Draft, existing: Record) -> str:
    taken = f"a record with the id {existing.id!r} is already stored"
    if draft.on_duplicate == "replace":  # the other scope may be somebody else's: it is not named
        return f"{taken} in another scope; choose another id, or move that record with update(id, scope=…)"
    return f'{taken}; leave the id out, choose another, or pass on_duplicate="replace"'


def _settle_duplicate(connection: apsw.Connection, draft: Draft, existing: Record) -> Stored:
    now = draft.record.updated_at
    if draft.on_duplicate == "skip":
        return Stored(existing, ())
    if draft.on_duplicate == "touch":
        return _update(connection, replace(existing, updated_at=now, accessed_at=now), None)
    return _replace(connection, draft, existing)


def _insert(connection: apsw.Connection, draft: Draft) -> Stored:
    values = (*record_values(draft.record), text_hash(draft.record.text))
    ((record_key,),) = select(connection, INSERT_RECORD, values)
    keys = tuple(_insert_chunk(connection, record_key, place, chunk) for place, chunk in enumerate(draft.chunks))
    return Stored(draft.record, keys)


def _replace(connection: apsw.Connection, draft: Draft, existing: Record) -> Stored:
    """Put a draft in the place of a record: nothing of the old one stays but its id and when it was made."""
    created_at = draft.record.created_at if draft.dated else existing.created_at
    connection.execute(FORGET_GIVEN, (existing.id,))
    return _update(connection, replace(draft.record, id=existing.id, created_at=created_at), draft.chunks)


def _update(connection: apsw.Connection, record: Record, chunks: Sequence[ChunkDraft] | None) -> Stored:
    slices = {} if chunks is None else _chunk_texts(connection, record.id)
    values = (*record_values(record), text_hash(record.text), record.id)
    row = select(connection, UPDATE_RECORD, values)
    if not row:
        raise RecordNotFoundError(f"no record with the id {record.id!r} is stored; it may have been deleted meanwhile")
    record_key = row[0][0]
    keys = () if chunks is None else _replace_chunks(connection, record_key, record.text, chunks, slices)
    connection.execute(MARK_INDEXED, (record_key,))
    return Stored(record, keys)


def _chunk_texts(connection: apsw.Connection, record_id: str) -> dict[int, tuple[bytes, str]]:
    """Return the hash and the text of each chunk of a record, the last chunk first."""
    return {key: (hash_, text) for key, hash_, text in select(connection, CHUNK_TEXTS, (record_id,))}


def _replace_chunks(
    connection: apsw.Connection,
    record_key: int,
    text: str,
    chunks: Sequence[ChunkDraft],
    old: dict[int, tuple[bytes, str]],
) -> tuple[int, ...]:
    """Write a record's chunks anew. A chunk that says the same keeps its row and with it its vectors; one with the same
    text by another speaker keeps those that callers brought.
    """
    keys = []
    for place, chunk in enumerate(chunks):
        key = next((key for key, (hash_, _) in old.items() if hash_ == chunk.hash), None)
        if key is None:
            key = next((key for key, (_, slice_) in old.items() if slice_ == text[chunk.start : chunk.end]), None)
            if key is not None:
                connection.execute("DELETE FROM embedding WHERE chunk_key = ? AND NOT given", (key,))
                connection.execute("INSERT INTO pending(chunk_key) VALUES (?) ON CONFLICT DO NOTHING", (key,))
        if key is None:
            key = _insert_chunk(connection, record_key, place, chunk)
        else:
            del old[key]
            terms = (chunk.latin, chunk.grams, chunk.words, chunk.labels)
            connection.execute(UPDATE_CHUNK, (place, chunk.start, chunk.end, chunk.tokens, chunk.hash, *terms, key))
        keys.append(key)
    connection.executemany("DELETE FROM chunk WHERE key = ?", [(key,) for key in old])
    return tuple(keys)


def _insert_chunk(connection: apsw.Connection, record_key: int, place: int, chunk: ChunkDraft) -> int:
    offsets = (record_key, place, chunk.start, chunk.end, chunk.tokens, chunk.hash)
    terms = (chunk.latin, chunk.grams, chunk.words, chunk.labels)
    ((key,),) = select(connection, INSERT_CHUNK, (*offsets, *terms))
    return int(key)


def _living(connection: apsw.Connection, record: Record) -> Record | None:
    """Return the stored record with this id. An expired one makes room."""
    connection.execute("DELETE FROM record WHERE id = ? AND expires_at <= ?", (record.id, to_micros(record.updated_at)))
    row = select_one(connection, f"SELECT {RECORD_COLUMNS} FROM record WHERE id = ?", (record.id,))
    return row_record(row) if row else None


def _same_text(connection: apsw.Connection, record: Record) -> Record | None:
    bindings = (record.scope, text_hash(record.text), record.text, to_micros(record.updated_at))
    row = select_one(connection, SAME_TEXT, bindings)
    return row_record(row) if row else None


def _same_turn(connection: apsw.Connection, record: Record) -> Record | None:
    if record.turn is None or record.session is None:
        return None
    bindings = (record.scope, record.session, record.turn, record.role, to_micros(record.updated_at))
    row = select_one(connection, SAME_TURN, bindings)
    return row_record(row) if row else None
