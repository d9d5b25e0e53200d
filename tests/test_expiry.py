"""Records that expire: from that instant on nothing shows them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support import NOW, HashedEmbedder

from recall_core import Memory
from recall_core.context import LABELS
from recall_core.errors import InvalidInputError, RecordNotFoundError

TEXT = "rockets fly on Fridays"

LOOKS = {
    "get": lambda memory: memory.get("r"),
    "records": lambda memory: memory.records(),
    "records of a session": lambda memory: memory.records(session="talk"),
    "keyword search": lambda memory: memory.search(TEXT, mode="keyword"),
    "semantic search": lambda memory: memory.search(TEXT, mode="semantic"),
    "hybrid search": lambda memory: memory.search(TEXT),
    "rrf search": lambda memory: memory.search(TEXT, fusion="rrf"),
    "plain search": lambda memory: memory.search(TEXT, fusion="plain"),
    "messages": lambda memory: memory.session("talk").messages(),
    "sessions": lambda memory: memory.sessions(),
    "a scoped view": lambda memory: memory.scoped("user").records(),
}


@pytest.fixture
def memory(clock):
    with Memory.open(":memory:", embedder=HashedEmbedder(), clock=clock) as memory:
        yield memory


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_record_is_seen_until_it_expires_and_never_after(memory, clock, look):
    scope = "user" if look is LOOKS["a scoped view"] else ""
    memory.add(TEXT, id="r", scope=scope, session="talk", turn=1, ttl=60)
    clock.advance(59.999)
    assert len(look(memory)) == 1
    clock.advance(0.001)
    assert len(look(memory)) == 0


def test_expired_records_are_not_counted(memory, clock):
    memory.add(TEXT, ttl=60)
    memory.add(TEXT)
    assert memory.count() == 2
    clock.advance(60)
    assert memory.count() == 1


def test_an_expired_record_is_in_no_context(memory, clock):
    memory.add(TEXT, ttl=60)
    assert TEXT in memory.context(TEXT)
    clock.advance(60)
    assert LABELS["en"].nothing in memory.context(TEXT)


def test_an_expired_record_can_not_be_updated(memory, clock):
    memory.add(TEXT, id="r", ttl=60)
    clock.advance(60)
    with pytest.raises(RecordNotFoundError):
        memory.update("r", ttl=60)


def test_an_expired_message_is_not_found_through_its_neighbour(memory, clock):
    talk = memory.session("talk")
    talk.append("user", TEXT, turn=1)
    talk.append("assistant", "turtles swim", turn=2, ttl=60)
    assert len(memory.search(TEXT, mode="keyword")) == 2
    clock.advance(60)
    assert len(memory.search(TEXT, mode="keyword")) == 1


@pytest.mark.parametrize("ttl", [90, 90.0, timedelta(seconds=90)], ids=repr)
def test_a_time_to_live_counts_from_now(memory, ttl):
    assert memory.add(TEXT, ttl=ttl).expires_at == NOW + timedelta(seconds=90)


def test_a_time_to_live_counts_from_now_and_not_from_when_the_record_was_made(memory):
    assert memory.add(TEXT, created_at="2020-01-01", ttl=90).expires_at == NOW + timedelta(seconds=90)


def test_a_record_may_expire_at_a_given_time(memory, clock):
    memory.add(TEXT, expires_at=NOW + timedelta(days=1))
    clock.advance(days=1, seconds=-1)
    assert memory.count() == 1
    clock.advance(1)
    assert memory.count() == 0


def test_an_update_extends_the_life_of_a_record(memory, clock):
    memory.add(TEXT, id="r", ttl=60)
    clock.advance(30)
    assert memory.update("r", ttl=60).expires_at == NOW + timedelta(seconds=90)


@pytest.mark.parametrize("changes", [{"ttl": None}, {"expires_at": None}], ids=repr)
def test_an_update_makes_a_record_stay(memory, clock, changes):
    memory.add(TEXT, id="r", ttl=60)
    assert memory.update("r", **changes).expires_at is None
    clock.advance(days=365)
    assert memory.count() == 1


def test_a_record_without_a_time_to_live_never_expires(memory, clock):
    memory.add(TEXT)
    clock.advance(days=365 * 100)
    assert memory.count() == 1


SET_EXPIRIES = {
    "add": lambda memory, time: memory.add(TEXT, expires_at=time),
    "add_many": lambda memory, time: memory.add_many([{"text": TEXT, "expires_at": time}]),
    "append": lambda memory, time: memory.session("talk").append("user", TEXT, expires_at=time),
    "update": lambda memory, time: memory.update("r", expires_at=time),
    "touch": lambda memory, time: memory.touch("r", expires_at=time),
}


@pytest.mark.parametrize("time", [NOW, "2025-12-31"], ids=repr)
@pytest.mark.parametrize("set_expiry", SET_EXPIRIES.values(), ids=SET_EXPIRIES)
def test_a_time_that_is_past_is_refused_since_nothing_would_show_the_record(memory, set_expiry, time):
    memory.add("other", id="r")
    with pytest.raises(InvalidInputError, match=r"expires_at is 202.* is past .now it is 2026-01-31T09:30:00"):
        set_expiry(memory, time)
    assert [(record.text, record.expires_at) for record in memory.records()] == [("other", None)]
