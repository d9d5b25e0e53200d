"""Records counted by scope, session, role, kind, tag and day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from cli_support import run, run_json, store
from insight_support import open_memory
from support import NOW, FixedClock

from recall_core import Count, DayCount, NewRecord, SessionCount
from recall_core.errors import InvalidInputError


@pytest.fixture
def memory():
    with open_memory(clock=FixedClock()) as opened:
        opened.add("a", scope="x", session="s", role="user", tags=["t", "u"])
        opened.add("b", scope="x", session="s", role="user", tags=["t"], created_at=NOW - timedelta(days=1))
        opened.add("c", scope="x/y", session="s", kind="note", created_at=NOW - timedelta(days=8))
        opened.add("d", created_at=datetime(1969, 12, 31, 23, tzinfo=UTC))
        opened.add("gone", scope="x", ttl=1, tags=["secret"])
        opened._engine.clock.advance(2)
        yield opened


def test_each_kind_is_counted_the_largest_first(memory):
    found = memory.breakdown()
    assert found.records == 4
    assert found.scopes == (Count("x", 2), Count("", 1), Count("x/y", 1))
    assert found.sessions == (SessionCount("x", "s", 2), SessionCount("x/y", "s", 1))
    assert found.roles == (Count(None, 2), Count("user", 2))
    assert found.kinds == (Count("memory", 3), Count("note", 1))
    assert found.tags == (Count("t", 2), Count("u", 1))


def test_days_are_in_order_with_the_total_up_to_each(memory):
    assert memory.breakdown().by_day == (
        DayCount(date(1969, 12, 31), 1, 1),
        DayCount(date(2026, 1, 23), 1, 2),
        DayCount(date(2026, 1, 30), 1, 3),
        DayCount(date(2026, 1, 31), 1, 4),
    )


def test_growth_is_that_of_the_last_days_against_those_before(memory):
    found = memory.breakdown()
    assert (found.period_days, found.recent, found.before) == (7, 2, 1)
    found = memory.breakdown(days=1)
    assert (found.period_days, found.recent, found.before) == (1, 1, 1)


def test_arguments_select_what_is_counted(memory):
    assert memory.scoped("x").breakdown() == memory.breakdown(scope="x")
    assert memory.breakdown(scope="x/y").records == 1
    assert memory.breakdown(where={"@kind": "note"}).records == 1
    assert memory.breakdown(since=NOW - timedelta(days=2), until=NOW).records == 1
    assert memory.breakdown(limit=1).scopes == (Count("x", 2),)
    assert len(memory.breakdown(limit=0).by_day) == 4


@pytest.mark.parametrize("days", [0, -1, 1.5, True, "7", 10**6])
def test_days_that_are_none_are_refused(memory, days):
    with pytest.raises(InvalidInputError, match="days is a whole number"):
        memory.breakdown(days=days)


def test_stats_have_the_counts_if_asked_for(memory):
    assert memory.stats().details is None
    assert memory.stats(details=True).details == memory.breakdown()


def test_an_empty_memory_is_counted_too():
    with open_memory() as memory:
        found = memory.breakdown()
    assert (found.records, found.scopes, found.by_day, found.recent) == (0, (), (), 0)


def test_recall_stats_counts_on_request_and_in_json_always(db_path):
    store(db_path, NewRecord(text="a", scope="x", session="s", tags=["t"], role="user"), NewRecord(text="b"))
    assert "scopes" not in run(db_path, "stats").stdout
    lines = dict(line.split(maxsplit=1) for line in run(db_path, "stats", "--details").stdout.splitlines())
    assert lines["scopes"] == "(root) 1, x 1"
    assert (lines["sessions"], lines["roles"], lines["tags"]) == ("x/s 1", "(none) 1, user 1", "t 1")
    assert lines["growth"] == "2 in the last 7 days, +2 against those before"
    found = run_json(db_path, "stats", "--scope", "x")
    assert found["records"] == 2
    assert found["details"]["scopes"] == [{"name": "x", "records": 1}]
    assert [day["total"] for day in found["details"]["by_day"]] == [1]
