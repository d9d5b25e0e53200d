"""The tools understand what models send, and say what is wrong with what they can't understand."""

from __future__ import annotations

import pytest
from agents import call

from recall_core import Memory
from recall_hermes.names import memory_file


@pytest.fixture
def manager(hosts):
    manager = hosts.start()
    for number in range(4):
        call(manager, "remember", text=f"The shed has {number} windows")
    return manager


def count(answer):
    return answer["memories"].count("windows")


@pytest.mark.parametrize("limit", [2, "2", " 2 ", 2.0, "2.0"])
def test_a_number_may_be_written_in_any_way(manager, limit):
    assert count(call(manager, "search", query="How many windows has the shed?", limit=limit)) == 2


@pytest.mark.parametrize("limit", [None, ""])
def test_no_number_is_the_default(manager, limit):
    assert count(call(manager, "search", query="How many windows has the shed?", limit=limit)) == 4


@pytest.mark.parametrize("limit", [0, 21, -1, 2.5, True, False, "two", "1e400", float("nan"), 10**400, [2], {"n": 2}])
def test_what_is_no_number_of_memories_is_told(manager, limit):
    answer = call(manager, "search", query="shed", limit=limit)
    assert "it must be a whole number from 1 to 20" in answer["error"]


@pytest.mark.parametrize("query", [None, "", "  ", [], {"q": "x"}, True])
def test_what_is_no_text_is_told(manager, query):
    assert "give a text" in call(manager, "search", query=query)["error"]


def test_a_text_may_come_as_a_number(manager):
    call(manager, "remember", text="The code of the lock is 4711")
    assert "4711" in call(manager, "search", query=4711)["memories"]


@pytest.mark.parametrize(
    ("said", "restorable"), [(True, False), ("true", False), (" True ", False), ("false", True), (None, True)]
)
def test_a_choice_may_be_written_in_words(manager, home, said, restorable):
    id = call(manager, "remember", text="The wifi is called Blaumeise")["remembered"]
    assert call(manager, "forget", id=f"[{id}]", permanently=said) == {"forgotten": id, "restorable": restorable}
    manager.shutdown_all()
    with Memory.open(memory_file(home), embedder=None) as memory:
        assert [one.record.id for one in memory.deleted()] == ([id] if restorable else [])


@pytest.mark.parametrize("said", ["maybe", 1, [], "yes please"])
def test_a_choice_that_is_none_deletes_nothing(manager, said):
    id = call(manager, "remember", text="The wifi is called Blaumeise")["remembered"]
    assert "true or false" in call(manager, "forget", id=id, permanently=said)["error"]
    assert "Blaumeise" in call(manager, "search", query="wifi")["memories"]
