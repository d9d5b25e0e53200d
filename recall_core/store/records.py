"""The records of a file and their chunks: written, read, deleted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import apsw

from ..errors import RecordExistsError, RecordNotFoundError
from ..filters import Selection
from ..models import Record
from ..times import to_micros
from .compile import SQLValue, compile_selection
from .connection import select, select_one
from .database import Database
from .protocols import ChunkDraft, Draft, Stale, Stored, Taken
from .rows import COLUMNS, RECORD_COLUMNS, TEXT_COLUMNS, clean_values, hash_bytes, record_values, row_record, text_hash

INSERT_RECORD = f"""
INSERT INTO record({", ".join(COLUMNS)}, text_hash, indexed)
VALUES ({", ".join("?" for _ in COLUMNS)}, ?, 1) RETURNING key
"""
# `indexed` moves on, or the change would be taken for another program's; where it is 0 it stays so.
UPDATE_RECORD = f"""
UPDATE record SET {", ".join(f"{name} = ?" for name in COLUMNS)}, indexed = indexed + (indexed > 0)
WHERE key = ?
"""
MARK_INDEXED = "UPDATE record SET text_hash = ?, indexed = indexed + 1 WHERE key = ?"
# What another program wrote may be no UTF-8, so it is read as bytes.
STALE = f"""
SELECT key, {", ".join(f"CAST({name} AS BLOB)" if name in TEXT_COLUMNS else name for name in COLUMNS)}
FROM record WHERE {{which}} ORDER BY key LIMIT ?
"""
UPDATE_TEXTS = f"UPDATE record SET {', '.join(f'{name} = ?' for name in TEXT_COLUMNS)} WHERE key = ?"
INSERT_CHUNK = """
INSERT INTO chunk(record_key, place, start, stop, tokens, hash, latin, grams, words, labels, embeds)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key
"""
UPDATE_CHUNK = """
UPDATE chunk SET place = ?, start = ?, stop = ?, tokens = ?, hash = ?, latin = ?, grams = ?, words = ?, labels = ?,
  embeds = ? WHERE key = ?
"""
RAW_TEXT = "SELECT CAST(text AS BLOB), text_hash FROM record WHERE key = ?"
CHUNKS = "SELECT key, hash, start, stop FROM chunk WHERE record_key = ? ORDER BY place"
# The chunks of such vectors wait for one of ours again.
FORGET_GIVEN = """
DELETE FROM embedding WHERE given AND chunk_key IN
  (SELECT chunk.key FROM chunk JOIN record ON record.key = chunk.record_key WHERE record.id = ?)
"""
# Where the same text is cut otherwise, such vectors stay with the record: they stand for all of it.
GIVEN = """
SELECT space_id, vector FROM embedding JOIN chunk ON chunk.key = chunk_key WHERE record_key = ? AND given
ORDER BY place DESC
"""
KEEP_GIVEN = """
INSERT INTO embedding(chunk_key, space_id, vector, given) SELECT key, ?2, ?3, 1 FROM chunk WHERE record_key = ?1
  AND NOT EXISTS (SELECT 1 FROM chunk JOIN embedding ON chunk_key = chunk.key
    WHERE record_key = ?1 AND space_id = ?2 AND given) ORDER BY place LIMIT 1
ON CONFLICT(chunk_key, space_id) DO UPDATE SET vector = excluded.vector, given = 1
"""
# The chunk says something else now: it waits for a vector as if it were new.
REQUEUE = """
INSERT INTO pending(chunk_key) SELECT key FROM chunk WHERE key = ? AND embeds
ON CONFLICT DO UPDATE SET attempts = 0, next_at = 0, error = NULL, owner = NULL, leased_until = 0
"""
SAME_TEXT = f"""
SELECT {RECORD_COLUMNS} FROM record WHERE scope = ? AND text_hash = ? AND text = ?
AND (expires_at IS NULL OR expires_at > ?) ORDER BY key LIMIT 1
"""
SAME_TURN = f"""
SELECT {RECORD_COLUMNS} FROM record WHERE scope = ? AND session = ? AND place = ? AND role IS ?
AND (expires_at IS NULL OR expires_at > ?) ORDER BY key LIMIT 1
"""

# The trash may hold several records of one id; a living one counts before them.
TAKEN = """
WITH wanted AS (SELECT value AS id FROM json_each(?))
SELECT trash.id, trash.scope, 1 FROM wanted JOIN trash USING (id)
UNION ALL SELECT record.id, record.scope, 0 FROM wanted JOIN record USING (id)
"""


class _OldChunk(NamedTuple):
    key: int
    hash: bytes
    text: str | None


class _Leftover:
    """The old chunks of a record that no new one has taken the place of yet, by what they say."""

    def __init__(self, old: Sequence[_OldChunk]) -> None:
        self.keys = {chunk.key for chunk in old}
        self._same: dict[bytes | str, list[_OldChunk]] = {}
        for chunk in reversed(old):
            for what in (chunk.hash, chunk.text):
                if what is not None:
                    self._same.setdefault(what, []).append(chunk)

    def take(self, what: bytes | str) -> _OldChunk | None:
        """Take out the first chunk with this hash, or with this text."""
        found = self._same.get(what, [])
        while found:
            chunk = found.pop()
            if chunk.key in self.keys:
                self.keys.remove(chunk.key)
                return chunk
        return None


class RecordTable:
    """The records of one database."""

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

    def find_taken(self, ids: Sequence[str]) -> dict[str, Taken]:
        """Return which of these ids are taken, by records that are visible, expired, or deleted and can be restored."""
        with self._database.read() as connection:
            rows = select(connection, TAKEN, (json.dumps(list(ids)),))
        return {id_: Taken(scope, bool(deleted)) for id_, scope, deleted in rows}

    def page(
        self,
        selection: Selection,
        limit: int,
        after: str | None,
        *,
        newest_first: bool | Literal["created_at"] = False,
        offset: int = 0,
    ) -> list[Record]:
        """Return selected records from behind the id `after`, in the order of their ids, or the last changed or, by
        `created_at`, the last made first.
        """
        clause = compile_selection(selection)
        newest = "created_at" if newest_first == "created_at" else "updated_at"
        order = f"{newest} DESC, key DESC" if newest_first else "id"
        sql = f"SELECT {RECORD_COLUMNS} FROM record WHERE id > ? AND {clause.sql} ORDER BY {order} LIMIT ? OFFSET ?"
        bindings = (after or "", *clause.bindings, limit, offset)
        with self._database.read() as connection:
            return [row_record(row) for row in select(connection, sql, bindings)]

    def scopes(self, selection: Selection) -> list[str]:
        """Return the scopes that selected records lie in, sorted."""
        clause = compile_selection(selection)
        sql = f"SELECT DISTINCT scope FROM record WHERE {clause.sql} ORDER BY scope"
        with self._database.read() as connection:
            return [scope for (scope,) in select(connection, sql, clause.bindings)]

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

    def stale(self, limit: int, after: int = 0) -> list[Stale]:
        """Return records from behind the key `after` that another program added or changed."""
        with self._database.read() as connection:
            return [stale for stale, _ in read_written(connection, "indexed = 0 AND key > ?", (after, limit))]

    def reindex(self, stale: Stale, chunks: Sequence[ChunkDraft]) -> bool:
        """Write the chunks of a stale record, and its text as it can be read; tell whether that was done.

        It is not if the record was changed once more, or deleted, since `stale` was read.
        """
        with self._database.write() as connection:
            found = read_written(connection, "indexed = 0 AND key = ?", (stale.key, 1))
            if not found or found[0][0] != stale:
                return False
            try:
                connection.execute(UPDATE_TEXTS, (*found[0][1], stale.key))
            except apsw.ConstraintError:  # the id, made readable, is another record's
                return False
            old = _old_chunks(connection, stale.key)
            same_text = any(chunk.text is not None for chunk in old)
            given = select(connection, GIVEN, (stale.key,)) if same_text else []
            _replace_chunks(connection, stale.key, stale.record.text, chunks, old)
            for space, vector in given:
                connection.execute(KEEP_GIVEN, (stale.key, space, vector))
            return True

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
    looks_for_text = draft.on_duplicate in ("skip", "touch") or (draft.on_duplicate == "replace" and not draft.named)
    if looks_for_text and (existing := _same_text(connection, record)):
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
    keys = tuple(insert_chunk(connection, record_key, place, chunk) for place, chunk in enumerate(draft.chunks))
    return Stored(draft.record, keys)


def _replace(connection: apsw.Connection, draft: Draft, existing: Record) -> Stored:
    """Put a draft in the place of a record: nothing of the old one stays but its id and when it was made."""
    created_at = draft.record.created_at if draft.dated else existing.created_at
    connection.execute(FORGET_GIVEN, (existing.id,))
    return _update(connection, replace(draft.record, id=existing.id, created_at=created_at), draft.chunks)


def _update(connection: apsw.Connection, record: Record, chunks: Sequence[ChunkDraft] | None) -> Stored:
    row = select_one(connection, "SELECT key FROM record WHERE id = ?", (record.id,))
    if row is None:
        raise RecordNotFoundError(f"no record with the id {record.id!r} is stored; it may have been deleted meanwhile")
    old = [] if chunks is None else _old_chunks(connection, row[0])
    connection.execute(UPDATE_RECORD, (*record_values(record), row[0]))
    return Stored(record, () if chunks is None else _replace_chunks(connection, row[0], record.text, chunks, old))


def read_written(
    connection: apsw.Connection, which: str, bindings: Sequence[SQLValue]
) -> list[tuple[Stale, list[Any]]]:
    """Return records, which another program may have written, and the values of TEXT_COLUMNS, both with their text
    made storable.
    """
    found = []
    for record_key, *values in select(connection, STALE.format(which=which), bindings):
        values = clean_values(values)
        texts = [value for name, value in zip(COLUMNS, values, strict=True) if name in TEXT_COLUMNS]
        found.append((Stale(record_key, row_record(values)), texts))
    return found


def _old_chunks(connection: apsw.Connection, record_key: int) -> list[_OldChunk]:
    """Return the chunks of a record. What they say is not known if another program has changed the text since."""
    ((raw, known_hash),) = select(connection, RAW_TEXT, (record_key,))
    text = raw.decode("utf-8") if hash_bytes(raw) == known_hash else None
    return [
        _OldChunk(key, hash_, None if text is None else text[start:stop])
        for key, hash_, start, stop in select(connection, CHUNKS, (record_key,))
    ]


def _replace_chunks(
    connection: apsw.Connection, record_key: int, text: str, chunks: Sequence[ChunkDraft], old: Sequence[_OldChunk]
) -> tuple[int, ...]:
    """Write a record's chunks anew. A chunk that says the same keeps its row and with it its vectors; one with the same
    text by another speaker keeps those that callers brought.
    """
    left = _Leftover(old)
    keys = []
    for place, chunk in enumerate(chunks):
        kept = left.take(chunk.hash) or left.take(text[chunk.start : chunk.end])
        if kept is None:
            keys.append(insert_chunk(connection, record_key, place, chunk))
            continue
        if kept.hash != chunk.hash:
            connection.execute("DELETE FROM embedding WHERE chunk_key = ? AND NOT given", (kept.key,))
            connection.execute(REQUEUE, (kept.key,))
        offsets = (place, chunk.start, chunk.end, chunk.tokens, chunk.hash)
        connection.execute(UPDATE_CHUNK, (*offsets, *_searched(chunk), kept.key))
        keys.append(kept.key)
    connection.executemany("DELETE FROM chunk WHERE key = ?", [(key,) for key in left.keys])
    connection.execute(MARK_INDEXED, (text_hash(text), record_key))
    return tuple(keys)


def insert_chunk(connection: apsw.Connection, record_key: int, place: int, chunk: ChunkDraft) -> int:
    """Store a chunk of a record and return its key."""
    offsets = (record_key, place, chunk.start, chunk.end, chunk.tokens, chunk.hash)
    ((key,),) = select(connection, INSERT_CHUNK, (*offsets, *_searched(chunk)))
    return int(key)


def _searched(chunk: ChunkDraft) -> tuple[str, str, str, str, bool]:
    """Return by what a chunk is found: its terms, and whether by a vector."""
    return chunk.latin, chunk.grams, chunk.words, chunk.labels, chunk.embeds


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
