"""A reranker in a search: whom it gets, what its order changes, and what happens without it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from models import build_cross_encoder
from support import HashedEmbedder

from recall_core import CrossEncoder, Memory, Settings
from recall_core.cli.app import app

TEXTS = [
    "the cat sat on the mat",
    "a cat chased the dog",
    "the dog slept",
    "a cat, a cat, a cat!",
    "rain all day",
    "the cat food is empty",
]
QUERY = "where is the cat?"


class Reranker:
    """Scores by length, the shortest first, and notes what it was given."""

    def __init__(self):
        self.seen = []

    def score(self, query, texts):
        self.seen += [(query, text) for text in texts]
        return [-float(len(text)) for text in texts]


def fail(query, texts):
    raise ConnectionError("no answer")


def fill(reranker, embedder=None, **settings):
    memory = Memory.open(":memory:", embedder=embedder, settings=Settings(reranker=reranker, **settings))
    memory.add_many({"text": text, "id": str(number)} for number, text in enumerate(TEXTS))
    return memory


def texts(hits):
    return [hit.record.text for hit in hits]


@pytest.fixture
def reranker():
    return Reranker()


@pytest.fixture
def plain():
    """Return the hits in the order that they have without a reranker."""
    with fill(None, HashedEmbedder()) as memory:
        return memory.search(QUERY)


def test_the_hits_come_in_the_order_of_the_reranker(reranker, plain):
    with fill(reranker, HashedEmbedder()) as memory:
        hits = memory.search(QUERY)
    assert texts(hits) == sorted(texts(plain), key=len) != texts(plain)
    assert [hit.why.rerank for hit in hits] == [-len(hit.record.text) for hit in hits]
    assert hits.degraded is None


def test_it_reads_the_records_in_the_first_order(reranker, plain):
    with fill(reranker, HashedEmbedder()) as memory:
        memory.search(QUERY, limit=1)
    assert reranker.seen == [(QUERY, text) for text in texts(plain)]


def test_only_the_first_candidates_are_reranked(reranker, plain):
    with fill(reranker, HashedEmbedder(), rerank_candidates=2) as memory:
        hits = memory.search(QUERY)
    assert len(reranker.seen) == 2
    assert set(texts(hits[:2])) == set(texts(plain[:2]))
    assert texts(hits[2:]) == texts(plain[2:])
    assert [hit.why.rerank is None for hit in hits] == [False] * 2 + [True] * (len(hits) - 2)


def test_without_time_the_rest_keeps_its_order(reranker):
    with Memory.open(":memory:", embedder=None, settings=Settings(reranker=reranker, rerank_budget=0)) as memory:
        memory.add_many({"text": f"cat {'x' * number}"} for number in range(30, 0, -1))
        hits = memory.search("cat", mode="keyword", limit=30)
    assert len(reranker.seen) == 8
    assert [hit.why.rerank is None for hit in hits] == [False] * 8 + [True] * 22
    assert hits.degraded is None


def test_scores_fall_down_the_list_and_relevance_stays_with_the_record(reranker, plain):
    with fill(reranker, HashedEmbedder()) as memory:
        hits = memory.search(QUERY)
    assert [hit.score for hit in hits] == [hit.score for hit in plain]
    assert {hit.record.id: hit.relevance for hit in hits} == {hit.record.id: hit.relevance for hit in plain}


def test_the_speaker_stands_in_front_of_what_is_read(reranker):
    with fill(reranker) as memory:
        memory.add("the cat is mine", role="Caroline")
        memory.add("the cat is hers", role="user")
        memory.search("whose is the cat?")
    read = {text for _, text in reranker.seen}
    assert {"Caroline: the cat is mine", "the cat is hers"} <= read


def test_a_long_record_is_read_by_its_best_chunk(reranker):
    settings = Settings(reranker=reranker, chunk_size=32, chunk_overlap=0)
    with Memory.open(":memory:", embedder=None, settings=settings) as memory:
        memory.add("It rained all day and nobody went out. " * 20 + "The password is swordfish.")
        [hit] = memory.search("password")
    assert [text for _, text in reranker.seen] == [hit.chunk.text]
    assert "swordfish" in hit.chunk.text
    assert len(hit.chunk.text) < 200


def test_what_is_not_relevant_enough_is_not_read(reranker, plain):
    with fill(reranker, HashedEmbedder()) as memory:
        hits = memory.search(QUERY, min_relevance=plain[1].relevance)
    assert 0 < len(reranker.seen) == len(hits) < len(TEXTS)


def test_a_reranker_that_fails_leaves_the_order_and_the_result_says_so(plain):
    with fill(fail, HashedEmbedder()) as memory:
        hits = memory.search(QUERY)
    assert texts(hits) == texts(plain)
    assert hits.degraded == "not reranked: the reranker failed: ConnectionError: no answer"
    assert {hit.why.rerank for hit in hits} == {None}


def test_both_reasons_are_said_where_vectors_fail_too():
    with fill(fail) as memory:
        hits = memory.search(QUERY)
    assert hits.degraded.startswith("found by keywords only: ")
    assert hits.degraded.endswith("; not reranked: the reranker failed: ConnectionError: no answer")


@pytest.mark.parametrize("fusion", ["rrf", "plain"])
def test_the_other_fusions_are_what_they_are(reranker, fusion):
    with fill(reranker, HashedEmbedder()) as memory:
        memory.search(QUERY, fusion=fusion)
    assert reranker.seen == []


def test_a_search_by_vector_alone_is_not_reranked(reranker):
    embedder = HashedEmbedder()
    with fill(reranker, embedder) as memory:
        assert memory.search("", mode="semantic", vector=embedder.embed_queries([QUERY])[0])
    assert reranker.seen == []


def test_diversity_is_made_of_the_reranked_order(reranker):
    with fill(reranker, HashedEmbedder()) as memory:
        diverse = memory.search(QUERY, diversify=0.5)
    assert texts(diverse)[0] == min(TEXTS, key=len)


def test_a_cross_encoder_reranks(tmp_path):
    with fill(CrossEncoder(build_cross_encoder(tmp_path))) as memory:
        hits = memory.search("the cat sat", mode="keyword")
    assert hits[0].record.text == "the cat sat on the mat"
    assert hits[0].why.rerank == 4
    assert hits.degraded is None


def test_a_search_from_the_command_line_is_reranked(tmp_path, db_path):
    folder = build_cross_encoder(tmp_path / "model")
    with Memory.open(db_path, embedder=None) as memory:
        memory.add_many({"text": text} for text in TEXTS)
    done = CliRunner().invoke(
        app, ["search", "the cat sat", "--mode", "keyword", "--rerank", str(folder), "--why", "--db", str(db_path)]
    )
    assert done.exit_code == 0, done.output
    assert "rerank 4.00" in done.stdout
