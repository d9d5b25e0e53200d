"""What was deleted, moved or has expired is found no more; the order of storing does not matter."""

from __future__ import annotations

import contextlib
import threading
from random import Random

import pytest
from scope_support import (
    ALL,
    FUSIONS,
    MODES,
    QUERY,
    assert_alike,
    fill,
    ids,
    look,
    make_records,
    open_memory,
    order,
)

from recall_core.scope_cache import ScopeCache


@pytest.fixture
def memory(db_path, clock):
    with open_memory(db_path, clock) as memory:
        yield memory


@pytest.fixture
def store(memory):
    return memory._engine.store


# Deleted, expired and moved records


GONE = {
    "deleted": lambda memory, clock: memory.delete("gone"),
    "moved": lambda memory, clock: memory.update("gone", scope="b"),
    "expired": lambda memory, clock: (memory.update("gone", ttl=60), clock.advance(61)),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("added", ["before the first search", "after it"])
@pytest.mark.parametrize("way", GONE)
def test_what_is_gone_is_found_no_more(memory, clock, way, added, mode):
    fill(memory, {"a": 40})
    if added == "after it":
        memory.search("docker", scope="a", mode=mode)
    memory.add("docker is gone", id="gone", scope="a")
    assert "gone" in ids(memory.search("docker", scope="a", mode=mode, limit=ALL))
    GONE[way](memory, clock)
    hits = ids(memory.search("docker", scope="a", mode=mode, limit=ALL))
    assert sorted(hits) == sorted(f"a{number}" for number in range(40))


def test_what_is_gone_says_nothing_to_its_neighbours_any_more(memory):
    fill(memory, {"a": 40})
    memory.add("turtles", id="quiet", scope="a", session="talk", turn=1)
    memory.search("docker", scope="a")
    memory.add("docker docker", id="loud", scope="a", session="talk", turn=2)
    assert "quiet" in ids(memory.search("docker", scope="a", mode="keyword", limit=ALL))
    memory.delete("loud")
    assert "quiet" not in ids(memory.search("docker", scope="a", mode="keyword", limit=ALL))


def test_a_deleted_record_counts_no_more(memory, db_path):
    fill(memory, {"a": 40})
    memory.search("rockets", scope="a", mode="keyword")
    for number in range(3):
        memory.add("rockets rockets rockets", id=f"new{number}", scope="a")
    memory.search("rockets", scope="a", mode="keyword")
    memory.delete(["new0", "new1"])
    with open_memory(db_path) as fresh:
        (hit,), (expected,) = (one.search("rockets", scope="a", mode="keyword") for one in (memory, fresh))
    assert (hit.score, hit.why.bm25) == pytest.approx((expected.score, expected.why.bm25))


def test_who_is_gone_is_no_speaker_that_a_question_may_name(memory, db_path):
    fill(memory, {"a": 40})
    memory.add("turtles", scope="a", session="talk", role="Anna", turn=1)
    memory.add("docker", scope="a", session="talk", role="Bob", turn=2, id="bob")
    memory.search("docker", scope="a")
    memory.update("bob", role="user")
    with open_memory(db_path) as fresh:
        found = [
            {
                hit.record.id: hit.score
                for hit in one.search("what did Anna tell Bob of turtles", scope="a", mode="keyword")
            }
            for one in (memory, fresh)
        ]
    assert found[0] == pytest.approx(found[1])


# Threads


def test_searches_beside_a_writer_never_fail_nor_find_what_was_deleted(memory):
    fill(memory, {"a": 60, "b": 20})
    gone, faults = set(), []
    done = threading.Event()

    def search(mode):
        try:
            while not done.is_set():
                deleted = set(gone)
                for scope in ("a", ""):
                    hits = memory.search("docker turtles", scope=scope, mode=mode, limit=ALL)
                    assert deleted.isdisjoint(ids(hits))
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=search, args=(mode,)) for mode in ("hybrid", "keyword")]
    for thread in threads:
        thread.start()
    try:
        for number in range(60):
            memory.add(f"docker turtles {number}", id=f"new{number}", scope="a", session="talk", turn=number)
            memory.update(f"a{number}", text=f"docker changed {number}")
            memory.delete([f"new{number}", f"a{number}"][: 1 + number % 2])
            gone.update([f"new{number}", f"a{number}"][: 1 + number % 2])
            if number % 20 == 0:
                memory.flush()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert faults == []


# The order in which a file was filled


@pytest.fixture(scope="module")
def shuffled():
    """Memories of the same records, stored in several orders, one of them one by one and with detours."""
    records = make_records(60)
    records += [{**record, "id": f"copy of {record['id']}"} for record in records[:5]]  # the same text and time
    with contextlib.ExitStack() as stack:
        memories = []
        for seed in range(4):
            mixed = [*records]
            Random(seed).shuffle(mixed)
            memory = stack.enter_context(open_memory(":memory:"))
            if seed == 3:
                add_with_detours(memory, mixed)
            else:
                memory.add_many(mixed)
            memory.flush()
            memories.append(memory)
        yield memories


def add_with_detours(memory, records):
    """Store records one by one, with searches, changes and deletions in between."""
    for number, record in enumerate(records):
        memory.add("docker once", id="once", scope="a")
        memory.add(**{**record, "text": "turtles, at first"})
        if number % 9 == 0:
            memory.search(QUERY)
        memory.update(record["id"], text=record["text"])
        memory.delete("once")


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("mode", MODES)
def test_the_order_of_insertion_does_not_matter(shuffled, mode, fusion):
    first, *others = shuffled
    for other in others:
        assert order(other, mode, fusion) == order(first, mode, fusion)
        assert_alike(look(other, mode, fusion), look(first, mode, fusion))


@pytest.mark.parametrize("arguments", [{"recency": 0.3}, {"diversify": 0.5}, {"session": "talk"}], ids=str)
def test_the_order_of_insertion_does_not_matter_to_what_follows(shuffled, arguments):
    first, *others = (ids(memory.search(QUERY, limit=20, **arguments)) for memory in shuffled)
    assert all(other == first for other in others)


# Large scopes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["docker deploys", "turtles", "喝茶", "rockets on Fridays"])
def test_the_best_of_a_large_scope_are_those_of_a_held_one(mode, query):
    with open_memory(":memory:") as held, open_memory(":memory:") as large:
        for memory in (held, large):
            memory.add_many(make_records(60))
        large._engine.searcher._legs._cache = ScopeCache(large._engine.store, most_chunks=10)
        found, expected = (ids(memory.search(query, mode=mode, limit=5)) for memory in (large, held))
    assert found == expected
