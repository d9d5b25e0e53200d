"""Scope and filters hold before the best are taken, on both legs: what is few among many is found, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import numpy as np
import pytest
from support import NOW, FixedClock, HashedEmbedder

from recall_core import Memory

MODES = ["hybrid", "keyword", "semantic"]
FUSIONS = ["default", "rrf", "plain"]
EARLY = NOW - timedelta(days=100)

# Each of these selects the five and none of the two thousand.
SELECTIONS = {
    "scope": {"scope": "few"},
    "where": {"where": {"k": 5}},
    "where on a field": {"where": {"@kind": "rare"}},
    "session": {"session": "few"},
    "roles": {"roles": ["critic"]},
    "tags": {"tags": ["rare"]},
    "since": {"since": NOW - timedelta(minutes=1)},
    "until": {"until": EARLY + timedelta(minutes=1), "where": {"k": 6}},
}


@pytest.fixture(scope="module")
def crowd():
    """2,000 records, all more alike to the question than the five (and five) that are asked for."""
    with Memory.open(":memory:", embedder=HashedEmbedder(16), clock=FixedClock()) as memory:
        memory.add_many(
            {
                "text": f"docker deploys {number}",
                "scope": "many",
                "session": "many",
                "role": "user",
                "tags": ["common"],
                "metadata": {"k": 1},
                "created_at": EARLY + timedelta(hours=1, minutes=number),
            }
            for number in range(2000)
        )
        memory.add_many(
            {
                "text": f"once upon a time and in another place we said that docker deploys, number {number}",
                "id": f"few-{number}",
                "scope": "few/below" if number % 2 else "few",
                "session": "few",
                "role": "critic",
                "kind": "rare",
                "tags": ["other", "rare"],
                "metadata": {"k": 5},
            }
            for number in range(5)
        )
        memory.add_many(
            {
                "text": f"long ago docker deploys {number}",
                "id": f"old-{number}",
                "metadata": {"k": 6},
                "created_at": EARLY,
            }
            for number in range(5)
        )
        yield memory


def ids(hits) -> list[str]:
    return [hit.record.id for hit in hits]


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SELECTIONS)
def test_few_are_found_among_many(crowd, name, mode, fusion):
    hits = crowd.search("docker deploys 77", mode=mode, fusion=fusion, limit=5, candidates=5, **SELECTIONS[name])
    assert sorted(ids(hits)) == [f"{'old' if name == 'until' else 'few'}-{number}" for number in range(5)]


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("mode", MODES)
def test_nothing_else_fills_the_list_up(crowd, mode, fusion):
    hits = crowd.search("docker deploys 77", mode=mode, fusion=fusion, limit=100, scope="few")
    assert sorted(ids(hits)) == [f"few-{number}" for number in range(5)]


@pytest.mark.parametrize("mode", MODES)
def test_a_view_sees_its_scope_alone(crowd, mode):
    hits = crowd.scoped("few").search("docker deploys 77", mode=mode, limit=100)
    assert sorted(ids(hits)) == [f"few-{number}" for number in range(5)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("names", [("roles", ()), ("tags", ())])
def test_an_empty_list_of_roles_or_tags_selects_nothing(crowd, mode, names):
    name, value = names
    assert ids(crowd.search("docker deploys", mode=mode, **{name: value})) == []


@pytest.mark.parametrize("mode", MODES)
def test_selections_hold_together(crowd, mode):
    hits = crowd.search("docker deploys", mode=mode, scope="few/below", tags=["rare", "unheard"], session="few")
    assert sorted(ids(hits)) == ["few-1", "few-3"]
    assert ids(crowd.search("docker deploys", mode=mode, scope="few", tags=["common"])) == []


@pytest.mark.parametrize("mode", MODES)
def test_since_is_included_and_until_is_not(clock, mode):
    with Memory.open(":memory:", embedder=HashedEmbedder(16), clock=clock) as memory:
        for minute in range(4):
            memory.add("docker deploys", id=str(minute), created_at=NOW + timedelta(minutes=minute))
        since, until = NOW + timedelta(minutes=1), NOW + timedelta(minutes=3)
        assert sorted(ids(memory.search("docker", mode=mode, since=since, until=until))) == ["1", "2"]


# The memory as of another time


@pytest.mark.parametrize("mode", MODES)
def test_now_says_what_has_expired_and_how_old_the_rest_is(clock, mode):
    with Memory.open(":memory:", embedder=HashedEmbedder(16), clock=clock) as memory:
        memory.add("docker deploys", id="short", ttl=60)
        memory.add("docker deploys", id="long", ttl=timedelta(days=90))
        memory.add("docker deploys", id="ever")
        at = {days: memory.search("docker", mode=mode, now=NOW + timedelta(days=days)) for days in (0, 30, 365)}
        assert {days: sorted(ids(hits)) for days, hits in at.items()} == {
            0: ["ever", "long", "short"],
            30: ["ever", "long"],
            365: ["ever"],
        }
        assert [hit.why.decay for hit in at[30]] == pytest.approx([0.5, 0.5])


def test_a_search_as_of_another_time_leaves_no_trace(clock):
    def fill():
        memory = Memory.open(":memory:", embedder=HashedEmbedder(), clock=clock)
        for number in range(30):
            memory.add(f"docker note {number} about {number * number}", id=str(number), ttl=100)
        memory.add("the cat sat", id="cat")
        return memory

    def look(memory):
        return [(hit.record.id, hit.score) for hit in memory.search("docker note 3")]

    with fill() as fresh, fill() as used:
        used.search("docker", now=NOW + timedelta(days=1))
        assert look(used) == look(fresh)


# Neighbours in a session


def add_talk(memory, session="talk", scope="", **last):
    """A question that matches, its answer that shares no word with it, and what may not be seen, next to each other."""
    memory.add(
        "when do we deploy the rockets", scope=scope, session=session, turn=1, role="user", id=f"{scope}{session}1"
    )
    memory.add("每周五下午", scope=scope, session=session, turn=2, role="assistant", id=f"{scope}{session}2", **last)


@pytest.fixture
def keywords(clock):
    with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        yield memory


def test_an_answer_is_found_by_the_question_before_it(keywords):
    add_talk(keywords)
    keywords.add("随便说说", session="other", turn=1)
    hits = keywords.search("deploy rockets")
    assert ids(hits) == ["talk1", "talk2"]
    assert hits[1].why.context > 0
    assert hits[1].why.bm25 is None


def test_neighbours_are_of_the_same_session_only(keywords):
    add_talk(keywords, "talk")
    keywords.add("第二天", session="another", turn=2, id="stranger")
    keywords.add("没有会话", id="alone")
    assert ids(keywords.search("deploy rockets")) == ["talk1", "talk2"]


def test_a_session_of_the_same_name_in_another_scope_is_another_session(keywords):
    add_talk(keywords, scope="a")
    keywords.add("另一个人说的", scope="b", session="talk", turn=2, id="stranger")
    assert ids(keywords.search("deploy rockets")) == ["atalk1", "atalk2"]
    assert ids(keywords.search("deploy rockets", scope="b")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"roles": ["user"]},
        {"tags": ["kept"]},
        {"where": {"k": 1}},
        {"until": NOW + timedelta(seconds=1)},
        {"scope": "x"},
    ],
    ids=["roles", "tags", "where", "until", "scope"],
)
def test_a_neighbour_that_the_selection_leaves_out_is_not_shown_and_says_nothing(clock, arguments):
    said = [search_beside(text, clock, arguments) for text in ("rockets rockets", "rockets turtles")]
    assert [ids(hits) for hits in said] == [["1"], ["1"]]
    assert said[0][0].why == said[1][0].why


def search_beside(text, clock, arguments):
    """Search a file in which a record that is selected stands beside one that is not and has this text."""
    with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        memory.add(
            "when do we deploy", session="s", scope="x", turn=1, role="user", tags=["kept"], metadata={"k": 1}, id="1"
        )
        later = NOW + timedelta(hours=1)
        scope = "y" if "scope" in arguments else "x"
        memory.add(text, session="s", scope=scope, turn=2, role="assistant", id="2", created_at=later)
        return memory.search("deploy rockets", **arguments)


def test_a_record_alone_in_its_session_has_no_context(keywords):
    keywords.add("when do we deploy the rockets", session="s")
    assert keywords.search("deploy rockets")[0].why.context == pytest.approx(0, abs=1e-7)


def test_an_expired_neighbour_adds_nothing(keywords, clock):
    add_talk(keywords, ttl=60)
    clock.advance(60)
    assert keywords.search("deploy rockets")[0].why.context == pytest.approx(0, abs=1e-7)


def test_an_expired_neighbour_is_not_shown(keywords, clock):
    add_talk(keywords, ttl=60)
    assert ids(keywords.search("deploy rockets")) == ["talk1", "talk2"]
    clock.advance(60)
    assert ids(keywords.search("deploy rockets")) == ["talk1"]


@pytest.mark.parametrize("fusion", ["rrf", "plain"])
def test_other_fusions_take_no_neighbours(keywords, fusion):
    add_talk(keywords)
    assert ids(keywords.search("deploy rockets", fusion=fusion)) == ["talk1"]


# Large files


@pytest.fixture(scope="module")
def large():
    """More vectors than are compared one by one, in two scopes; one direction is wide."""
    random = Random(3)
    vectors = [[random.gauss(2, 10), *(random.gauss(2, 1) for _ in range(15))] for _ in range(5600)]
    with Memory.open(":memory:", embedder=HashedEmbedder(16), clock=FixedClock()) as memory:
        memory.add_many(
            {"text": "x", "id": f"{number:04}", "scope": "big" if number >= 300 else "small", "vector": vector}
            for number, vector in enumerate(vectors)
        )
        yield memory, vectors


def highest_cosines(vectors, query, count):
    units = np.array(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)
    return sorted(units @ (np.array(query) / np.linalg.norm(query)), reverse=True)[:count]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_a_large_scope_is_searched_alone_too(large, fusion):
    memory, vectors = large
    hits = memory.search("", mode="semantic", fusion=fusion, vector=vectors[7], scope="big", limit=50)
    assert len(hits) == 50
    assert all(hit.record.scope == "big" for hit in hits)


def test_plain_fusion_gives_the_nearest_by_cosine_in_a_large_scope(large):
    memory, vectors = large
    for query in np.random.default_rng(5).normal(size=(10, 16)).tolist():
        hits = memory.search("", mode="semantic", fusion="plain", vector=query, scope="big", limit=20)
        found = [hit.why.similarity for hit in hits]
        assert found == pytest.approx(highest_cosines(vectors[300:], query, 20), abs=1e-6)


def test_a_large_limit_is_reached_in_a_large_scope(large):
    memory, vectors = large
    assert len(memory.search("", mode="semantic", vector=vectors[7], limit=1000)) == 1000
