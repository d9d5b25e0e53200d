"""All checks of a file, in the order in which they build on each other; one that fails keeps none from being run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import apsw

from ...damage import Damage, make_damage
from ...errors import NotADatabaseError
from ..connection import select
from ..migrations import SCHEMA_VERSION
from ..schema import APPLICATION_ID
from . import codes, keyword_index, objects, pages, rows, tables
from .access import Access

# The file can't be reached, which says nothing about what is in it.
UNREACHED = (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError)
# Words that came or went, while not all records are indexed by that yet.
CHANGED_WORDS = """
SELECT one.value FROM meta, json_each(CASE WHEN json_valid(meta.value) THEN meta.value ELSE '{}' END, '$.words') AS one
WHERE meta.key = 'changed_words' AND one.type = 'text'
"""


class TermsBasis(NamedTuple):
    """The segmenter that indexed a file, None if that is not known, the words of its dictionary, and those by which
    older records are not indexed yet.
    """

    segmenter: str | None
    words: frozenset[str]
    changed: frozenset[str]


class _Check(NamedTuple):
    """What is examined, by which name, which tables that takes, and whether it is quick even in a large file."""

    name: str
    find: Callable[[Access], Iterator[Damage]]
    tables: frozenset[str] = frozenset()
    quick: bool = True


_KEYWORD = frozenset({objects.KEYWORD_INDEX, *objects.SHADOWS, "chunk"})
_CODES = frozenset({"code_index", "code_page", "space", "embedding", "vector_change"})
FILE_CHECKS = (
    _Check("the file's header", objects.find_header_damage),
    _Check("the schema", objects.find_schema_damage),
    _Check("the file's pages", pages.find_page_damage, quick=False),
    _Check("references between tables", pages.find_reference_damage, quick=False),
)
TABLE_CHECKS = (
    _Check("the making of the keyword index", keyword_index.find_unfinished, frozenset({"chunk"})),
    _Check("the rows of the keyword index", keyword_index.find_row_damage, _KEYWORD | {"record"}),
    _Check("the terms of the keyword index", keyword_index.find_term_damage, _KEYWORD, quick=False),
    _Check("the keys of chunks", tables.find_key_damage, frozenset({"chunk", "embedding", "vector_change"})),
    _Check("the codes", codes.find_centre_damage, _CODES),
    _Check("the pages of codes", codes.find_code_damage, _CODES, quick=False),
    _Check("the vectors", rows.find_vector_damage, frozenset({"embedding", "space", "chunk", "record"}), quick=False),
)


def find_damage(access: Access, clock: Callable[[], int], *, quick: bool = False) -> Iterator[Damage]:
    """Examine a file and everything in it but what its chunks say. `clock` gives microseconds; nothing is written.

    Of a file with an older schema only the file itself is examined. Raises NotADatabaseError for another program's.
    """
    if not _is_memory(access):
        raise NotADatabaseError("this is a SQLite database of another program, or one that holds nothing")
    for check in FILE_CHECKS:
        if not quick or check.quick:
            yield from _attempt(check, access)
    present = present_tables(access)
    if not is_current(access):
        return
    row_checks = [
        _Check(f"rows of {' and '.join(sorted(one.tables))}", _bind(one, clock), one.tables) for one in tables.CHECKS
    ]
    for check in (*TABLE_CHECKS, *row_checks):
        if check.tables <= present and (not quick or check.quick):
            yield from _attempt(check, access)


def find_chunkless(access: Access, clock: Callable[[], int]) -> Iterator[Damage]:
    """Name the records that have no chunk at all."""
    if tables.CHUNKLESS.tables <= present_tables(access):
        yield from tables.find_row_damage(access, tables.CHUNKLESS, clock())


def present_tables(access: Access) -> frozenset[str]:
    """Return the names of the file's tables, none if that can't be told."""
    try:
        with access.read() as connection:
            return frozenset(objects.read_schema(connection).tables)
    except apsw.Error:
        return frozenset()


def is_current(access: Access) -> bool:
    """Tell whether a file has, or seems to have, the schema of this version."""
    try:
        with access.read() as connection:
            return objects.known_version(connection) == SCHEMA_VERSION
    except apsw.Error:
        return False


def read_terms_basis(access: Access) -> TermsBasis:
    """Return what decides the terms of a file's chunks, as far as it can be read."""
    try:
        with access.read() as connection:
            segmenter = select(connection, "SELECT value FROM meta WHERE key = 'segmenter'")
            words = select(connection, "SELECT word FROM dictionary WHERE typeof(word) = 'text'")
            changed = select(connection, CHANGED_WORDS)
    except apsw.Error:
        return TermsBasis(None, frozenset(), frozenset())
    return TermsBasis(
        segmenter[0][0] if segmenter else None,
        frozenset(word for (word,) in words),
        frozenset(word for (word,) in changed),
    )


def _is_memory(access: Access) -> bool:
    """Tell whether a file is, or was, a memory; one that can't be read may be."""
    try:
        with access.read() as connection:
            return connection.pragma("application_id") == APPLICATION_ID or objects.known_version(connection) > 0
    except (apsw.NotADBError, *UNREACHED):
        raise
    except apsw.Error:
        return True


def _bind(check: tables.RowCheck, clock: Callable[[], int]) -> Callable[[Access], Iterator[Damage]]:
    return lambda access: tables.find_row_damage(access, check, clock())


def _attempt(check: _Check, access: Access) -> Iterator[Damage]:
    try:
        yield from check.find(access)
    except (apsw.BusyError, *UNREACHED):
        raise
    except (apsw.Error, UnicodeDecodeError) as error:
        yield make_damage("unexamined", detail=f"{check.name} could not be examined: {error}")
