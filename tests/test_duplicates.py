"""The same text or id again, and many records at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from support import NOW

from recall_core import Memory, NewRecord
from recall_core.errors import InvalidInputError, RecordExistsError

BATCH = 256  # records in one transaction of add_many


@pytest.fixture
def memory(clock, embedder):
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        yield memory


def found(memory, query) -> list[str]:
    return [hit.record.id for hit in memory.search(query, mode="keyword")]


# Duplicates


def test_the_same_text_twice_is_kept_twice_by_default(memory):
    assert memory.add("text").id != memory.add("text").id
    assert memory.count() == 2


def test_skip_returns_the_first_one_unchanged(memory, clock):
    first = memory.add("text", tags=["first"])
    clock.advance(5)
    assert memory.add("text", tags=["second"], on_duplicate="skip") == first
    assert memory.records() == [first]


def test_touch_makes_the_first_one_recent_and_changes_nothing_else(memory, clock, embedder):
    first = memory.add("text", tags=["first"])
    clock.advance(5)
    touched = memory.add("text", tags=["second"], on_duplicate="touch")
    assert (touched.id, touched.tags, touched.created_at) == (first.id, ("first",), NOW)
    assert touched.updated_at == touched.accessed_at == NOW + timedelta(seconds=5)
    assert memory.records() == [touched]
    assert embedder.passages == ["text"]


def test_replace_gives_the_first_one_what_the_second_has(memory, clock):
    first = memory.add("text", tags=["rockets"], metadata={"k": 1})
    clock.advance(5)
    second = memory.add("text", tags=["turtles"], on_duplicate="replace")
    assert (second.id, second.tags, second.metadata, second.created_at) == (first.id, ("turtles",), {}, NOW)
    assert memory.records() == [second]
    assert (found(memory, "rockets"), found(memory, "turtles")) == ([], [first.id])


@pytest.mark.parametrize("on_duplicate", ["skip", "touch", "replace"])
def test_the_same_text_in_another_scope_is_no_duplicate(memory, on_duplicate):
    memory.add("text", scope="a")
    for scope in ["", "a/b", "ab"]:
        memory.add("text", scope=scope, on_duplicate=on_duplicate)
    assert memory.count() == 4


@pytest.mark.parametrize("on_duplicate", ["skip", "touch", "replace"])
def test_another_text_is_no_duplicate(memory, on_duplicate):
    memory.add("text")
    memory.add("Text", on_duplicate=on_duplicate)
    assert memory.count() == 2


@pytest.mark.parametrize("on_duplicate", ["keep", "skip", "touch"])
def test_an_id_that_is_taken_is_refused(memory, on_duplicate):
    record = memory.add("text", id="r")
    with pytest.raises(RecordExistsError, match=r"'r'.*replace"):
        memory.add("other", id="r", on_duplicate=on_duplicate)
    assert memory.records() == [record]


def test_replacing_by_id_leaves_nothing_of_the_old_record(memory, clock):
    memory.add("rockets fly", id="r", tags=["old"], session="s")
    clock.advance(5)
    new = memory.add("turtles swim", id="r", on_duplicate="replace")
    assert (new.tags, new.session, new.created_at, new.updated_at) == ((), None, NOW, NOW + timedelta(seconds=5))
    assert memory.get("r") == [new]
    assert (found(memory, "rockets"), found(memory, "turtles")) == ([], ["r"])
    (hit,) = memory.search("turtles swim", mode="semantic")
    assert hit.why.similarity == pytest.approx(1, abs=1e-5)


def test_replacing_by_id_leaves_another_record_of_the_same_text_alone(memory):
    first = memory.add("text", id="r1")
    second = memory.add("text", id="r2", on_duplicate="replace")
    assert memory.records() == [first, second]


def test_the_id_of_an_expired_record_is_free_again(memory, clock):
    memory.add("rockets", id="r", ttl=60)
    clock.advance(60)
    record = memory.add("turtles", id="r")
    assert memory.get("r") == [record]
    assert (found(memory, "rockets"), found(memory, "turtles")) == ([], ["r"])


@pytest.mark.parametrize("on_duplicate", ["skip", "touch", "replace"])
def test_an_expired_record_has_no_duplicate(memory, clock, on_duplicate):
    memory.add("text", ttl=60)
    clock.advance(60)
    record = memory.add("text", on_duplicate=on_duplicate)
    assert memory.records() == [record]


def test_a_replacement_may_say_when_it_was_made(memory):
    memory.add("text", id="r")
    new = memory.add("text", id="r", created_at="2020-01-01", on_duplicate="replace")
    assert new.created_at == datetime(2020, 1, 1, tzinfo=UTC)


def test_duplicates_within_one_bulk_add_are_settled_too(memory):
    records = memory.add_many([{"text": "text", "on_duplicate": "skip"}] * 3)
    assert memory.records() == [records[0]]
    assert records == [records[0]] * 3


# Many at once


def test_many_records_come_back_in_their_order(memory):
    given = [{"text": "one", "scope": "a"}, NewRecord(text="two", tags=["t"]), {"text": "three", "ttl": 60}]
    records = memory.add_many(iter(given))
    assert [record.text for record in records] == ["one", "two", "three"]
    assert memory.records() == records


def test_progress_is_told_after_each_batch():
    told: list[int] = []
    with Memory.open(":memory:", embedder=None) as memory:
        memory.add_many(({"text": f"{number}"} for number in range(2 * BATCH + 10)), progress=told.append)
    assert told == [BATCH, 2 * BATCH, 2 * BATCH + 10]


def test_nothing_to_add_is_no_error(memory):
    told: list[int] = []
    assert memory.add_many([], progress=told.append) == []
    assert told == []


FAULTS = [
    ({"text": 5}, "text"),
    ({"texts": "x"}, "unknown field 'texts'"),
    ({}, "text"),
    ("a string", f"record {BATCH + 20} is a str"),
    ({"text": "x", "scope": "a//b"}, "empty segment"),
    ({"text": "x", "id": "taken"}, "taken"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=repr)
def test_a_fault_loses_no_batch_before_it_and_stores_nothing_of_its_own(fault, message):
    given = [{"text": f"{number}"} for number in range(BATCH + 20)]
    with Memory.open(":memory:", embedder=None) as memory:
        memory.add("taken", id="taken")
        with pytest.raises((InvalidInputError, RecordExistsError), match=message):
            memory.add_many([*given, fault, {"text": "after"}])
        assert memory.count() == 1 + BATCH
        assert found(memory, str(BATCH - 1)) != []
        assert found(memory, str(BATCH + 1)) == []


def test_what_can_not_be_iterated_is_refused(memory):
    with pytest.raises(InvalidInputError, match="records"):
        memory.add_many(None)
