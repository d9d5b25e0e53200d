"""Makes again what is derived, step by step: each in transactions of bounded size, each harmless if it is repeated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import apsw

from . import codes, keyword_index, objects, pages, tables
from .access import Access


class _Step(NamedTuple):
    """Kinds of damage, and what repairs them."""

    kinds: frozenset[str]
    run: Callable[[Access], list[str]]


_KEYWORD_KINDS = frozenset({"keyword-missing", "keyword-rows", "keyword-orphan", "keyword-wrong", "keyword-unfinished"})
# The keyword index comes before all that changes chunks, for the triggers keep it in step.
FIRST = (
    _Step(frozenset({"application-id", "schema-version"}), lambda access: [objects.repair_header(access)]),
    _Step(frozenset({"index-wrong"}), pages.repair_indexes),
    _Step(frozenset({"table-damaged"}), pages.repair_damaged_tables),
    _Step(frozenset({"table-missing", "index-missing", "trigger-missing"}), objects.repair_schema),
    _Step(_KEYWORD_KINDS, lambda access: [keyword_index.rebuild(access)]),
    _Step(frozenset({"chunk-keys"}), tables.repair_keys),
)
LAST = (
    _Step(frozenset({"codes-centre"}), codes.repair_centres),
    _Step(frozenset({"codes-page"}), codes.repair_pages),
)


def repair_tables(access: Access, kinds: Collection[str], clock: Callable[[], int]) -> Iterator[str]:
    """Repair these kinds of damage, and say what was done; all but what chunks say. `clock` gives microseconds.

    A step that fails is told as well, and the next ones are run all the same.
    """
    rows = tuple(_Step(frozenset({check.kind}), _bind(check, clock)) for check in tables.CHECKS if check.repair)
    for step in (*FIRST, *rows, *LAST):
        if step.kinds.isdisjoint(kinds):
            continue
        try:
            yield from step.run(access)
        except apsw.BusyError:
            raise
        except apsw.Error as error:
            yield f"could not repair {', '.join(sorted(step.kinds & set(kinds)))}: {error}"


def _bind(check: tables.RowCheck, clock: Callable[[], int]) -> Callable[[Access], list[str]]:
    return lambda access: tables.repair_rows(access, check, clock())
