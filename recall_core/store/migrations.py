"""The steps from an empty file to the current schema: named, append-only, each in one transaction with its record."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import apsw

from ..errors import NotADatabaseError, SchemaTooNewError
from .schema import APPLICATION_ID, FIRST_SCHEMA, FIRST_TRIGGERS
from .upgrades import FOURTH_SCHEMA, SECOND_SCHEMA, THIRD_SCHEMA

VEC0_TABLES = "FROM sqlite_schema WHERE name GLOB 'vector_[0-9]*' AND sql LIKE 'CREATE VIRTUAL TABLE%USING vec0(%'"


class Migration(NamedTuple):
    """One step: what it does, in a word or two, and how. Never edited once released."""

    name: str
    apply: Callable[[apsw.Connection], object]


def upgrade_to_second(connection: apsw.Connection) -> None:
    """Add the change log and the codes, and drop the vec0 tables, which took an extension to read and as much room as
    the vectors. SQLite can't drop a virtual table without its module, so its line in the schema is deleted.
    """
    connection.execute(SECOND_SCHEMA)
    tables = [
        str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    ]
    indexes = [name for (name,) in connection.execute(f"SELECT name {VEC0_TABLES}").fetchall()]
    connection.pragma("writable_schema", True)
    connection.execute(f"DELETE {VEC0_TABLES}")
    connection.pragma("writable_schema", "RESET")
    for table in tables:
        if any(table.startswith(f"{index}_") for index in indexes):
            connection.execute(f'DROP TABLE "{table}"')
    connection.execute(
        "DELETE FROM vector_change; INSERT INTO vector_change(space_id, chunk_key) "
        "SELECT space_id, chunk_key FROM embedding WHERE space_id IN (SELECT id FROM space)"
    )


MIGRATIONS: tuple[Migration, ...] = (
    Migration("first schema", lambda connection: connection.execute(FIRST_SCHEMA + FIRST_TRIGGERS)),
    Migration("change log and codes", upgrade_to_second),
    Migration("leases", lambda connection: connection.execute(THIRD_SCHEMA)),
    Migration("trash and links", lambda connection: connection.execute(FOURTH_SCHEMA)),
)
SCHEMA_VERSION = len(MIGRATIONS)


def check_file(connection: apsw.Connection, path: str) -> int:
    """Return the file's schema version, 0 if it is empty. Writes nothing.

    Raises NotADatabaseError for another program's database and SchemaTooNewError for one from a newer version.
    """
    with connection:  # one snapshot: another process may be creating the file
        application_id = connection.pragma("application_id")
        version = connection.pragma("user_version")
        holds_tables = bool(connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall())
    if application_id != APPLICATION_ID:
        if application_id or version or holds_tables:
            raise NotADatabaseError(
                f"{path} is a SQLite database of another program; give a path of its own to the memory"
            )
        return 0
    if not isinstance(version, int) or not 0 < version <= SCHEMA_VERSION:
        raise SchemaTooNewError(
            f"{path} has schema version {version}, this recall_core knows up to {SCHEMA_VERSION}; "
            "upgrade it: pip install --upgrade dualrecall"
        )
    return version


def migrate(connection: apsw.Connection, path: str) -> None:
    """Bring the file to the current schema; does nothing, and writes nothing, if it is there already."""
    while (version := check_file(connection, path)) < SCHEMA_VERSION:
        try:
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have been faster while this one waited for the lock.
            if check_file(connection, path) == version:
                MIGRATIONS[version].apply(connection)
                connection.execute(f"PRAGMA user_version = {version + 1}; PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk may have rolled it back already
                connection.execute("ROLLBACK")
            raise
