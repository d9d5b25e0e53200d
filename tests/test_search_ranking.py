"""The order of the results: how the legs are fused, what is newer, what repeats, what a question inside a text asks."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from support import NOW, HashedEmbedder

from recall_core import Memory, Settings

MODES = ["hybrid", "keyword", "semantic"]
FUSIONS = ["default", "rrf", "plain"]


def open_memory(clock, settings=None, embedder=None) -> Memory:
    return Memory.open(":memory:", embedder=embedder or HashedEmbedder(), settings=settings, clock=clock)


@pytest.fixture
def memory(clock):
    with open_memory(clock) as memory:
        yield memory


@pytest.fixture
def notes(memory):
    memory.add_many(
        {"text": text, "id": str(number)}
        for number, text in enumerate(
            [
                "docker compose deploys the services",
                "docker docker docker",
                "the services are deployed on Fridays, and nobody knows why docker is asked for",
                "硬盘快满的时候先清理日志",
                "deployment by hand is not allowed",
                "composed music on the radio",
            ]
        )
    )
    return memory


def ids(hits) -> list[str]:
    return [hit.record.id for hit in hits]


# Reciprocal rank fusion


@pytest.mark.parametrize("k", [60, 1])
def test_rrf_scores_are_those_computed_by_hand(clock, k):
    with open_memory(clock, Settings(rrf_k=k), HashedEmbedder(3)) as memory:
        memory.add("docker docker", id="1", vector=[0, 0, 1])
        memory.add("docker and many other words beside it", id="2", vector=[1, 1, 1])
        memory.add("nothing of the kind", id="3", vector=[1, 0.2, 0])
        hits = memory.search("docker", fusion="rrf", vector=[1, 0, -0.5])
    assert [(hit.record.id, hit.why.keyword_rank, hit.why.vector_rank) for hit in hits] == [
        ("1", 1, 3),
        ("2", 2, 2),
        ("3", None, 1),
    ]
    assert [hit.score for hit in hits] == pytest.approx(
        [1 / (k + 1) + 1 / (k + 3), 1 / (k + 2) + 1 / (k + 2), 1 / (k + 1)]
    )


def test_rrf_of_one_leg_keeps_its_order(notes):
    for mode in ("keyword", "semantic"):
        hits = notes.search("docker services", mode=mode, fusion="rrf")
        assert [getattr(hit.why, "keyword_rank" if mode == "keyword" else "vector_rank") for hit in hits] == list(
            range(1, len(hits) + 1)
        )


# Plain


def test_plain_with_alpha_1_is_the_order_of_the_raw_cosine(notes):
    hits = notes.search("docker services", fusion="plain", alpha=1)
    query = HashedEmbedder().embed_queries(["docker services"])[0]
    cosines = HashedEmbedder().embed_passages([hit.record.text for hit in hits]) @ query
    assert [hit.score for hit in hits] == pytest.approx(cosines.tolist(), abs=1e-6)
    assert np.all(np.diff(cosines) <= 1e-6)
    assert len(hits) == 6


def test_plain_with_alpha_0_is_bm25(notes):
    hits = notes.search("docker services", fusion="plain", alpha=0)
    assert [hit.score for hit in hits] == [hit.why.bm25 for hit in hits]
    assert ids(hits) == ids(notes.search("docker services", mode="keyword", fusion="plain"))


def test_plain_in_between_is_the_weighted_sum(notes):
    for hit in notes.search("docker services", fusion="plain", alpha=0.7):
        assert hit.score == pytest.approx(0.7 * hit.why.similarity + 0.3 * (hit.why.coverage or 0), abs=1e-6)


@pytest.mark.parametrize("alpha", [0, 0.3, 1])
def test_plain_semantic_search_is_the_cosine_whatever_alpha(notes, alpha):
    hits = notes.search("docker", mode="semantic", fusion="plain", alpha=alpha)
    assert [hit.score for hit in hits] == pytest.approx([hit.why.similarity for hit in hits], abs=1e-6)


# Alpha in the default ranking


def test_alpha_1_orders_by_meaning_and_alpha_0_by_keyword(notes):
    assert ids(notes.search("docker services", alpha=1)) == ids(notes.search("docker services", mode="semantic"))
    keyword = ids(notes.search("docker services", mode="keyword"))
    assert ids(notes.search("docker services", alpha=0))[: len(keyword)] == keyword


def test_without_alpha_the_settings_decide(clock, notes):
    assert ids(notes.search("docker services")) == ids(notes.search("docker services", alpha=0.5))
    with open_memory(clock, Settings(keyword_weight=0.2)) as other:
        other.add_many({"text": record.text, "id": record.id} for record in notes.records())
        found, expected = other.search("docker"), notes.search("docker", alpha=0.8)
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected])


# Time


@pytest.mark.parametrize(
    ("mode", "fusion", "added"),
    [(mode, fusion, added) for mode in MODES for fusion in FUSIONS for added in ("oldest first", "newest first")],
)
def test_of_equal_memories_the_newer_comes_first(memory, mode, fusion, added):
    days = range(9) if added == "oldest first" else reversed(range(9))
    memory.add("the cat sat on the mat", id="other")
    for day in days:
        memory.add("docker deploys the services", id=str(day), created_at=NOW - timedelta(days=20 - day))
    hits = memory.search("docker deploys", mode=mode, fusion=fusion, limit=9)
    assert ids(hits) == [str(day) for day in reversed(range(9))]


@pytest.mark.parametrize("dimensions", [64, 100, 384])
def test_equal_memories_have_equal_scores_whatever_the_rounding_of_their_vectors(clock, dimensions):
    """Matrix products round the same row differently in different places."""
    with open_memory(clock, embedder=HashedEmbedder(dimensions)) as memory:
        for number in range(61):
            memory.add("docker deploys", id=f"{number:02}", created_at=NOW - timedelta(days=number))
            memory.add(f"something else {number}", id=f"x{number}")
        hits = memory.search("who deploys", mode="semantic", limit=61)
        assert ids(hits) == [f"{number:02}" for number in range(61)]
        assert len({hit.score for hit in hits}) == 1


@pytest.mark.parametrize("mode", MODES)
def test_the_newest_of_very_many_equal_memories_comes_first(memory, mode):
    memory.add_many(
        {"text": "same words here", "id": f"{number:03}", "created_at": NOW + timedelta(minutes=number)}
        for number in range(300)
    )
    assert ids(memory.search("same words", mode=mode, limit=3)) == ["299", "298", "297"]


@pytest.mark.parametrize("mode", MODES)
def test_all_the_weight_on_recency_puts_the_newest_first(memory, mode):
    memory.add("docker docker docker", id="old", created_at=NOW - timedelta(days=400))
    memory.add("docker and a lot of other words that say nothing", id="new", created_at=NOW - timedelta(days=1))
    memory.add("docker in between", id="middle", created_at=NOW - timedelta(days=30))
    assert ids(memory.search("docker", mode=mode, recency=1)) == ["new", "middle", "old"]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_recency_moves_a_newer_memory_up_as_its_weight_grows(memory, fusion):
    memory.add("docker deploys services", id="old", created_at=NOW - timedelta(days=400))
    memory.add("docker deploys services, they say, on some days", id="new", created_at=NOW)
    orders = [ids(memory.search("docker deploys services", fusion=fusion, recency=weight)) for weight in (0, 0.05, 0.7)]
    assert orders[0] == ["old", "new"]
    assert orders[2] == ["new", "old"]


def test_the_score_with_recency_is_a_share_of_the_best_and_of_the_decay(notes):
    plain = {hit.record.id: hit.score for hit in notes.search("docker", limit=100)}
    best = max(plain.values())
    for hit in notes.search("docker", recency=0.3, limit=100, now=NOW + timedelta(days=30)):
        assert hit.why.decay == pytest.approx(0.5)
        assert hit.score == pytest.approx(0.7 * plain[hit.record.id] / best + 0.3 * 0.5, abs=1e-6)


def test_the_settings_may_ask_for_recency_and_its_half_life(clock):
    settings = Settings(recency_weight=1.0, recency_half_life_days=10)
    with open_memory(clock, settings) as memory:
        memory.add("docker docker", id="old", created_at=NOW - timedelta(days=10))
        memory.add("docker among other words", id="new")
        hits = memory.search("docker")
        assert [(hit.record.id, hit.why.decay) for hit in hits] == [("new", 1.0), ("old", pytest.approx(0.5))]
        assert ids(memory.search("docker", recency=0)) == ["old", "new"]


def test_recency_does_not_change_the_relevance(notes):
    relevance = {hit.record.id: hit.relevance for hit in notes.search("docker")}
    assert {hit.record.id: hit.relevance for hit in notes.search("docker", recency=0.9)} == relevance


# Repetition


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_diversify_puts_repetitions_behind_other_answers(memory, mode, fusion):
    memory.add_many(
        {"text": f"docker compose deploys the services {number}", "id": f"same{number}"} for number in range(6)
    )
    memory.add("we deploy services by docker on every Friday afternoon", id="other")
    memory.add_many({"text": f"cats and dogs like chicken number {number}"} for number in range(30))
    query = "docker compose deploys the services"
    plain = ids(memory.search(query, mode=mode, fusion=fusion))
    assert plain.index("other") == 6
    diverse = ids(memory.search(query, mode=mode, fusion=fusion, diversify=0.8))
    assert diverse[0] == plain[0]
    assert not diverse[1].startswith("same")


@pytest.mark.parametrize("fusion", FUSIONS)
def test_hardly_any_diversity_hardly_changes_the_order(memory, fusion):
    memory.add_many(
        {"text": f"docker compose deploys the services {number}", "id": f"same{number}"} for number in range(6)
    )
    memory.add_many({"text": f"cats and dogs like chicken number {number}"} for number in range(30))
    hits = memory.search("docker compose deploys the services", fusion=fusion, diversify=0.01, limit=6)
    assert {hit.record.id[:4] for hit in hits} == {"same"}


@pytest.mark.parametrize("mode", MODES)
def test_no_diversity_changes_nothing(notes, mode):
    assert ids(notes.search("docker", mode=mode, diversify=0)) == ids(notes.search("docker", mode=mode))


# Questions inside a text


def test_the_question_at_the_end_of_a_long_text_counts(memory):
    memory.add("报销流程：先填表，再交发票", id="answer")
    memory.add("今天天气特别好，我和同事们一起去公园散步", id="chatter")
    hits = memory.search("今天天气特别好，我和同事们去了公园。看到许多花。报销流程是什么？", mode="keyword")
    assert ids(hits) == ["answer", "chatter"]
