"""What SQLite itself finds: damaged pages, indexes that don't agree with their tables, rows that refer to nothing."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from ...damage import Damage, make_damage
from ...patterns import compile_late
from ..connection import select
from .access import Access
from .objects import DERIVED, KEYWORD_INDEX, renew_tables

MESSAGES = 1_000  # that SQLite is asked for at most
SHOWN = 3
OWN_CHECKS = DERIVED | {"embedding", "trash_vector"}  # whose references have checks of their own

_OF_INDEX = compile_late(r"(?:missing from|entries in|entry in|values? out of order in) index (\S+)")
_OF_TREE = compile_late(r"Tree (\d+)")
_OF_TABLE = compile_late(r"table (\S+) can't be read")
_LOST = compile_late(r"Page \d+(?: is)?:? never used|Freelist:|free-page count")


def find_page_damage(access: Access) -> Iterator[Damage]:
    """Run SQLite's integrity check, and sort what it says by what can be made again."""
    names: dict[str, set[str]] = {"index-wrong": set(), "table-damaged": set()}
    others: dict[str, list[str]] = {}
    for kind, name, message in _ask(access):
        if kind in names:
            names[kind].add(name)
        else:
            others.setdefault(kind, []).append(message)
    for kind, found in names.items():
        if found:
            yield make_damage(kind, len(found), detail=", ".join(sorted(found)))
    for kind, lines in others.items():
        more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        yield make_damage(kind, len(lines), detail="; ".join(lines[:SHOWN]) + more)


def find_reference_damage(access: Access) -> Iterator[Damage]:
    """Name rows that refer to rows that are gone, in tables that no other check looks at."""
    with access.read() as connection:
        rows = select(connection, 'SELECT "table", count(*) FROM pragma_foreign_key_check GROUP BY 1')
    for table, count in rows:
        if table not in OWN_CHECKS:
            yield make_damage("foreign-key", count, detail=f"in {table}")


def repair_indexes(access: Access) -> list[str]:
    """Make the indexes anew that don't agree with their tables, each in a transaction of its own."""
    done = []
    for name in sorted({name for kind, name, _ in _ask(access) if kind == "index-wrong"}):
        with access.write() as connection:
            connection.execute(f'REINDEX "{name}"')
        done.append(f"made the index {name} anew")
    return done


def repair_damaged_tables(access: Access) -> list[str]:
    """Make the derived tables anew that can't be read to the end."""
    names = sorted({name for kind, name, _ in _ask(access) if kind == "table-damaged"})
    return renew_tables(access, names)


def _ask(access: Access) -> list[tuple[str, str, str]]:
    """Return what SQLite's check says: the kind of damage, the table or index that it is in, and the message."""
    with access.read() as connection:
        try:
            said = _check(connection, str(MESSAGES))
        except (apsw.SQLError, apsw.CorruptError):  # it ends at the first table that it can't get into
            rows = select(connection, "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")
            said = [line for (name,) in rows for line in _check_table(connection, name)]
        owners = _owners(connection) if said else {}
    return [(*_classify(line, owners), line) for line in dict.fromkeys(said)]


def _check(connection: apsw.Connection, argument: str) -> list[str]:
    said = [str(line) for (line,) in select(connection, f"PRAGMA integrity_check({argument})")]
    return [line for text in said for line in text.splitlines() if line != "ok" and not line.startswith("***")]


def _check_table(connection: apsw.Connection, name: str) -> list[str]:
    try:
        return _check(connection, f"'{name}'")
    except (apsw.CorruptError, apsw.IOError) as error:
        return [f"table {name} can't be read: {error}"]


def _owners(connection: apsw.Connection) -> dict[int, tuple[str, str]]:
    """Return the type and name of what each root page belongs to."""
    rows = select(connection, "SELECT rootpage, type, name FROM sqlite_schema WHERE rootpage > 0")
    return {root: (kind, name) for root, kind, name in rows}


def _classify(message: str, owners: dict[int, tuple[str, str]]) -> tuple[str, str]:
    """Return the kind of damage that a message tells of, and the table or index that it is in."""
    if found := _OF_INDEX.search(message):
        return "index-wrong", found[1]
    kind, name = "", ""
    if (found := _OF_TREE.search(message)) and int(found[1]) in owners:
        kind, name = owners[int(found[1])]
    elif found := _OF_TABLE.match(message):
        kind, name = "table", found[1]
    if kind == "index":
        return "index-wrong", name
    if name in DERIVED:
        return "table-damaged", name
    if KEYWORD_INDEX in message or name.startswith(KEYWORD_INDEX):
        return "keyword-wrong", ""
    return ("page-lost", "") if _LOST.search(message) else ("page", "")
