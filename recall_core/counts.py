"""How many records there are of what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Count:
    """A name, None for records that have none, and how many records bear it."""

    name: str | None
    records: int


@dataclass(frozen=True, slots=True)
class SessionCount:
    """A session of a scope, and how many records it has."""

    scope: str
    session: str
    records: int


@dataclass(frozen=True, slots=True)
class DayCount:
    """How many records were made on a day (UTC), and up to its end."""

    day: date
    records: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """The records of a scope and below, counted: the largest counts first, days in their order.

    `recent` of the records were made in the last `period_days` days, today included, `before` in as many before these.
    Days are those of UTC.
    """

    records: int
    scopes: tuple[Count, ...] = ()
    sessions: tuple[SessionCount, ...] = ()
    roles: tuple[Count, ...] = ()
    kinds: tuple[Count, ...] = ()
    tags: tuple[Count, ...] = ()
    by_day: tuple[DayCount, ...] = ()
    period_days: int = 7
    recent: int = 0
    before: int = 0
