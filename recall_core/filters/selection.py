"""Selections: all that a read may see, in one value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from recall_core.errors import InvalidInputError
from recall_core.models import Json, Record
from recall_core.scopes import check_scope, scope_contains
from recall_core.times import Time, from_micros, to_micros

from .conditions import Condition, Filter, Or, holds_always
from .predicate import matches
from .where import parse_where


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which records a read may see: those for which all of this holds. Times are microseconds since 1970 UTC.

    An empty tuple of roles or tags selects nothing; None does not restrict.
    """

    scope: str = ""  # this one and its subtree
    where: Filter | None = None
    session: str | None = None
    roles: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None  # at least one of them
    since: int | None = None  # created_at in [since, until)
    until: int | None = None
    now: int  # records with expires_at <= now are invisible
    ignores_expiry: bool = False  # unless this is set

    def __post_init__(self) -> None:
        check_scope(self.scope)


def make_selection(
    *,
    now: Time,
    scope: str = "",
    where: Mapping[str, Json] | Filter | None = None,
    session: str | None = None,
    roles: str | Iterable[str] | None = None,
    tags: str | Iterable[str] | None = None,
    since: Time | None = None,
    until: Time | None = None,
) -> Selection:
    """Return the selection that a caller's arguments mean; one role or tag may be given as a plain string.

    Raises InvalidInputError for anything that can't be used, so that a mistake never widens what is seen.
    """
    if session is not None and not isinstance(session, str):
        raise InvalidInputError(f"session: an id is a string, not {session!r}")
    return Selection(
        scope=scope,
        where=parse_where(where),
        session=session,
        roles=_check_names(roles, "roles"),
        tags=_check_names(tags, "tags"),
        since=None if since is None else to_micros(since, "since"),
        until=None if until is None else to_micros(until, "until"),
        now=to_micros(now, "now"),
    )


def selection_filters(selection: Selection) -> tuple[Filter, ...]:
    """Return everything but the scope that a selection asks for, as filters that all have to hold."""
    filters: list[Filter] = []
    if selection.session is not None:
        filters.append(Condition("@session", "eq", selection.session))
    if selection.roles is not None:
        filters.append(Condition("@role", "in", selection.roles))
    if selection.tags is not None:
        filters.append(Condition("@tags", "any", selection.tags))
    if selection.since is not None:
        filters.append(Condition("@created_at", "gte", from_micros(selection.since, "since")))
    if selection.until is not None:
        filters.append(Condition("@created_at", "lt", from_micros(selection.until, "until")))
    if not selection.ignores_expiry:
        later = Condition("@expires_at", "gt", from_micros(selection.now, "now"))
        filters.append(Or((Condition("@expires_at", "is_empty", True), later)))
    if selection.where is not None:
        filters.append(selection.where)
    return tuple(filters)


def restricts_records(selection: Selection) -> bool:
    """Tell whether a selection asks for more than a scope and records that have not expired."""
    where = None if selection.where is None or holds_always(selection.where) else selection.where
    parts = (where, selection.session, selection.roles, selection.tags, selection.since, selection.until)
    return any(part is not None for part in parts)


def selects(selection: Selection, record: Record) -> bool:
    """Tell whether a read of `selection` may see `record`."""
    return scope_contains(selection.scope, record.scope) and all(
        matches(part, record) for part in selection_filters(selection)
    )


def _check_names(names: str | Iterable[str] | None, argument: str) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, str | Iterable):
        raise InvalidInputError(f"{argument}: give strings, not {names!r}")
    found = (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(name, str) for name in found):
        raise InvalidInputError(f"{argument}: give strings, not {names!r}")
    return found
