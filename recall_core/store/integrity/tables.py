"""Rows that disagree with those of other tables: found by one statement each, and put right bit by bit by another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import apsw

from ...damage import MOST_NAMED, Damage, make_damage
from ..connection import select
from ..pending import LEASE, LONGEST_DELAY
from ..protocols import OLD_SPACE, OWN_SPACE
from .access import Access
from .objects import LAST_CHUNK
from .rows import BROKEN

BATCH = 512  # rows put right in one transaction
SHOWN = 20  # keys of rows of the truth that belong to no record

OWN_VECTOR = f"""
EXISTS (SELECT 1 FROM embedding WHERE chunk_key = chunk.key
  AND space_id = (SELECT id FROM space WHERE name = '{OWN_SPACE}'))
"""
# By the index alone, which does without reading the vectors.
WITHOUT_CHUNK = "SELECT key FROM embedding WHERE chunk_key NOT IN (SELECT key FROM chunk)"
WITHOUT_RECORD = """
SELECT key FROM embedding WHERE NOT EXISTS
  (SELECT 1 FROM chunk JOIN record ON record.key = record_key WHERE chunk.key = chunk_key)
"""
KNOWN_KEYS = "SELECT key FROM record UNION ALL SELECT record_key FROM trash"


class RowCheck(NamedTuple):
    """A kind of damage, the keys of the rows that have it, the record ids that the rows with some keys belong to, and
    how some of the rows are put right. ?1 is the time in microseconds.
    """

    kind: str
    tables: frozenset[str]
    keys: str
    records: str | None = None
    repair: str | None = None
    done: str = ""


def _needs(names: str) -> frozenset[str]:
    return frozenset(names.split())


_OF_CHUNKS = "SELECT DISTINCT record.id FROM chunk JOIN record ON record.key = record_key WHERE chunk.key IN ({keys})"
_OF_VECTORS = """
SELECT DISTINCT record.id FROM embedding JOIN chunk ON chunk.key = chunk_key JOIN record ON record.key = record_key
WHERE embedding.key IN ({keys})
"""
CHUNKLESS = RowCheck(
    "chunk-missing",
    _needs("record chunk"),
    "SELECT key FROM record WHERE indexed > 0 AND key NOT IN (SELECT record_key FROM chunk)",
    "SELECT id FROM record WHERE key IN ({keys})",
)
_RECORDLESS = RowCheck(
    "chunk-orphan",
    _needs("chunk record embedding"),
    "SELECT key FROM chunk WHERE record_key NOT IN (SELECT key FROM record) "
    "AND NOT EXISTS (SELECT 1 FROM embedding WHERE chunk_key = chunk.key AND given)",
    None,
    "DELETE FROM chunk WHERE key IN ({keys})",
    "deleted {count} chunks of records that are gone",
)

CHECKS: tuple[RowCheck, ...] = (
    _RECORDLESS,
    RowCheck(
        "vector-orphan",
        _needs("embedding chunk"),
        f"SELECT key FROM embedding WHERE key IN ({WITHOUT_CHUNK}) AND NOT given",
        None,
        "DELETE FROM embedding WHERE key IN ({keys})",
        "deleted {count} vectors of a model whose chunks are gone",
    ),
    RowCheck(
        "vector-stray",
        _needs("embedding chunk record"),
        f"SELECT key FROM embedding WHERE key IN ({WITHOUT_RECORD}) AND given",
    ),
    RowCheck(
        "vector-spaceless",
        _needs("embedding chunk space"),
        "SELECT key FROM embedding WHERE space_id NOT IN (SELECT id FROM space)",
        _OF_VECTORS,
    ),
    RowCheck(
        "pending-orphan",
        _needs("pending chunk"),
        "SELECT chunk_key FROM pending WHERE chunk_key NOT IN (SELECT key FROM chunk)",
        None,
        "DELETE FROM pending WHERE chunk_key IN ({keys})",
        "let {count} chunks that are gone wait no more",
    ),
    RowCheck(
        "pending-settled",
        _needs("pending chunk embedding space"),
        f"SELECT chunk_key FROM pending JOIN chunk ON chunk.key = chunk_key WHERE NOT embeds OR {OWN_VECTOR}",
        _OF_CHUNKS,
        "DELETE FROM pending WHERE chunk_key IN ({keys})",
        "let {count} chunks that need no vector wait no more",
    ),
    RowCheck(
        "pending-missing",
        _needs("pending chunk embedding space record"),
        f"SELECT key FROM chunk WHERE embeds AND key NOT IN (SELECT chunk_key FROM pending) AND NOT {OWN_VECTOR} "
        "AND record_key IN (SELECT key FROM record)",
        _OF_CHUNKS,
        "INSERT INTO pending(chunk_key) SELECT key FROM chunk WHERE key IN ({keys}) ON CONFLICT DO NOTHING",
        "let {count} chunks without a vector wait for one",
    ),
    RowCheck(
        "lease-stale",
        _needs("pending"),
        f"SELECT chunk_key FROM pending WHERE owner IS NOT NULL "
        f"AND NOT ifnull(leased_until BETWEEN ?1 - {LEASE} AND ?1 + {8 * LEASE}, 0)",
        None,
        "UPDATE pending SET owner = NULL, leased_until = 0 WHERE chunk_key IN ({keys})",
        "gave back {count} chunks that processes had claimed which are gone",
    ),
    RowCheck(
        "pending-late",
        _needs("pending"),
        f"SELECT chunk_key FROM pending WHERE next_at > ?1 + {2 * LONGEST_DELAY}",
        None,
        "UPDATE pending SET next_at = 0 WHERE chunk_key IN ({keys})",
        "let {count} chunks be tried at once that waited for a time far off",
    ),
    RowCheck(
        "codes-orphan",
        _needs("vector_change space"),
        "SELECT space_id FROM vector_change WHERE space_id NOT IN (SELECT id FROM space)",
        None,
        "DELETE FROM vector_change WHERE space_id IN ({keys})",
        "deleted the notes of spaces that are gone",
    ),
    RowCheck(
        "codes-orphan",
        _needs("code_index space code_page"),
        "SELECT space_id FROM code_index WHERE space_id NOT IN (SELECT id FROM space)",
        None,
        "DELETE FROM code_index WHERE space_id IN ({keys})",
        "deleted the codes of {count} spaces that are gone",
    ),
    RowCheck(
        "codes-orphan",
        _needs("code_page code_index vector_change"),
        "SELECT rowid FROM code_page WHERE space_id NOT IN (SELECT space_id FROM code_index)",
        None,
        "DELETE FROM code_page WHERE rowid IN ({keys})",
        "deleted {count} pages of codes that belong to no index",
    ),
    RowCheck(
        "vector-unnoted",
        _needs("embedding space code_index vector_change"),
        f"""
        SELECT key FROM embedding WHERE space_id IN (SELECT id FROM space WHERE name NOT GLOB '{OLD_SPACE}*')
        AND space_id NOT IN (SELECT space_id FROM code_index) AND NOT EXISTS (SELECT 1 FROM vector_change
          WHERE vector_change.space_id = embedding.space_id AND vector_change.chunk_key = embedding.chunk_key)
        """,
        None,
        "INSERT INTO vector_change(space_id, chunk_key) SELECT space_id, chunk_key FROM embedding "
        "WHERE key IN ({keys}) ON CONFLICT DO NOTHING",
        "noted {count} vectors for the codes",
    ),
    RowCheck(
        "link-stray",
        _needs("link record trash"),
        f"SELECT from_key FROM link WHERE from_key NOT IN ({KNOWN_KEYS}) OR to_key NOT IN ({KNOWN_KEYS})",
        "SELECT id FROM record WHERE key IN ({keys})",
    ),
    RowCheck(
        "trash-stray",
        _needs("trash trash_vector"),
        "SELECT trash_key FROM trash_vector WHERE trash_key NOT IN (SELECT key FROM trash)",
    ),
    RowCheck(
        "trash-broken",
        _needs("trash"),
        f"SELECT key FROM trash WHERE {BROKEN} <> ''",
        "SELECT id FROM trash WHERE key IN ({keys})",
    ),
    RowCheck(
        "trash-broken",
        _needs("trash trash_vector space"),
        "SELECT trash_key FROM trash_vector JOIN space ON space.id = space_id "
        "WHERE typeof(vector) <> 'blob' OR length(vector) <> 4 * dimensions",
        "SELECT id FROM trash WHERE key IN ({keys})",
    ),
    RowCheck(
        "dictionary-broken",
        _needs("dictionary"),
        "SELECT word FROM dictionary WHERE typeof(word) <> 'text' OR trim(word) = ''",
    ),
)

COUNTED_ON = "SELECT ifnull((SELECT max(seq) FROM sqlite_sequence WHERE name = ?), 0)"


def find_row_damage(access: Access, check: RowCheck, now: int) -> Iterator[Damage]:
    """Run one of CHECKS."""
    with access.read() as connection:
        ((count,),) = select(connection, f"SELECT count(*) FROM ({check.keys})", _bound(check.keys, now))
        if not count:
            return
        names: list[str] = []
        if check.records is not None:
            sql = f"{check.records.format(keys=check.keys)} LIMIT {MOST_NAMED}"
            names = [str(name) for (name,) in select(connection, sql, _bound(sql, now))]
        detail = ""
        if check.repair is None:
            keys = select(connection, f"{check.keys} LIMIT {SHOWN}", _bound(check.keys, now))
            detail = ", ".join(str(key) for (key,) in keys)
    yield make_damage(check.kind, count, detail=detail, records=names)


def repair_rows(access: Access, check: RowCheck, now: int) -> list[str]:
    """Put right what one of CHECKS finds, so many rows in a transaction."""
    if check.repair is None:
        return []
    sql = check.repair.format(keys=f"SELECT * FROM ({check.keys} LIMIT {BATCH})")
    total = 0
    while True:
        with access.write() as connection:
            connection.execute(sql, _bound(sql, now))
            changed = connection.changes()
        total += changed
        if not changed:
            return [check.done.format(count=total)] if total else []


def find_key_damage(access: Access) -> Iterator[Damage]:
    """Say whether keys of chunks that are gone would be used again."""
    with access.read() as connection:
        if _unsafe_keys(connection):
            yield make_damage("chunk-keys")


def repair_keys(access: Access) -> list[str]:
    """Count on behind the keys that were in use."""
    with access.write() as connection:
        last = _unsafe_keys(connection)
        if last:
            connection.execute("DELETE FROM sqlite_sequence WHERE name = 'chunk'")
            connection.execute("INSERT INTO sqlite_sequence(name, seq) VALUES ('chunk', ?)", (last,))
    return ["let the keys of chunks count on behind those that were in use"] if last else []


def _unsafe_keys(connection: apsw.Connection) -> int:
    """Return the highest key of a chunk that was in use, 0 if the file counts on behind it: a new chunk that got such a
    key would get the vector of the old one.
    """
    ((used,),) = select(connection, LAST_CHUNK)
    ((counted,),) = select(connection, COUNTED_ON, ("chunk",))
    ((present,),) = select(connection, "SELECT ifnull(max(key), 0) FROM chunk")
    return int(used) if used is not None and used > max(counted, present) else 0


def _bound(sql: str, now: int) -> tuple[int, ...]:
    return (now,) if "?1" in sql else ()
