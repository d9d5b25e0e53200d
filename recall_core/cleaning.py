"""Removes what is not wanted any more: expired, old, unimportant, or more than a scope shall hold.

First it is looked up what is to go, which is all that a dry run does; then that goes, batch by batch, and each batch is
looked at again inside its transaction, so that what changed meanwhile stays. A session goes only as a whole: one with a
message that is to stay stays altogether.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from .deletion import erase, is_final, purge_trash
from .drafting import check_limit
from .engine import Engine
from .errors import InvalidInputError
from .filters import And, Condition, Filter, Selection
from .reports import CleanedUp
from .scopes import check_scope
from .store import Unit
from .times import MICROS_PER_DAY, MICROSECOND, Time, from_micros, to_micros

BATCH = 256  # records in one transaction; a session may have more

PAST = "give how long ago, such as 90 days, or a time that has passed; to delete all: recall forget --everything"

Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is to go. Times are microseconds; None and False ask for nothing."""

    scope: str = ""
    where: Filter | None = None  # only of these records
    expired: bool = True
    created_before: int | None = None
    idle_since: int | None = None
    below_importance: float | None = None
    per_scope_cap: int | None = None


@dataclass(slots=True)
class _Part:
    """What goes for one reason: which records are looked at, which of them go, and what that came to."""

    reason: str
    base: Selection
    wanted: Filter | None
    units: list[Unit]
    deleted: int = 0
    sessions: int = 0
    final: bool = False  # not into the trash
    hard: bool = False  # and from there, too


def clean_up(
    engine: Engine, rules: Rules, *, dry_run: bool = False, hard: bool = False, progress: Progress | None = None
) -> CleanedUp:
    """Remove what the rules name, into the trash or for good; what expired goes for good, as it can't be restored. What
    was in the trash for its time goes as well.
    """
    parts = list(_plan(engine, rules))
    if dry_run:
        before = engine.now() - int(engine.settings.trash_days * MICROS_PER_DAY)
        for part in parts:
            part.deleted = sum(unit.size for unit in part.units)
            part.sessions = sum(unit.session is not None for unit in part.units)
        return _report(parts, engine.store.cleaning.count_overdue(before), dry_run=True)
    total = sum(unit.size for part in parts for unit in part.units)
    done = 0
    for part in parts:
        part.hard = is_final(engine, hard)
        part.final = part.hard or part.reason == "expired"
        for size in _remove(engine, part):
            done += size
            if progress is not None:
                progress(done, max(total, done))
    if rules.where is None and (ages := [age for age in (rules.created_before, rules.idle_since) if age is not None]):
        engine.store.cleaning.drop_titles(rules.scope, max(ages))
    purged = 0
    while gone := purge_trash(engine, BATCH):
        purged += gone
    final = any(part.final and part.deleted for part in parts)
    if purged or final or (is_final(engine, hard) and engine.store.remains.count()):  # what was interrupted
        erase(engine)
    return _report(parts, purged, dry_run=False)


def find_moment(value: timedelta | Time | None, now: int, name: str) -> int | None:
    """Return a time in microseconds: a moment that has passed, or how long ago. Raises InvalidInputError."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        if value <= timedelta(0):
            raise InvalidInputError(f"{name} is {value}, which would mean all there is; {PAST}")
        moment = now - value // MICROSECOND
        from_micros(moment, name)
        return moment
    moment = to_micros(value, name)
    if moment > now:
        times = f"{from_micros(moment):%Y-%m-%d %H:%M} UTC, later than now ({from_micros(now):%Y-%m-%d %H:%M} UTC)"
        raise InvalidInputError(f"{name} is {times}, which would mean all there is; {PAST}")
    return moment


def check_rules(rules: Rules) -> Rules:
    """Return rules that can be followed. Raises InvalidInputError."""
    check_scope(rules.scope)
    least = rules.below_importance
    if least is not None and (isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1):
        raise InvalidInputError(f"below_importance is a number from 0 to 1, not {least!r}")
    if rules.per_scope_cap is not None:
        check_limit(rules.per_scope_cap, "per_scope_cap")
    return rules


def _plan(engine: Engine, rules: Rules) -> Iterator[_Part]:
    """Find what is to go, each record for the first reason that holds."""
    now, table, seen = engine.now(), engine.store.cleaning, set[tuple[str, str | None, str | None]]()

    def make(reason: str, base: Selection, wanted: Filter | None, units: Iterator[Unit]) -> _Part:
        new = [unit for unit in units if unit.key not in seen]
        seen.update(unit.key for unit in new)
        return _Part(reason, base, wanted, new)

    every = Selection(scope=rules.scope, now=now, ignores_expiry=True)
    if rules.expired:
        wanted = _both(Condition("@expires_at", "lte", from_micros(now)), rules.where)
        yield make("expired", every, wanted, table.records(every, wanted))
    living = Selection(scope=rules.scope, now=now, ignores_expiry=not rules.expired)
    if rules.created_before is not None:
        wanted = _both(Condition("@created_at", "lt", from_micros(rules.created_before)), rules.where)
        yield make("old", living, wanted, table.units(living, wanted))
    if rules.idle_since is not None:
        wanted = _both(Condition("@created_at", "lt", from_micros(rules.idle_since)), rules.where)
        sessions = (unit for unit in table.units(living, wanted) if unit.session is not None)
        yield make("idle", living, wanted, sessions)
    if rules.below_importance is not None:
        wanted = _both(Condition("@importance", "lt", rules.below_importance), rules.where)
        yield make("unimportant", living, wanted, table.units(living, wanted))
    if rules.per_scope_cap is not None:
        found = table.units_of_large_scopes(living, rules.where, rules.per_scope_cap)
        left = [unit for unit in found if unit.key not in seen]
        yield make("over_cap", living, rules.where, _beyond(left, rules.per_scope_cap))


def _both(condition: Filter, where: Filter | None) -> Filter:
    return condition if where is None else And((condition, where))


def _beyond(units: Sequence[Unit], most: int) -> Iterator[Unit]:
    """Yield the units of each scope before which, from the newest on, there are so many records already."""
    scope, kept = None, 0
    for unit in units:
        if unit.scope != scope:
            scope, kept = unit.scope, 0
        if kept >= most:
            yield unit
        else:
            kept += unit.size


def _remove(engine: Engine, part: _Part) -> Iterator[int]:
    """Remove the units of a part, some hundred records in a transaction; yield how many went with each."""
    batch: list[Unit] = []
    for unit in part.units:
        batch.append(unit)
        if sum(one.size for one in batch) >= BATCH:
            yield _remove_batch(engine, part, batch)
            batch = []
    if batch:
        yield _remove_batch(engine, part, batch)


def _remove_batch(engine: Engine, part: _Part, units: Sequence[Unit]) -> int:
    before = part.deleted
    with engine.store.records.transaction():
        ids = [unit.id for unit in units if unit.id is not None]
        part.deleted += _remove_records(engine, part, ids)
        for unit in units:
            if unit.session is not None and engine.store.cleaning.find_session(part.base, part.wanted, unit) == unit:
                part.deleted += _remove_session(engine, part, unit.scope, unit.session)
                part.sessions += 1
    return part.deleted - before


def _remove_records(engine: Engine, part: _Part, ids: Sequence[str]) -> int:
    store = engine.store
    selection = replace(part.base, where=part.wanted)
    if not part.final:
        return store.trash.put(ids, selection, engine.now())
    sessions = store.sessions.holding(ids)
    deleted = store.records.delete(ids, selection)
    store.sessions.drop_bare(sessions)
    while part.hard and store.trash.delete(replace(part.base, ignores_expiry=True), BATCH, ids):
        pass
    return deleted


def _remove_session(engine: Engine, part: _Part, scope: str, session: str) -> int:
    store = engine.store
    if not part.final:
        return store.trash.put_session(scope, session, engine.now())
    deleted = store.sessions.delete(scope, session)
    store.trash.delete_session(scope, session)
    return deleted


def _report(parts: Sequence[_Part], purged: int, *, dry_run: bool) -> CleanedUp:
    counts = {part.reason: part.deleted for part in parts}
    return CleanedUp(**counts, sessions=sum(part.sessions for part in parts), purged=purged, dry_run=dry_run)
