"""A query that is asked again is not embedded again, for a while."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from support import LIMIT, FixedClock, HashedEmbedder, wait_until

from recall_core import Memory, Settings
from recall_core.query_cache import QueryCache


class Maker:
    """Makes vectors of a text's length, and notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts):
        self.asked.extend(texts)
        return np.array([[len(text), 1.0] for text in texts], np.float32)


@pytest.fixture
def make():
    return Maker()


@pytest.fixture
def cache(clock):
    return QueryCache(3, 60.0, clock)


def test_a_vector_is_made_once(cache, make):
    first = cache.embed("m", ["one", "three"], make)
    again = cache.embed("m", ["three", "one", "three"], make)
    assert make.asked == ["one", "three"]
    assert first[:, 0].tolist() == [3, 5]
    assert again[:, 0].tolist() == [5, 3, 5]
    assert cache.counts == (2, 2)


def test_vectors_of_another_model_are_others(cache, make):
    cache.embed("m", ["one"], make)
    cache.embed("other", ["one"], make)
    assert make.asked == ["one", "one"]


def test_the_least_recently_used_vector_goes_first(cache, make):
    for text in ("a", "b", "c", "a", "d"):
        cache.embed("m", [text], make)
    cache.embed("m", ["a", "c", "d"], make)
    assert make.asked == ["a", "b", "c", "d"]
    cache.embed("m", ["b"], make)
    assert make.asked[-1] == "b"


def test_a_vector_is_kept_for_its_time(cache, make, clock):
    cache.embed("m", ["one"], make)
    clock.advance(59)
    cache.embed("m", ["one"], make)
    assert len(make.asked) == 1
    clock.advance(1)
    cache.embed("m", ["one"], make)
    assert len(make.asked) == 2


def test_a_clock_that_was_set_back_keeps_nothing_for_longer(cache, make, clock):
    cache.embed("m", ["one"], make)
    clock.advance(days=-1)
    cache.embed("m", ["one"], make)
    assert len(make.asked) == 2


def test_a_size_of_zero_keeps_nothing(make, clock):
    cache = QueryCache(0, 60.0, clock)
    cache.embed("m", ["one"], make)
    cache.embed("m", ["one"], make)
    assert len(make.asked) == 2


def test_more_texts_than_the_size_are_no_harm(cache, make):
    assert cache.embed("m", list("abcdef"), make).shape == (6, 2)


def test_what_a_caller_does_to_a_vector_does_not_spoil_the_kept_one(cache, make):
    cache.embed("m", ["one"], make)[:] = 0
    assert cache.embed("m", ["one"], make)[0, 0] == 3


def test_a_failure_is_not_kept(cache, make):
    with pytest.raises(ZeroDivisionError):
        cache.embed("m", ["one"], lambda texts: 1 / 0)
    cache.embed("m", ["one"], make)
    assert make.asked == ["one"]


def test_threads_that_ask_the_same_at_once_have_it_embedded_once(cache, make):
    begun, may = threading.Event(), threading.Event()
    seen = []

    def slowly(texts):
        begun.set()
        assert may.wait(LIMIT)
        return make(texts)

    def ask():
        seen.append(cache.embed("m", ["one"], slowly)[0, 0])

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert begun.wait(LIMIT)
    wait_until(lambda: sum(cache.counts) == 5)
    may.set()
    for thread in threads:
        thread.join()
    assert (seen, make.asked, cache.counts) == ([3.0] * 5, ["one"], (4, 1))


def test_a_failure_reaches_all_threads_that_wait(cache):
    begun, may = threading.Event(), threading.Event()
    seen = []

    def fail(texts):
        begun.set()
        assert may.wait(LIMIT)
        raise ConnectionError("down")

    def ask():
        try:
            cache.embed("m", ["one"], fail)
        except ConnectionError as error:
            seen.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert begun.wait(LIMIT)
    wait_until(lambda: sum(cache.counts) == 3)
    may.set()
    for thread in threads:
        thread.join()
    assert seen == ["down"] * 3


# In a memory


def test_a_search_that_is_repeated_embeds_its_query_once(clock):
    embedder = HashedEmbedder()
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        memory.add("Rockets fly")
        hits = memory.search("Do rockets fly")
        memory.add("Turtles swim")
        again = memory.search("Do rockets fly", limit=1)
        assert (embedder.queries, again[0].record) == (["Do rockets fly"], hits[0].record)
        assert (memory.stats().query_hits, memory.stats().query_misses) == (1, 1)
        clock.advance(1800)
        memory.search("Do rockets fly")
        assert len(embedder.queries) == 2


def test_the_settings_say_how_much_is_kept(clock):
    embedder = HashedEmbedder()
    with Memory.open(":memory:", embedder=embedder, settings=Settings(query_cache_size=0)) as memory:
        memory.add("Rockets fly")
        memory.search("rockets")
        memory.search("rockets")
    assert len(embedder.queries) == 2
    embedder = HashedEmbedder()
    clock = FixedClock()
    with Memory.open(":memory:", embedder=embedder, settings=Settings(query_cache_ttl=10), clock=clock) as memory:
        memory.add("Rockets fly")
        memory.search("rockets")
        clock.advance(10)
        memory.search("rockets")
    assert len(embedder.queries) == 2
