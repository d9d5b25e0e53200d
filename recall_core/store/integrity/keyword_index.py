"""The keyword index, compared with the chunks that it was made from."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import apsw

from ...damage import Damage, make_damage
from ..connection import select
from ..migrations import SCHEMA_VERSION
from .access import Access
from .objects import KEYWORD_INDEX, SHADOWS, drop_table, wanted_schema

MISSING = "SELECT key FROM chunk WHERE key NOT IN (SELECT id FROM chunk_fts_docsize)"
ORPHANS = "SELECT id FROM chunk_fts_docsize WHERE id NOT IN (SELECT key FROM chunk)"
NAMES = f"""
SELECT DISTINCT record.id FROM record JOIN chunk ON record.key = record_key WHERE chunk.key IN ({MISSING}) LIMIT 1000
"""
COMPARE = "INSERT INTO chunk_fts(chunk_fts, rank) VALUES ('integrity-check', 1)"


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


# From the gentle to the rough: which of the index and its tables are dropped by force; None: nothing is dropped.
WAYS = (None, (), (KEYWORD_INDEX,), (KEYWORD_INDEX, *SHADOWS))


def rebuild(access: Access) -> str:
    """Make the index anew from the chunks, in one transaction."""
    for forced in WAYS:
        try:
            _rebuild(access, forced)
            break
        except (apsw.SQLError, apsw.CorruptError):
            if forced == WAYS[-1]:
                raise
    return "made the keyword index anew from the chunks"


def _rebuild(access: Access, forced: Collection[str] | None) -> None:
    """Fill the index anew; unless `forced` is None, make its tables anew before."""
    with access.write() as connection:
        if forced is not None:
            for name in (KEYWORD_INDEX, *SHADOWS):
                drop_table(connection, name, forced=name in forced)
            connection.execute(wanted_schema(SCHEMA_VERSION).tables[KEYWORD_INDEX])
        connection.execute("INSERT INTO chunk_fts(chunk_fts) VALUES ('rebuild')")
        connection.execute(COMPARE)
