"""The keyword index, compared with the chunks that it was made from."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import apsw

from ...damage import Damage, make_damage
from ..connection import select
from ..migrations import SCHEMA_VERSION
from ..schema import NEW_INDEX
from .access import Access
from .objects import KEYWORD_INDEX, SHADOWS, drop_table, wanted_schema

MISSING = "SELECT key FROM chunk WHERE key NOT IN (SELECT id FROM chunk_fts_docsize)"
ORPHANS = "SELECT id FROM chunk_fts_docsize WHERE id NOT IN (SELECT key FROM chunk)"
NAMES = f"""
SELECT DISTINCT record.id FROM record JOIN chunk ON record.key = record_key WHERE chunk.key IN ({MISSING}) LIMIT 1000
"""
COMPARE = "INSERT INTO chunk_fts(chunk_fts, rank) VALUES ('integrity-check', 1)"

MARK = "keyword_index"  # in meta: up to which key the new index is done
COLUMNS = "key, latin, grams, words, labels"
DONE = f"(SELECT CAST(value AS INTEGER) FROM meta WHERE key = '{MARK}')"
NOTE = f"INSERT INTO meta(key, value) VALUES ('{MARK}', ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value"
ADD = f"INSERT INTO {NEW_INDEX}(rowid, latin, grams, words, labels)"
ADD_NEW = f"{ADD} SELECT new.key, new.latin, new.grams, new.words, new.labels WHERE new.key <= {DONE};"
TAKE_OLD = f"""
INSERT INTO {NEW_INDEX}({NEW_INDEX}, rowid, latin, grams, words, labels)
  SELECT 'delete', old.key, old.latin, old.grams, old.words, old.labels WHERE old.key <= {DONE};
"""
TRIGGERS = f"""
CREATE TRIGGER {NEW_INDEX}_inserted AFTER INSERT ON chunk BEGIN {ADD_NEW} END;
CREATE TRIGGER {NEW_INDEX}_deleted AFTER DELETE ON chunk BEGIN {TAKE_OLD} END;
CREATE TRIGGER {NEW_INDEX}_changed AFTER UPDATE OF latin, grams, words, labels ON chunk BEGIN {TAKE_OLD} {ADD_NEW} END;
"""
EVENTS = ("inserted", "deleted", "changed")
UNFINISHED = f"""
SELECT ifnull(sum(name = '{NEW_INDEX}'), 0), ifnull(sum(type = 'trigger'), 0) FROM sqlite_schema
WHERE name = '{NEW_INDEX}' OR name IN ('{NEW_INDEX}_inserted', '{NEW_INDEX}_deleted', '{NEW_INDEX}_changed')
"""
BATCH = 4_096  # chunks added in one transaction
# From the gentle to the rough: which of the old index and its tables are dropped by force.
FORCED: tuple[tuple[str, ...], ...] = ((), (KEYWORD_INDEX,), (KEYWORD_INDEX, *SHADOWS))


def find_row_damage(access: Access) -> Iterator[Damage]:
    """Compare which chunks the index holds with which there are."""
    with access.read() as connection:
        ((missing,),) = select(connection, f"SELECT count(*) FROM ({MISSING})")
        ((orphans,),) = select(connection, f"SELECT count(*) FROM ({ORPHANS})")
        names = [name for (name,) in select(connection, NAMES)] if missing else []
    if missing:
        yield make_damage("keyword-rows", missing, records=names)
    if orphans:
        yield make_damage("keyword-orphan", orphans)


def find_term_damage(access: Access) -> Iterator[Damage]:
    """Compare the terms of the index with those of the chunks. Other writers wait meanwhile; nothing is written."""
    try:
        with access.trial() as connection:
            connection.execute(COMPARE)
    except apsw.CorruptError as error:
        yield make_damage("keyword-wrong", detail=str(error))
    except apsw.ReadOnlyError:  # what may not be written can't be asked; SQLite's own check has looked at the rest
        return


def find_unfinished(access: Access) -> Iterator[Damage]:
    """Say whether the index was to be made anew, and that was not finished."""
    with access.read() as connection:
        ((begun, triggers),) = select(connection, UNFINISHED)
    if begun or triggers:
        yield make_damage("keyword-unfinished")


def rebuild(access: Access) -> str:
    """Make the index anew from the chunks, beside the old one and batch by batch, and put it in its place.

    Triggers keep what is done already in step with what others write meanwhile. Killed, it goes on where it ended.
    """
    with access.write() as connection:
        _begin(connection)
    while _add_batch(access):
        pass
    for forced in FORCED:
        try:
            with access.write() as connection:
                _add_rows(connection, -1)
                _take_place(connection, forced)
            break
        except (apsw.SQLError, apsw.CorruptError):
            if forced == FORCED[-1]:
                raise
    return "made the keyword index anew from the chunks"


def _begin(connection: apsw.Connection) -> None:
    ((begun, kept),) = select(connection, UNFINISHED)
    if begun and kept == len(EVENTS):
        return
    for event in EVENTS:  # with the table of chunks went the triggers
        connection.execute(f"DROP TRIGGER IF EXISTS {NEW_INDEX}_{event}")
    connection.execute(f"DROP TABLE IF EXISTS {NEW_INDEX}")
    sql = wanted_schema(SCHEMA_VERSION).tables[KEYWORD_INDEX]
    connection.execute(sql.replace(KEYWORD_INDEX, NEW_INDEX, 1))
    connection.execute(TRIGGERS)
    connection.execute(NOTE, (str(-(1 << 63)),))


def _add_batch(access: Access) -> bool:
    """Add some chunks to the new index, and tell whether there may be more."""
    with access.write() as connection:
        return _add_rows(connection, BATCH) == BATCH


def _add_rows(connection: apsw.Connection, limit: int) -> int:
    found = select(connection, f"SELECT key FROM chunk WHERE key > {DONE} ORDER BY key LIMIT ?", (limit,))
    if found:
        last = found[-1][0]
        connection.execute(f"{ADD} SELECT {COLUMNS} FROM chunk WHERE key > {DONE} AND key <= ?", (last,))
        connection.execute(NOTE, (str(last),))
    return len(found)


def _take_place(connection: apsw.Connection, forced: Collection[str]) -> None:
    """Drop the old index, and name the new one as it."""
    for name in (KEYWORD_INDEX, *SHADOWS):
        drop_table(connection, name, forced=name in forced)
    for event in EVENTS:
        connection.execute(f"DROP TRIGGER {NEW_INDEX}_{event}")
    connection.pragma("legacy_alter_table", True)  # the triggers of chunks name a table that is not there just now
    connection.execute(f"ALTER TABLE {NEW_INDEX} RENAME TO {KEYWORD_INDEX}")
    connection.pragma("legacy_alter_table", False)
    connection.execute("DELETE FROM meta WHERE key = ?", (MARK,))
