"""The objects of a file's schema, compared with those that the migrations make."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from ...damage import Damage, make_damage
from ..connection import select
from ..migrations import MIGRATIONS, SCHEMA_VERSION
from ..schema import APPLICATION_ID
from .access import Access

DERIVED = frozenset({"chunk", "pending", "vector_change", "change", "code_index", "code_page", "replaced"})
KEYWORD_INDEX = "chunk_fts"
SHADOWS = tuple(f"{KEYWORD_INDEX}_{part}" for part in ("data", "idx", "docsize", "config"))
# The highest key of a chunk that is, or was, in use.
LAST_CHUNK = """
SELECT max(chunk_key) FROM (SELECT chunk_key FROM embedding UNION ALL SELECT chunk_key FROM vector_change)
WHERE typeof(chunk_key) = 'integer'
"""
# What the indexes of the chunks hold, without a look at the chunks.
SALVAGE = """
SELECT one.key, one.record_key, one.place, other.hash FROM
  (SELECT key, record_key, place FROM chunk INDEXED BY chunk_record WHERE record_key IS NOT NULL) AS one
  JOIN (SELECT key, hash FROM chunk INDEXED BY chunk_hash WHERE hash IS NOT NULL) AS other ON other.key = one.key
"""
INSERT_SALVAGED = """
INSERT INTO chunk(key, record_key, place, hash, start, stop, tokens, latin, grams, words, labels, embeds)
VALUES (?, ?, ?, ?, 0, 0, 0, '', '', '', '', 0)
"""
# Where a table that counts its keys on is made again, it goes on behind what others may still hold.
SEQUENCES = {
    "chunk": LAST_CHUNK,
    "change": "SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
}


@dataclass(frozen=True, slots=True)
class Schema:
    """What a file's schema holds: the columns of each table, and the SQL of each index and trigger."""

    columns: dict[str, frozenset[str]]
    indexes: dict[str, str]
    triggers: dict[str, str]
    tables: dict[str, str]

    def lacks(self, wanted: Schema) -> list[str]:
        """Return the tables of `wanted` that are missing here or lack columns, but for the keyword index."""
        plain = [name for name in wanted.columns if not name.startswith(KEYWORD_INDEX)]
        return [name for name in plain if not wanted.columns[name] <= self.columns.get(name, frozenset())]


def read_schema(connection: apsw.Connection) -> Schema:
    """Return the schema of a file."""
    rows = select(connection, "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    tables = {name: sql for kind, name, sql in rows if kind == "table" and not name.startswith("sqlite_")}
    columns = {}
    for name in [name for name, sql in tables.items() if not sql.startswith("CREATE VIRTUAL")]:  # they may be broken
        found = select(connection, "SELECT name FROM pragma_table_xinfo(?)", (name,))
        columns[name] = frozenset(column for (column,) in found)
    return Schema(
        columns,
        {name: sql for kind, name, sql in rows if kind == "index"},
        {name: sql for kind, name, sql in rows if kind == "trigger"},
        tables,
    )


@functools.cache
def wanted_schema(version: int) -> Schema:
    """Return the schema that a file of this version has."""
    connection = apsw.Connection(":memory:")
    try:
        for migration in MIGRATIONS[:version]:
            migration.apply(connection)
        return read_schema(connection)
    finally:
        connection.close()


def find_version(schema: Schema) -> int:
    """Return the highest version all of whose tables are there, 0 if there is none."""
    return next((version for version in range(SCHEMA_VERSION, 0, -1) if not schema.lacks(wanted_schema(version))), 0)


def guess_version(schema: Schema) -> int:
    """Return the highest version that a file may have had from which derived tables were taken away, 0 for none: all
    others are there, those that are there have its columns, and there is one of those that came with it, if any did.
    """
    for version in range(SCHEMA_VERSION, 0, -1):
        wanted, older = wanted_schema(version), wanted_schema(version - 1)
        missing = [name for name in schema.lacks(wanted) if name not in DERIVED or name in schema.columns]
        new = wanted.columns.keys() - older.columns.keys()
        if not missing and (not new or new & schema.columns.keys()):
            return version
    return 0


def known_version(connection: apsw.Connection) -> int:
    """Return the version of a file: that which it says it has, unless its tables are those of a higher one, or we know
    none such.
    """
    version, schema = int(connection.pragma("user_version")), read_schema(connection)
    if 0 < version <= SCHEMA_VERSION:
        return max(version, find_version(schema))
    return guess_version(schema)


def find_header_damage(access: Access) -> Iterator[Damage]:
    """Say what is wrong with the numbers by which a file is known."""
    with access.read() as connection:
        application_id = connection.pragma("application_id")
        version = int(connection.pragma("user_version"))
        tables = known_version(connection)
    if application_id != APPLICATION_ID:
        yield make_damage("application-id", detail=f"{application_id:#x}")
    if version > SCHEMA_VERSION:
        yield make_damage("schema-newer", detail=f"{version}, this recall_core knows up to {SCHEMA_VERSION}")
    elif version < tables:
        yield make_damage("schema-version", detail=f"{version}, but its tables are those of version {tables}")


def repair_header(access: Access) -> str:
    """Set the numbers by which a file is known."""
    with access.write() as connection:
        version = known_version(connection)
        connection.execute(f"PRAGMA user_version = {version}; PRAGMA application_id = {APPLICATION_ID}")
    return f"noted in the file that it is a memory of schema version {version}"


def find_schema_damage(access: Access) -> Iterator[Damage]:
    """Say which tables, indexes and triggers are missing or others than they have to be."""
    with access.read() as connection:
        schema, wanted = read_schema(connection), wanted_schema(known_version(connection))
    lacking = schema.lacks(wanted)
    if truth := [_describe(name, schema, wanted) for name in lacking if name not in DERIVED]:
        yield make_damage("truth-missing", len(truth), detail=", ".join(truth))
    if derived := [_describe(name, schema, wanted) for name in lacking if name in DERIVED]:
        yield make_damage("table-missing", len(derived), detail=", ".join(derived))
    if missing := [name for name in (KEYWORD_INDEX, *SHADOWS) if name not in schema.tables]:
        yield make_damage("keyword-missing", len(missing), detail=", ".join(missing))
    if indexes := _differing(schema.indexes, wanted.indexes):
        yield make_damage("index-missing", len(indexes), detail=", ".join(indexes))
    if triggers := _differing(schema.triggers, wanted.triggers):
        yield make_damage("trigger-missing", len(triggers), detail=", ".join(triggers))


def repair_schema(access: Access) -> list[str]:
    """Make what is derived and missing in the schema, and return what was made."""
    with access.write() as connection:
        wanted = wanted_schema(known_version(connection))
        return _complete(
            connection, wanted, [name for name in read_schema(connection).lacks(wanted) if name in DERIVED]
        )


def renew_tables(access: Access, names: Sequence[str]) -> list[str]:
    """Make derived tables anew, and with them their indexes and triggers.

    Chunks keep their keys and hashes, which two indexes know as well, so that their vectors stay with them.
    """
    done = []
    for name in names:
        try:
            done += _renew(access, name, forced=False)
        except (apsw.SQLError, apsw.CorruptError):
            done += _renew(access, name, forced=True)
    return done


def _renew(access: Access, name: str, *, forced: bool) -> list[str]:
    with access.write() as connection:
        kept = _salvage_chunks(connection) if name == "chunk" else []
        done = _complete(connection, wanted_schema(known_version(connection)), [name], forced=forced)
        if kept:  # no text is embedded by what is left of a chunk: the records are indexed anew before
            connection.executemany(INSERT_SALVAGED, kept)
            connection.execute("UPDATE record SET indexed = 0 WHERE key IN (SELECT record_key FROM chunk)")
    return done


def _complete(
    connection: apsw.Connection, wanted: Schema, renewed: Sequence[str], *, forced: bool = False
) -> list[str]:
    """Make some tables anew, and all indexes and triggers that are missing."""
    for name in renewed:
        drop_table(connection, name, forced=forced)
        connection.execute(wanted.tables[name])
        _count_on(connection, name)
    done = [f"made the table {name}" for name in renewed]
    schema = read_schema(connection)  # with a table went its indexes and triggers
    for kind, found, all_wanted in (
        ("index", schema.indexes, wanted.indexes),
        ("trigger", schema.triggers, wanted.triggers),
    ):
        for name in _differing(found, all_wanted):
            connection.execute(f'DROP {kind} IF EXISTS "{name}"')
            connection.execute(all_wanted[name])
            done.append(f"made the {kind} {name}")
    return done


def drop_table(connection: apsw.Connection, name: str, *, forced: bool) -> None:
    """Drop a table; `forced` drops one so damaged that SQLite can't: its pages are lost then until the next VACUUM."""
    if not forced:
        connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        return
    connection.pragma("writable_schema", True)
    connection.execute("DELETE FROM sqlite_schema WHERE tbl_name = ?", (name,))
    connection.pragma("writable_schema", "RESET")


def _salvage_chunks(connection: apsw.Connection) -> list[tuple[Any, ...]]:
    """Return what indexes know of the chunks of a table that can't be read, nothing if they can't be read either."""
    with contextlib.suppress(apsw.SQLError, apsw.CorruptError):
        return select(connection, SALVAGE)
    return []


def _count_on(connection: apsw.Connection, table: str) -> None:
    if table in SEQUENCES:
        connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        connection.execute(
            f"INSERT INTO sqlite_sequence(name, seq) VALUES (?, ifnull(({SEQUENCES[table]}), 0))", (table,)
        )


def _differing(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    return [name for name, sql in wanted.items() if _words(found.get(name, "")) != _words(sql)]


def _words(sql: str) -> list[str]:
    return sql.split()


def _describe(name: str, schema: Schema, wanted: Schema) -> str:
    if name not in schema.columns:
        return name
    return f"{name} ({', '.join(sorted(wanted.columns[name] - schema.columns[name]))})"
