"""Conversations: messages by turn and role, in order, paged, listed, deleted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import LIMIT, NOW, HashedEmbedder

from recall_core import Memory
from recall_core.errors import InvalidInputError, RecordNotFoundError

THREADS = 8


@pytest.fixture
def memory(clock):
    with Memory.open(":memory:", embedder=HashedEmbedder(), clock=clock) as memory:
        yield memory


@pytest.fixture
def talk(memory):
    return memory.session("talk", scope="user/1")


def texts(session, *page) -> list[str]:
    return [message.text for message in session.messages(*page)]


def names(sessions) -> list[tuple[str, str]]:
    return [(session.scope, session.id) for session in sessions]


# Append


def test_a_message_is_a_record_of_its_session(talk, memory):
    message = talk.append("user", "Where is the database?", turn=3, tags=["db"], metadata={"channel": "ops"}, id="m1")
    assert memory.get("m1") == [message]
    assert (message.session, message.scope, message.role, message.turn) == ("talk", "user/1", "user", 3)
    assert (message.kind, message.tags, message.metadata) == ("message", ("db",), {"channel": "ops"})


def test_the_same_turn_and_role_again_changes_nothing(talk):
    first = talk.append("user", "one", turn=1)
    assert talk.append("user", "two", turn=1) == first
    assert talk.messages() == [first]


def test_the_same_turn_again_changes_nothing_whichever_id_it_has(talk):
    first = talk.append("user", "one", turn=1, id="m1")
    assert talk.append("user", "one", turn=1, id="m1") == talk.append("user", "one", turn=1, id="m2") == first
    assert talk.messages() == [first]


def test_two_roles_speak_in_one_turn(talk):
    talk.append("user", "question", turn=1)
    talk.append("assistant", "answer", turn=1)
    assert texts(talk) == ["question", "answer"]


def test_messages_without_a_turn_are_always_kept(talk):
    for _ in range(3):
        talk.append("user", "again")
    assert texts(talk) == ["again"] * 3


def test_a_text_said_in_two_turns_is_kept_twice(talk):
    talk.append("user", "yes", turn=1)
    talk.append("user", "yes", turn=2)
    assert texts(talk) == ["yes", "yes"]


def test_a_turn_can_be_said_again_once_its_message_has_expired(talk, clock):
    talk.append("user", "one", turn=1, ttl=60)
    clock.advance(60)
    talk.append("user", "two", turn=1)
    assert texts(talk) == ["two"]


def test_the_same_turn_from_many_threads_is_stored_once(db_path):
    barrier = Barrier(THREADS)

    def append(number):
        barrier.wait(timeout=LIMIT)
        return session.append("user", f"from thread {number}", turn=1)

    with Memory.open(db_path, embedder=HashedEmbedder()) as memory:
        session = memory.session("talk")
        with ThreadPoolExecutor(THREADS) as pool:
            returned = list(pool.map(append, range(THREADS)))
        assert session.messages() == [returned[0]]
        assert returned == [returned[0]] * THREADS


def test_a_session_has_nothing_until_something_is_said(memory):
    memory.session("talk")
    assert memory.sessions() == []


@pytest.mark.parametrize("id", ["", "a\nb", None, 5])
def test_an_id_that_can_not_be_printed_is_refused(memory, id):
    with pytest.raises(InvalidInputError, match="session"):
        memory.session(id)


@pytest.mark.parametrize("role", ["", "a\nb", 5])
def test_a_role_that_can_not_be_printed_is_refused(talk, role):
    with pytest.raises(InvalidInputError, match="role"):
        talk.append(role, "text")


# Messages


@given(st.permutations(range(8)))
def test_messages_come_in_turn_order_whatever_the_order_of_appending(turns):
    with Memory.open(":memory:", embedder=None) as memory:
        talk = memory.session("talk")
        for turn in turns:
            talk.append("user", f"turn {turn}", turn=turn)
        assert texts(talk) == [f"turn {turn}" for turn in range(8)]


def test_messages_without_a_turn_follow_in_the_order_of_their_time(talk, clock):
    talk.append("user", "late", created_at=NOW + timedelta(hours=1))
    talk.append("user", "early", created_at=NOW - timedelta(hours=1))
    talk.append("user", "now")
    talk.append("user", "first turn", turn=1)
    assert texts(talk) == ["first turn", "early", "now", "late"]


def test_messages_of_one_turn_keep_the_order_of_appending(talk):
    for role in ["user", "assistant", "tool"]:
        talk.append(role, role, turn=1)
    assert texts(talk) == ["user", "assistant", "tool"]


def test_the_last_messages_are_returned(talk):
    for turn in range(60):
        talk.append("user", f"{turn}", turn=turn)
    assert texts(talk, 3) == ["57", "58", "59"]
    assert len(texts(talk)) == 50
    assert texts(talk, 0) == []


def test_pages_before_a_message_cover_the_conversation_once(talk):
    for turn in range(10):
        talk.append("user", f"{turn}", turn=turn)
    talk.append("user", "no turn")
    seen, page = [], talk.messages(4)
    while page:
        seen = page + seen
        page = talk.messages(4, before=page[0])
    assert [message.text for message in seen] == [*map(str, range(10)), "no turn"]


def test_before_takes_an_id_as_well_as_a_record(talk):
    talk.append("user", "one", turn=1)
    last = talk.append("user", "two", turn=2)
    assert talk.messages(before=last.id) == talk.messages(before=last)


def test_a_page_before_what_is_no_message_of_the_session_is_refused(talk, memory):
    talk.append("user", "one", turn=1)
    other = memory.session("other", scope="user/1").append("user", "x", turn=9)
    for mark in (other, other.id, "unknown"):
        with pytest.raises(RecordNotFoundError, match="talk"):
            talk.messages(before=mark)


@pytest.mark.parametrize("limit", [-1, 1.5, "3", True])
def test_a_limit_that_is_no_count_is_refused(talk, limit):
    with pytest.raises(InvalidInputError, match="limit"):
        talk.messages(limit)


# Title and times


def test_a_session_without_a_title_has_none(talk):
    talk.append("user", "one")
    assert talk.title is None


def test_a_title_is_stored_and_stays(memory):
    memory.session("talk", title="数据库 questions")
    assert memory.session("talk").title == "数据库 questions"


def test_a_title_can_be_changed(memory):
    memory.session("talk", title="one")
    assert memory.session("talk", title="two").title == "two"


def test_a_session_knows_when_its_first_and_last_messages_were_made(talk, clock):
    talk.append("user", "first")
    clock.advance(days=1)
    talk.append("user", "last")
    assert (talk.created_at, talk.updated_at) == (NOW, NOW + timedelta(days=1))


def test_an_empty_session_has_no_times(talk):
    assert (talk.created_at, talk.updated_at) == (None, None)


def test_imported_messages_date_their_session(talk):
    talk.append("user", "old", created_at="2020-05-01")
    assert talk.created_at == talk.updated_at == datetime(2020, 5, 1, tzinfo=UTC)


# The list


def test_sessions_are_listed_with_the_last_active_first(memory, clock):
    for id in ["one", "two", "three"]:
        memory.session(id).append("user", "hello")
        clock.advance(1)
    memory.session("one").append("user", "again")
    assert names(memory.sessions()) == [("", "one"), ("", "three"), ("", "two")]


def test_sessions_are_listed_by_scope(memory):
    for scope in ["user/1", "user/1/project", "user/10", "user/2"]:
        memory.session("talk", scope=scope).append("user", "hello")
    expected = [("user/1", "talk"), ("user/1/project", "talk")]
    assert sorted(names(memory.sessions("user/1"))) == expected
    assert sorted(names(memory.scoped("user").sessions("1"))) == expected


def test_a_title_alone_makes_a_session(memory):
    memory.session("talk", title="Plans")
    assert [(session.id, session.title) for session in memory.sessions()] == [("talk", "Plans")]


def test_records_of_no_session_are_in_no_list(memory):
    memory.add("a note")
    assert memory.sessions() == []


def test_a_listed_session_can_be_continued(memory, talk):
    talk.append("user", "one", turn=1)
    (found,) = memory.scoped("user/1").sessions()
    found.append("assistant", "two", turn=2)
    assert texts(talk) == ["one", "two"]


# Delete


def test_deleting_returns_how_many_messages_there_were(talk):
    talk.append("user", "one")
    talk.append("user", "two")
    assert (talk.delete(), talk.delete()) == (2, 0)


def test_deleting_a_session_leaves_nothing_of_it(memory, clock):
    talk = memory.session("talk", title="Rockets")
    talk.append("user", "rockets fly", turn=1, id="m1")
    talk.append("user", "rockets expire", turn=2, ttl=1)
    clock.advance(2)
    talk.delete()
    assert (talk.title, talk.created_at, talk.messages(), memory.sessions()) == (None, None, [], [])
    assert (memory.get("m1"), memory.count(), memory.stats().records, memory.stats().chunks) == ([], 0, 0, 0)


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_messages_of_a_deleted_session_are_not_found(memory, talk, mode):
    talk.append("user", "rockets fly")
    kept = memory.add("rockets rest", scope="user/1")
    talk.delete()
    assert [hit.record for hit in memory.search("rockets fly", mode=mode)] == [kept]


def test_a_turn_can_be_said_again_after_deleting(talk):
    talk.append("user", "one", turn=1)
    talk.delete()
    talk.append("user", "two", turn=1)
    assert texts(talk) == ["two"]


# Scopes


def test_the_same_id_in_two_scopes_is_two_sessions(memory):
    one, two = memory.session("talk", scope="a", title="One"), memory.session("talk", scope="b", title="Two")
    one.append("user", "in a", turn=1)
    two.append("user", "in b", turn=1)
    assert (texts(one), texts(two), one.title, two.title) == (["in a"], ["in b"], "One", "Two")
    one.delete()
    assert (texts(one), texts(two), two.title) == ([], ["in b"], "Two")


def test_a_session_does_not_see_one_of_the_same_id_below_its_scope(memory):
    above, below = memory.session("talk", scope="a"), memory.session("talk", scope="a/b")
    below.append("user", "below", turn=1)
    above.append("user", "above", turn=1)
    assert (texts(above), texts(below)) == (["above"], ["below"])
    assert (above.delete(), texts(below)) == (1, ["below"])


def test_a_session_of_a_scoped_view_lies_in_the_view(memory):
    session = memory.scoped("user").session("talk", scope="1")
    assert session.append("user", "hello").scope == session.scope == "user/1"


def test_a_message_can_not_leave_the_scope_of_its_session(talk, memory):
    with pytest.raises(InvalidInputError, match="scope"):
        talk.append("user", "one", scope="other")
    assert memory.count() == 0


def test_a_limit_beyond_all_numbers_is_refused(talk):
    with pytest.raises(InvalidInputError, match="limit"):
        talk.messages(2**70)
