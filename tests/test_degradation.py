"""When the vectors can't be searched, keywords answer and the result says so; once they can again, it is as before."""

from __future__ import annotations

import logging
from math import isfinite

import numpy as np
import pytest
from support import HashedEmbedder

from recall_core import Memory, Settings
from recall_core.errors import VectorError

TEXTS = {"deploy": "docker compose deploys the services", "cat": "the cat sat on the mat", "disk": "磁盘满了先清理日志"}
MODES = ["hybrid", "semantic"]
FUSIONS = ["default", "rrf", "plain"]


class FailingEmbedder(HashedEmbedder):
    """Embeds until it is told to fail: `failure` turns the vectors into what it returns or raises."""

    failure = None

    def embed_queries(self, texts):
        vectors = super().embed_queries(texts)
        return vectors if self.failure is None else self.failure(vectors)


def refuse(vectors):
    raise ConnectionError("the model is not loaded")


FAILURES = {
    "raises": refuse,
    "NaN": lambda vectors: vectors * np.nan,
    "infinity": lambda vectors: vectors + np.inf,
    "zeros": lambda vectors: vectors * 0,
    "too short": lambda vectors: vectors[:, :3],
    "too few": lambda vectors: vectors[:0],
    "flat": lambda vectors: vectors.ravel(),
    "nothing": lambda vectors: None,
    "text": lambda vectors: "vectors",
}


def fill(memory):
    memory.add_many({"text": text, "id": id} for id, text in TEXTS.items())
    return memory


@pytest.fixture
def embedder():
    return FailingEmbedder()


@pytest.fixture
def memory(embedder, clock):
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        yield fill(memory)


def ids(hits) -> list[str]:
    return [hit.record.id for hit in hits]


def look(hits):
    return hits.mode, hits.degraded, [(hit.record.id, hit.score, hit.relevance, hit.why) for hit in hits]


# An embedder that fails on the query


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_failing_embedder_leaves_keyword_search(memory, embedder, failure, mode):
    embedder.failure = failure
    hits = memory.search("docker services", mode=mode)
    assert (ids(hits), hits.mode) == (["deploy"], "keyword")
    assert hits.degraded.startswith("found by keywords only: ")
    assert [hit.why.vector_rank for hit in hits] == [None]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_degraded_results_are_those_of_keyword_search(memory, embedder, fusion):
    keyword = memory.search("docker 日志", mode="keyword", fusion=fusion)
    embedder.failure = refuse
    for mode in MODES:
        assert look(memory.search("docker 日志", mode=mode, fusion=fusion))[2] == look(keyword)[2]


def test_the_reason_names_what_the_embedder_raised(memory, embedder):
    embedder.failure = refuse
    assert "ConnectionError: the model is not loaded" in memory.search("docker").degraded


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_an_embedder_that_works_again_is_used_again(memory, embedder, failure):
    before = look(memory.search("docker services"))
    embedder.failure = failure
    memory.search("docker services")
    embedder.failure = None
    assert look(memory.search("docker services")) == before
    assert before[:2] == ("hybrid", None)


def test_keyword_search_asked_for_is_not_degraded(memory, embedder):
    embedder.failure = refuse
    hits = memory.search("docker", mode="keyword")
    assert (ids(hits), hits.mode, hits.degraded) == (["deploy"], "keyword", None)


def test_a_query_that_finds_nothing_says_that_it_was_degraded(memory, embedder):
    embedder.failure = refuse
    hits = memory.search("bananas", mode="semantic")
    assert (ids(hits), hits.mode) == ([], "keyword")
    assert hits.degraded


def test_thresholds_of_relevance_hold_in_a_degraded_search(memory, embedder):
    embedder.failure = refuse
    assert ids(memory.search("docker", min_relevance=1.0)) == []


def test_a_query_vector_of_the_callers_own_needs_no_embedder(memory, embedder):
    vector = embedder.embed_queries(["docker services"])[0]
    embedder.failure = refuse
    hits = memory.search("docker services", vector=vector)
    assert (ids(hits)[0], hits.mode, hits.degraded) == ("deploy", "hybrid", None)


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_a_query_vector_of_the_wrong_size_is_refused_rather_than_left_out(memory, mode):
    with pytest.raises(VectorError, match="64"):
        memory.search("docker", vector=[1.0, 0.0], mode=mode)


class LeaningEmbedder(FailingEmbedder):
    """Offers typical vectors, too."""

    means = None

    def language_mean(self, language, kind):
        if self.means is None:
            raise FileNotFoundError("the means are missing")
        return np.full(self.means, np.nan, np.float32)


@pytest.mark.parametrize("means", [None, 3, 64], ids=["raises", "too short", "NaN"])
@pytest.mark.parametrize("mode", MODES)
def test_typical_vectors_that_fail_are_done_without(clock, mode, means):
    embedder = LeaningEmbedder()
    embedder.means = means
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        hits = fill(memory).search("docker services", mode=mode)
        assert (ids(hits)[0], hits.mode, hits.degraded) == ("deploy", mode, None)
        assert all(isfinite(hit.score) for hit in hits)


# What is told of it


def test_the_last_cause_and_its_time_are_in_the_statistics_until_a_search_works_again(memory, embedder, clock):
    assert (memory.stats().degraded, memory.stats().degraded_at) == (None, None)
    embedder.failure = refuse
    memory.search("docker")
    clock.advance(60)
    hits = memory.search("docker services")
    stats = memory.stats()
    assert (stats.degraded, stats.degraded_at.timestamp()) == (hits.degraded, clock())
    embedder.failure = None
    memory.search("docker services")
    assert (memory.stats().degraded, memory.stats().degraded_at) == (None, None)


def test_a_cause_is_logged_once_and_not_with_every_search(memory, embedder, caplog):
    caplog.set_level(logging.INFO)
    embedder.failure = refuse
    for number in range(20):
        memory.search(f"docker {number}")
    assert [message for message in caplog.messages if "found by keywords only" in message] == [
        f"{memory.stats().path}: {memory.search('docker').degraded}"
    ]
    embedder.failure = None
    memory.search("docker works")
    assert "memories are found by meaning again" in caplog.text


def test_searches_by_keyword_and_with_a_vector_tell_nothing_of_the_embedder(memory, embedder):
    embedder.failure = refuse
    memory.search("docker")
    cause = memory.stats().degraded
    memory.search("docker", mode="keyword")
    memory.search("docker", vector=[1.0] * 64)
    assert memory.stats().degraded == cause


def test_a_query_that_was_asked_before_is_answered_by_meaning_though_the_embedder_fails(memory, embedder):
    before = look(memory.search("docker services"))
    embedder.failure = refuse
    assert look(memory.search("docker services")) == before


def test_memories_that_all_wait_for_a_vector_are_a_cause_until_they_have_it(clock):
    embedder = Refusing()
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        hits = fill(memory).search("docker services")
        assert (memory.stats().degraded, hits.mode) == (hits.degraded, "keyword")
        embedder.refuses = False
        memory.flush()
        memory.search("docker services")
        assert memory.stats().degraded is None


# Floors


def test_a_floor_holds_for_the_models_that_it_is_meant_for(clock):
    settings = Settings(similarity_floors=(("Ark-Model", 0.99),))
    found = {}
    for model in ("ark-model-7 (query: )", "another"):
        embedder = HashedEmbedder(model_id=model)
        with Memory.open(":memory:", embedder=embedder, clock=clock, settings=settings) as memory:
            fill(memory)
            found[model] = ids(memory.search("docker", mode="semantic"))
            assert ids(memory.search(TEXTS["cat"], mode="semantic"))[0] == "cat"
            assert len(memory.search("docker", mode="semantic", min_similarity=-1.0)) == 3
    assert [len(hits) for hits in found.values()] == [0, 3]


# No embedder


@pytest.mark.parametrize("mode", MODES)
def test_without_an_embedder_keywords_answer(clock, mode):
    with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        hits = fill(memory).search("docker services", mode=mode)
        assert (ids(hits), hits.mode) == (["deploy"], "keyword")
        assert hits.degraded


def test_a_file_with_vectors_opened_without_an_embedder_says_why(db_path, clock):
    with Memory.open(db_path, embedder=HashedEmbedder(), clock=clock) as memory:
        fill(memory)
    with Memory.open(db_path, embedder=None, clock=clock) as memory:
        hits = memory.search("docker")
        assert (ids(hits), hits.mode) == (["deploy"], "keyword")
        assert "without an embedder" in hits.degraded
    with Memory.open(db_path, embedder=HashedEmbedder(), clock=clock) as memory:
        assert memory.search("docker").degraded is None


def test_a_file_without_vectors_opened_without_an_embedder_says_why(clock):
    with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        assert "without an embedder" in fill(memory).search("docker").degraded


def test_a_search_in_a_new_memory_is_not_degraded(clock):
    with Memory.open(":memory:", embedder=HashedEmbedder(), clock=clock) as memory:
        hits = memory.search("docker")
        assert (ids(hits), hits.mode, hits.degraded) == ([], "hybrid", None)


# Spaces


def test_a_space_of_a_host_can_only_be_searched_with_a_vector(memory):
    memory.add("docker in a host's space", id="host", vector=[1.0, 0.0, 0.0], space="host")
    hits = memory.search("docker", space="host")
    assert hits.mode == "keyword"
    assert "vector=" in hits.degraded
    hits = memory.search("docker", space="host", vector=[0.9, 0.1, 0.0], mode="semantic")
    assert (ids(hits), hits.mode, hits.degraded) == (["host"], "semantic", None)


def test_a_space_that_is_not_there_is_named(memory):
    hits = memory.search("docker", space="unheard of", vector=[1.0, 0.0])
    assert (ids(hits), hits.mode) == (["deploy"], "keyword")
    assert "'unheard of'" in hits.degraded


def test_memories_of_another_space_are_found_by_keyword_alone(memory):
    memory.add("docker in a host's space", id="host", vector=[1.0, 0.0, 0.0], space="host")
    found = {hit.record.id: hit.why for hit in memory.search("docker", space="host", vector=[1, 0, 0])}
    assert (found["deploy"].vector_rank, found["deploy"].keyword_rank is None) == (None, False)
    assert found["host"].vector_rank == 1


# Memories without a vector


class Refusing(HashedEmbedder):
    """Embeds no passages until it is told to."""

    refuses = True

    def embed_passages(self, texts):
        if self.refuses:
            raise ConnectionError("the model is not loaded")
        return super().embed_passages(texts)


@pytest.mark.parametrize("mode", MODES)
def test_memories_that_could_not_be_embedded_are_found_by_keyword_and_say_so(clock, mode):
    embedder = Refusing()
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        hits = fill(memory).search("docker services", mode=mode)
        assert (ids(hits), hits.mode) == (["deploy"], "keyword")
        assert hits.degraded


def test_a_search_by_meaning_says_that_some_memories_have_no_vector(clock):
    embedder = Refusing()
    embedder.refuses = False
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        memory.add("a first memory")
        embedder.refuses = True
        fill(memory)
        assert memory.stats().pending == 3
        hits = memory.search("docker services", mode="semantic")
        assert len(hits) == 1
        assert hits.degraded


def test_once_embedded_they_are_found_by_meaning(clock):
    embedder = Refusing()
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        fill(memory)
        embedder.refuses = False
        clock.advance(3600)
        assert memory.flush() == 0
        hits = memory.search("docker services", mode="semantic")
        assert (sorted(ids(hits)), hits.mode, hits.degraded) == (sorted(TEXTS), "semantic", None)


def test_what_has_no_vector_yet_is_judged_by_its_words(db_path):
    with Memory.open(db_path, embedder=HashedEmbedder(64)) as memory:
        memory.add_many({"text": f"note {number} on rockets and tea"} for number in range(40))
    with Memory.open(db_path, embedder=None) as memory:
        memory.add("the licence of the turbine expires in March", id="new")
        alone = memory.search("licence of the turbine", mode="keyword")[0]
    waits = Settings(backfill_interval=float("inf"), embedding="background")
    with Memory.open(db_path, embedder=HashedEmbedder(64), settings=waits) as memory:
        hit = memory.search("licence of the turbine")[0]
    assert hit.record.id == alone.record.id == "new"
    assert hit.relevance > 0.8


def test_semantic_search_of_a_large_scope_without_vectors_is_answered_by_keywords(monkeypatch):
    monkeypatch.setattr("recall_core.scope_cache.MOST_CHUNKS", 0)
    with Memory.open(":memory:", embedder=None) as memory:
        memory._engine.searcher._legs._cache._most = 0
        memory.add("Rockets fly")
        found = memory.search("rockets", mode="semantic")
        assert [hit.record.text for hit in found] == ["Rockets fly"]
        assert found.mode == "keyword"
        assert found.degraded
