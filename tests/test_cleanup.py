"""Cleaning up deletes what it is asked to and no more, whole sessions or none of them, now or never."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from cli_support import run, run_json
from store_support import embedder, faults
from support import NOW

from recall_core import AsyncMemory, CleanedUp, Memory, Settings
from recall_core.errors import InvalidInputError

DAY = timedelta(days=1)


def days_ago(days: float):
    return NOW - days * DAY


@pytest.fixture
def memory(db_path, clock):
    with Memory.open(db_path, embedder=embedder(), clock=clock) as memory:
        yield memory
    assert faults(db_path) == []


def ids(memory):
    return {record.id for record in memory.records(limit=1000)}


def add(memory, id, days=0.0, **arguments):
    return memory.add(f"text of {id}", id=id, created_at=days_ago(days), **arguments)


def talk(memory, session, *days, **arguments):
    for number, age in enumerate(days):
        text = f"message {number} of {session}"
        memory.session(session).append("user", text, id=f"{session}{number}", created_at=days_ago(age), **arguments)


# The reasons


def test_expired_records_go_for_good(memory, clock):
    add(memory, "stays")
    add(memory, "short", ttl=60)
    talk(memory, "s", 0, ttl=60)
    memory.session("s").append("user", "stays too", id="s9")
    clock.advance(61)
    assert memory.cleanup() == CleanedUp(expired=2)
    assert ids(memory) == {"stays", "s9"}
    assert memory.stats().records == 2
    assert memory.deleted() == []
    assert memory.cleanup() == CleanedUp()


def test_what_an_expired_record_was_before_stays_in_the_trash(memory, clock):
    add(memory, "a")
    memory.delete("a")
    memory.add("another text", id="a", ttl=60)
    clock.advance(61)
    assert memory.cleanup() == CleanedUp(expired=1)
    assert [record.text for record in memory.restore("a")] == ["text of a"]


def test_expired_records_can_be_kept(memory, clock):
    add(memory, "short", ttl=60)
    clock.advance(61)
    assert memory.cleanup(expired=False) == CleanedUp()
    assert memory.stats().records == 1


@pytest.mark.parametrize("age", [30 * DAY, days_ago(30), days_ago(30).isoformat(), days_ago(30).timestamp()], ids=str)
def test_old_records_go_to_the_trash(memory, age):
    for days in (29, 30, 31, 400):
        add(memory, f"{days}", days)
    assert memory.cleanup(older_than=age) == CleanedUp(old=2)
    assert ids(memory) == {"29", "30"}
    assert {entry.record.id for entry in memory.deleted()} == {"31", "400"}
    assert [record.id for record in memory.restore("31")] == ["31"]


def test_a_session_goes_as_a_whole_when_all_of_it_is_old_and_else_stays(memory):
    talk(memory, "old", 90, 80, 70)
    talk(memory, "mixed", 90, 80, 1)
    memory.session("old", title="An old conversation")
    add(memory, "single", 90)
    assert memory.cleanup(older_than=30 * DAY) == CleanedUp(old=4, sessions=1)
    assert ids(memory) == {"mixed0", "mixed1", "mixed2"}
    assert [session.id for session in memory.sessions()] == ["mixed"]
    memory.restore(["old0", "old1", "old2"])
    assert memory.session("old").title == "An old conversation"


def test_idle_sessions_go_and_single_records_stay(memory):
    talk(memory, "idle", 90, 31)
    talk(memory, "busy", 90, 29)
    add(memory, "single", 90)
    assert memory.cleanup(idle_sessions=30 * DAY) == CleanedUp(idle=2, sessions=1)
    assert ids(memory) == {"busy0", "busy1", "single"}


def test_sessions_of_the_same_name_in_other_scopes_are_others(memory):
    memory.session("s", scope="a").append("user", "old", id="a", created_at=days_ago(90))
    memory.session("s", scope="b").append("user", "new", id="b")
    assert memory.cleanup(idle_sessions=30 * DAY).idle == 1
    assert ids(memory) == {"b"}


def test_unimportant_records_go(memory):
    add(memory, "low", importance=0.1)
    add(memory, "limit", importance=0.3)
    talk(memory, "s", 0, 0, importance=0.1)
    talk(memory, "t", 0, importance=0.1)
    memory.session("t").append("user", "important", id="t9", importance=0.9)
    assert memory.cleanup(below_importance=0.3) == CleanedUp(unimportant=3, sessions=1)
    assert ids(memory) == {"limit", "t0", "t9"}


def test_a_scope_keeps_its_newest_up_to_the_cap(memory):
    for number in range(5):
        add(memory, f"a{number}", number, scope="a")
        add(memory, f"b{number}", number, scope="a/b")
    add(memory, "c0", 500, scope="c")
    assert memory.cleanup(per_scope_cap=3) == CleanedUp(over_cap=4)
    assert ids(memory) == {"a0", "a1", "a2", "b0", "b1", "b2", "c0"}


def test_a_cap_cuts_no_session(memory):
    talk(memory, "new", 1, 2, 3)
    add(memory, "between", 4)
    talk(memory, "old", 5, 6)
    assert memory.cleanup(per_scope_cap=2) == CleanedUp(over_cap=3, sessions=1)
    assert ids(memory) == {"new0", "new1", "new2"}


def test_a_cap_of_none_empties_a_scope(memory):
    add(memory, "a", scope="a")
    add(memory, "b", scope="b")
    assert memory.cleanup(per_scope_cap=0, scope="a") == CleanedUp(over_cap=1)
    assert ids(memory) == {"b"}


def test_each_record_counts_for_the_first_reason(memory, clock):
    add(memory, "expired", 90, ttl=60, importance=0.1)
    add(memory, "old", 90, importance=0.1)
    talk(memory, "s", 90, importance=0.1)
    add(memory, "low", 1, importance=0.1)
    add(memory, "capped", 2)
    add(memory, "stays", 0)
    clock.advance(61)
    rules = {"older_than": 30 * DAY, "idle_sessions": DAY, "below_importance": 0.2, "per_scope_cap": 1}
    expected = {"expired": 1, "old": 2, "unimportant": 1, "over_cap": 1, "sessions": 1}
    assert memory.cleanup(**rules, dry_run=True) == CleanedUp(**expected, dry_run=True)
    assert memory.stats().records == 6
    assert memory.cleanup(**rules) == CleanedUp(**expected)
    assert ids(memory) == {"stays"}


def test_scope_and_where_say_which_records(memory, clock):
    for scope in ("a", "a/b", "ab"):
        add(memory, f"{scope}-note", 90, scope=scope, metadata={"kind": "note"})
        add(memory, f"{scope}-rule", 90, scope=scope, metadata={"kind": "rule"})
        add(memory, f"{scope}-gone", 90, scope=scope, metadata={"kind": "note"}, ttl=60)
    clock.advance(61)
    found = memory.cleanup(older_than=DAY, scope="a", where={"kind": "note"})
    assert found == CleanedUp(expired=2, old=2)
    assert ids(memory) == {"a-rule", "a/b-rule", "ab-note", "ab-rule"}
    assert memory.stats().records == 5


def test_a_session_with_a_message_that_where_leaves_out_stays(memory):
    talk(memory, "s", 90, tags=["a"])
    memory.session("s").append("user", "b", id="s9", created_at=days_ago(90))
    assert memory.cleanup(older_than=DAY, where={"@tags": {"$any": ["a"]}}) == CleanedUp()


# The trash, and for good


def test_what_was_in_the_trash_for_its_time_goes(memory, clock):
    add(memory, "a")
    add(memory, "b")
    memory.delete("a")
    clock.advance(days=20)
    memory.delete("b")
    clock.advance(days=11)
    assert memory.cleanup(dry_run=True) == CleanedUp(purged=1, dry_run=True)
    assert memory.cleanup() == CleanedUp(purged=1)
    assert [entry.record.id for entry in memory.deleted()] == ["b"]


def test_hard_deletes_for_good(memory, db_path):
    memory.add("the word zyzzyva", id="a", created_at=days_ago(90))
    memory.session("s").append("user", "the word quokka", created_at=days_ago(90))
    assert memory.cleanup(older_than=DAY, hard=True) == CleanedUp(old=2, sessions=1)
    assert memory.deleted() == []
    raw = db_path.read_bytes() + db_path.with_name("memory.db-wal").read_bytes()
    assert b"zyzzyva" not in raw
    assert b"quokka" not in raw


def test_without_a_trash_all_deletions_are_for_good(db_path, clock):
    with Memory.open(db_path, embedder=None, clock=clock, settings=Settings(trash_days=0)) as memory:
        add(memory, "a", 90)
        assert memory.cleanup(older_than=DAY) == CleanedUp(old=1)
        assert memory.deleted() == []


def test_titles_of_old_sessions_without_messages_go(memory, clock):
    memory.session("bare", title="never said anything")
    clock.advance(days=40)
    memory.session("new", title="just begun")
    assert memory.cleanup(idle_sessions=30 * DAY) == CleanedUp()
    assert [session.id for session in memory.sessions()] == ["new"]


# Batches, others, interruptions


def test_many_go_in_batches_with_progress(memory, monkeypatch):
    monkeypatch.setattr("recall_core.cleaning.BATCH", 10)
    memory.add_many({"text": f"old {number}", "created_at": days_ago(90)} for number in range(35))
    talk(memory, "long", *[90] * 25)
    talk(memory, "short", 90)
    told = []
    assert memory.cleanup(older_than=DAY, progress=lambda *now: told.append(now)).old == 61
    assert told == [(10, 61), (20, 61), (30, 61), (60, 61), (61, 61)]
    assert memory.count() == 0


def test_what_changes_meanwhile_is_looked_at_again(memory, monkeypatch):
    monkeypatch.setattr("recall_core.cleaning.BATCH", 1)
    add(memory, "first", 90)
    add(memory, "saved", 90)
    talk(memory, "s", 90, 90)

    def change(done, total):
        if memory.session("s").messages()[-1].id != "back":
            memory.update("saved", created_at=NOW)
            memory.session("s").append("user", "I am back", id="back")

    assert memory.cleanup(older_than=DAY, progress=change) == CleanedUp(old=1)
    assert ids(memory) == {"saved", "s0", "s1", "back"}


def test_an_interrupted_run_leaves_whole_sessions_and_is_finished_by_the_next(memory, monkeypatch):
    monkeypatch.setattr("recall_core.cleaning.BATCH", 4)
    for number in range(6):
        talk(memory, f"s{number}-", 90, 90, 90)

    def stop(done, total):
        if done >= 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.cleanup(older_than=DAY, progress=stop)
    assert memory.count() == 12
    assert memory.cleanup(older_than=DAY) == CleanedUp(old=12, sessions=4)


@pytest.mark.parametrize(
    "rules",
    [
        {"older_than": "yesterday"},
        {"older_than": -DAY},
        {"older_than": timedelta(days=999999)},
        {"older_than": timedelta(0)},
        {"older_than": days_ago(-1)},
        {"idle_sessions": "x"},
        {"idle_sessions": timedelta(0)},
        {"idle_sessions": "2999-01-01"},
        {"below_importance": 2},
        {"below_importance": True},
        {"per_scope_cap": -1},
        {"per_scope_cap": 1.5},
        {"scope": "/"},
        {"where": {"$bad": 1}},
    ],
    ids=str,
)
def test_rules_that_make_no_sense_are_refused(memory, rules):
    add(memory, "a", 90)
    with pytest.raises(InvalidInputError):
        memory.cleanup(**rules)
    assert ids(memory) == {"a"}


def test_a_time_to_come_is_refused_with_what_was_seen_and_the_way_out(memory):
    for dry_run in (False, True):
        with pytest.raises(InvalidInputError, match=r"older_than is 2999-01-01 00:00 UTC, later than now .* 90 days"):
            memory.cleanup(older_than="2999-01-01", dry_run=dry_run)


def test_all_that_was_made_until_now_can_be_cleaned_up(memory):
    add(memory, "a", 1)
    assert memory.cleanup(older_than=NOW) == CleanedUp(old=1)


def test_cleaning_up_can_be_awaited(db_path):
    async def work():
        async with await AsyncMemory.open(db_path, embedder=None) as memory:
            await memory.add("old", created_at="2001-01-01")
            assert (await memory.cleanup(older_than=DAY)).old == 1

    asyncio.run(work())


# The command


def test_the_command_cleans_up(db_path):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add("old", created_at="2001-01-01", importance=0.9)
        memory.add("low", importance=0.1)
        memory.session("s").append("user", "hello", created_at="2001-01-01")
    arguments = ("--older-than", "90d", "--below-importance", "0.2", "--idle-sessions", "2020-01-01")
    done = run_json(db_path, "cleanup", *arguments, "--dry-run")
    assert done == {
        "expired": 0, "old": 2, "idle": 0, "unimportant": 1, "over_cap": 0, "sessions": 1, "purged": 0,
        "records": 3, "dry_run": True,
    }  # fmt: skip
    result = run(db_path, "cleanup", *arguments)
    assert result.stdout.startswith("deleted 3 memories: 0 expired, 2 old, ")
    assert run_json(db_path, "list")["records"] == []
    for age in ("soon", "10", "-5d"):
        result = run(db_path, "cleanup", "--older-than", age)
        assert (result.exit_code, f"--older-than is '{age}'; write how long ago" in result.stderr) == (2, True)


@pytest.mark.parametrize("age", ["0d", "2999-01-01"])
@pytest.mark.parametrize("option", ["--older-than", "--idle-sessions"])
def test_the_command_deletes_nothing_if_a_time_is_yet_to_come(db_path, option, age):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add("new")
        memory.session("s").append("user", "hello")
    result = run(db_path, "cleanup", option, age)
    assert (result.exit_code, "which would mean all there is" in result.stderr) == (2, True)
    assert len(run_json(db_path, "list")["records"]) == 2
