"""The codes of vectors, compared with the vectors that they were made from, page by page."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from ...damage import Damage, make_damage
from ..code_pages import create_pages, read_centre, read_version, rebuild_page, take_up_changes, verify_page
from ..connection import select
from ..protocols import OLD_SPACE, Space
from ..vectors import SPACE_COLUMNS
from .access import Access

SHOWN = 20
TAKEN_UP = 4_096  # vectors in one transaction

# Shifted, for -1 / 1024 is 0.
NUMBERS = """
SELECT number FROM code_page WHERE space_id = ?1 AND typeof(number) = 'integer'
UNION SELECT DISTINCT chunk_key >> 10 FROM embedding WHERE space_id = ?1 AND typeof(chunk_key) = 'integer'
ORDER BY 1
"""
VERSIONS = """
SELECT number FROM code_page WHERE space_id = ?1 AND typeof(number) = 'integer'
AND NOT (version > 0 AND version <= (SELECT version FROM code_index WHERE space_id = ?1))
"""


def coded_spaces(access: Access) -> list[Space]:
    """Return the spaces that have codes, but for those that are being deleted."""
    sql = f"""
    SELECT {SPACE_COLUMNS} FROM space WHERE id IN (SELECT space_id FROM code_index) AND name NOT GLOB '{OLD_SPACE}*'
    """
    with access.read() as connection:
        return [Space(*row) for row in select(connection, sql)]


def find_centre_damage(access: Access) -> Iterator[Damage]:
    """Name the spaces whose codes can't be used at all."""
    spaces = coded_spaces(access)
    with access.read() as connection:
        broken = [space.name for space in spaces if not _usable(connection, space)]
    if broken:
        yield make_damage("codes-centre", len(broken), detail=", ".join(map(repr, broken)))


def find_code_damage(access: Access) -> Iterator[Damage]:
    """Name the pages that are missing, can't be read or hold other codes than the vectors have."""
    found = [(space, number) for space in coded_spaces(access) for number in _wrong_pages(access, space)]
    if found:
        shown = ", ".join(f"{number} of {space.name!r}" for space, number in found[:SHOWN])
        yield make_damage("codes-page", len(found), detail=shown)


def repair_centres(access: Access) -> list[str]:
    """Make the codes of spaces anew that can't be used at all."""
    done = []
    for space in coded_spaces(access):
        with access.write() as connection:
            if _usable(connection, space):
                continue
            create_pages(connection, space, 1)
        while _take_up(access, space):
            pass
        done.append(f"made the codes of {space.name!r} anew")
    return done


def repair_pages(access: Access) -> list[str]:
    """Make wrong pages anew, each in a transaction of its own."""
    done = []
    for space in coded_spaces(access):
        numbers = list(_wrong_pages(access, space))
        for number in numbers:
            with access.write() as connection:
                centre = read_centre(connection, space)
                if centre is not None:
                    rebuild_page(connection, space, centre, number)
        if numbers:
            done.append(f"made {len(numbers)} pages of the codes of {space.name!r} anew")
    return done


def _take_up(access: Access, space: Space) -> bool:
    with access.write() as connection:
        return take_up_changes(connection, space, TAKEN_UP) == TAKEN_UP


def _usable(connection: apsw.Connection, space: Space) -> bool:
    try:
        return read_centre(connection, space) is not None and read_version(connection, space) > 0
    except (TypeError, ValueError):  # values of other types
        return False


def _wrong_pages(access: Access, space: Space) -> Iterator[int]:
    with access.read() as connection:
        if not _usable(connection, space):
            return
        numbers = [number for (number,) in select(connection, NUMBERS, (space.id,))]
        late = {number for (number,) in select(connection, VERSIONS, (space.id,))}
    for number in numbers:
        with access.read() as connection:
            if number in late or not verify_page(connection, space, number):
                yield number
