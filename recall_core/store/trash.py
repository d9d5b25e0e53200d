"""The trash: records that were deleted and can be brought back for a while."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..errors import RecordExistsError
from ..filters import Selection
from ..models import Record
from .compile import SQLValue, compile_selection
from .connection import select, select_one
from .database import Database
from .protocols import OWN_SPACE, RESERVED, ChunkDraft, SessionKey, Stored, Trashed
from .records import insert_chunk
from .rows import COLUMNS, RECORD_COLUMNS, TEXT_COLUMNS, clean_values, row_record, text_hash

NAMES = ", ".join(COLUMNS)
PUT = f"""
INSERT INTO trash(record_key, deleted_at, title, {NAMES})
SELECT record.key, ?, (SELECT title FROM session WHERE session.scope = record.scope AND session.id = record.session),
  {RECORD_COLUMNS} FROM record WHERE {{which}} ORDER BY record.key
"""
# Vectors that callers brought can't be made anew. CROSS JOIN keeps SQLite from reading all vectors of the file first.
PUT_VECTORS = """
INSERT INTO trash_vector(trash_key, space_id, start, vector)
SELECT trash.key, embedding.space_id, chunk.start, embedding.vector FROM trash
CROSS JOIN chunk ON chunk.record_key = trash.record_key
CROSS JOIN embedding ON embedding.chunk_key = chunk.key AND given
WHERE trash.key > ? ORDER BY chunk.place ON CONFLICT DO NOTHING
"""
TAKE_OUT = "DELETE FROM record WHERE key IN (SELECT record_key FROM trash WHERE key > ?)"
# What another program wrote just before may be no UTF-8, so it is read as bytes.
RAW_COLUMNS = ", ".join(f"CAST({name} AS BLOB)" if name in TEXT_COLUMNS else name for name in COLUMNS)
# Only the last entry of an id counts: the others are what it was before.
NEWEST = "key IN (SELECT max(key) FROM trash AS record WHERE {which} GROUP BY id)"
INSERT_RECORD = f"""
INSERT INTO record(key, {NAMES}, text_hash, indexed) VALUES (?, {", ".join("?" for _ in COLUMNS)}, ?, 1) RETURNING key
"""
FREE_KEY = "SELECT record_key FROM trash WHERE key = ? AND record_key NOT IN (SELECT key FROM record)"
# With the chunk that begins where theirs did, or holds that place if the text is cut otherwise now.
RESTORE_VECTORS = f"""
INSERT INTO embedding(chunk_key, space_id, vector, given)
SELECT (SELECT key FROM chunk WHERE record_key = ? AND (chunk.start <= trash_vector.start OR place = 0)
    ORDER BY chunk.start DESC, place LIMIT 1), space_id, vector, 1
FROM trash_vector JOIN space ON space.id = space_id
WHERE trash_key = ? AND substr(space.name, 1, {len(RESERVED)}) <> '{RESERVED}' ORDER BY trash_vector.start
ON CONFLICT DO NOTHING
"""
SETTLE = f"""
DELETE FROM pending WHERE chunk_key IN
  (SELECT chunk_key FROM chunk JOIN embedding ON chunk_key = chunk.key JOIN space ON space.id = space_id
   WHERE record_key = ? AND name = '{OWN_SPACE}')
"""
RESTORE_TITLE = """
INSERT INTO session(scope, id, title, created_at) SELECT scope, session, title, created_at FROM trash
WHERE key = ? AND title IS NOT NULL AND session IS NOT NULL ON CONFLICT DO NOTHING
"""


class TrashTable:
    """The deleted records of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, ids: Sequence[str], selection: Selection, now: int) -> int:
        """Move the selected ones of these records into the trash, at `now` (microseconds); return how many."""
        clause = compile_selection(selection)
        which = f"id IN (SELECT value FROM json_each(?)) AND {clause.sql}"
        return self._put(which, (json.dumps(ids), *clause.bindings), now)

    def put_session(self, scope: str, session: str, now: int) -> int:
        """Move a session into the trash: its records, and with them its title; return the number of records."""
        with self._database.write() as connection:
            moved = self._put("scope = ? AND session = ?", (scope, session), now)
            connection.execute("DELETE FROM session WHERE scope = ? AND id = ?", (scope, session))
        return moved

    def newest(self, ids: Sequence[str], selection: Selection) -> list[Trashed]:
        """Return the last selected entry of each of these ids, in their order; ids without one are passed over."""
        clause = compile_selection(selection)
        newest = NEWEST.format(which=f"id IN (SELECT value FROM json_each(?)) AND {clause.sql}")
        found = {entry.record.id: entry for entry in self._read(newest, (json.dumps(ids), *clause.bindings))}
        return [found[id] for id in dict.fromkeys(ids) if id in found]

    def page(self, selection: Selection, limit: int, after: str | None = None) -> list[Trashed]:
        """Return the last selected entry of each id, the last deleted one first, from behind that of the id `after`."""
        clause = compile_selection(selection)
        which, bindings = NEWEST.format(which=clause.sql), clause.bindings
        if after is not None:
            which += f" AND key < (SELECT max(key) FROM trash AS record WHERE id = ? AND {clause.sql})"
            bindings = (*bindings, after, *clause.bindings)
        return self._read(f"{which} ORDER BY key DESC LIMIT ?", (*bindings, limit))

    def count(self, selection: Selection) -> int:
        """Count the selected entries."""
        clause = compile_selection(selection)
        with self._database.read() as connection:
            sql = f"SELECT count(*) FROM trash AS record WHERE {clause.sql}"
            return int(select(connection, sql, clause.bindings)[0][0])

    def restore(self, entry: Trashed, chunks: Sequence[ChunkDraft]) -> Stored | None:
        """Make an entry a record again, with these chunks, its links and the vectors that callers brought for it.

        None if it is not in the trash any more. Raises RecordExistsError if its id is taken.
        """
        record = entry.record
        with self._database.write() as connection:
            row = select_one(connection, f"SELECT {RAW_COLUMNS} FROM trash WHERE key = ?", (entry.key,))
            if row is None:
                return None
            if select_one(connection, "SELECT 1 FROM record WHERE id = ?", (record.id,)):
                raise RecordExistsError(
                    f"{record.id!r} can't be restored: a record with that id is stored; delete that one first"
                )
            key = select_one(connection, FREE_KEY, (entry.key,))
            values = (key[0] if key else None, *clean_values(row), text_hash(record.text))
            ((record_key,),) = select(connection, INSERT_RECORD, values)
            keys = tuple(insert_chunk(connection, record_key, place, chunk) for place, chunk in enumerate(chunks))
            connection.execute(RESTORE_VECTORS, (record_key, entry.key))
            connection.execute(SETTLE, (record_key,))
            connection.execute(RESTORE_TITLE, (entry.key,))
            connection.execute("DELETE FROM trash WHERE key = ?", (entry.key,))
            return Stored(record, keys)

    def sessions(self, selection: Selection) -> list[SessionKey]:
        """Return the sessions that selected entries were messages of."""
        clause = compile_selection(selection)
        sql = f"SELECT DISTINCT scope, session FROM trash AS record WHERE session IS NOT NULL AND {clause.sql}"
        with self._database.read() as connection:
            return [SessionKey(*row) for row in select(connection, sql, clause.bindings)]

    def count_ids(self, ids: Sequence[str], selection: Selection) -> int:
        """Count those of these ids that a selected record or entry has."""
        clause = compile_selection(selection)
        which = f"id IN (SELECT value FROM json_each(?)) AND {clause.sql}"
        sql = f"SELECT id FROM record WHERE {which} UNION SELECT id FROM trash AS record WHERE {which}"
        with self._database.read() as connection:
            return int(
                select(connection, f"SELECT count(*) FROM ({sql})", 2 * (json.dumps(ids), *clause.bindings))[0][0]
            )

    def delete(self, selection: Selection, limit: int, ids: Sequence[str] | None = None) -> int:
        """Delete for good up to `limit` selected entries, or those of these ids; return how many."""
        clause = compile_selection(selection)
        which, bindings = clause.sql, clause.bindings
        if ids is not None:
            which, bindings = f"id IN (SELECT value FROM json_each(?)) AND {which}", (json.dumps(ids), *bindings)
        return self._delete(f"SELECT key FROM trash AS record WHERE {which} LIMIT ?", (*bindings, limit))

    def delete_session(self, scope: str, session: str) -> int:
        """Delete the entries of a session for good; return how many."""
        return self._delete("SELECT key FROM trash WHERE scope = ? AND session = ?", (scope, session))

    def purge(self, before: int, limit: int) -> int:
        """Delete for good up to `limit` entries that were deleted before a time (microseconds); return how many."""
        with self._database.read() as connection:  # most often there are none, and nothing is to be written
            if select_one(connection, "SELECT 1 FROM trash WHERE deleted_at < ?", (before,)) is None:
                return 0
        return self._delete("SELECT key FROM trash WHERE deleted_at < ? ORDER BY deleted_at LIMIT ?", (before, limit))

    def _delete(self, keys: str, bindings: Sequence[SQLValue]) -> int:
        with self._database.write() as connection:
            connection.execute(f"DELETE FROM trash WHERE key IN ({keys})", bindings)
            return connection.changes()

    def _put(self, which: str, bindings: Sequence[SQLValue], now: int) -> int:
        with self._database.write() as connection:
            ((last,),) = select(connection, "SELECT ifnull(max(key), 0) FROM trash")
            connection.execute(PUT.format(which=which), (now, *bindings))
            moved = connection.changes()
            connection.execute(PUT_VECTORS, (last,))
            connection.execute(TAKE_OUT, (last,))
        return moved

    def _read(self, which: str, bindings: Sequence[SQLValue]) -> list[Trashed]:
        sql = f"SELECT key, deleted_at, {RAW_COLUMNS} FROM trash WHERE {which}"
        with self._database.read() as connection:
            rows = select(connection, sql, bindings)
        return [Trashed(key, deleted_at, _read_record(values)) for key, deleted_at, *values in rows]


def _read_record(values: Sequence[object]) -> Record:
    return row_record(clean_values(values))
