"""What the keyword score is made of: how much a term weighs, and what a query could reach."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_support import queries, terms

from recall_core.bm25 import K1, Corpus, highest_score, keep_rarest

corpora = st.builds(
    Corpus,
    chunks=st.integers(1, 10_000),
    mean_length=st.floats(0, 500),
    counts=st.dictionaries(terms, st.integers(0, 10_000)),
)
CORPUS = Corpus(100, 10.0, {"docker": 3, "deploy": 60})


# idf


@given(terms, corpora)
def test_the_idf_is_that_of_lucene(term, corpus):
    n = min(corpus.counts.get(term, 0), corpus.chunks)
    assert corpus.idf(term) == pytest.approx(math.log(1 + (corpus.chunks - n + 0.5) / (n + 0.5)))


@given(terms, corpora)
def test_the_idf_of_a_term_is_never_negative(term, corpus):
    assert corpus.idf(term) > 0


@given(st.integers(1, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_the_rarer_of_two_terms_weighs_more(chunks, one, other):
    corpus = Corpus(chunks, 10.0, {"one": min(one, other), "other": max(one, other)})
    assert corpus.idf("one") >= corpus.idf("other")


def test_a_term_that_occurs_nowhere_weighs_most():
    assert CORPUS.idf("unheard") > CORPUS.idf("docker")


def test_more_chunks_with_a_term_than_chunks_are_no_harm():
    """Another program may write between the two counts."""
    assert Corpus(3, 10.0, {"docker": 9}).idf("docker") > 0


# The highest score


@given(queries, corpora)
def test_every_query_could_reach_something(query, corpus):
    assert highest_score(query, corpus) > 0


@given(queries, corpora)
def test_the_highest_score_is_what_each_term_could_reach_at_most(query, corpus):
    assert highest_score(query, corpus) == pytest.approx(sum((K1 + 1) * corpus.idf(term) for term in query))


def test_an_empty_index_gives_finite_numbers():
    assert math.isfinite(highest_score(["docker"], Corpus(0, 0.0, {})))


# The rarest terms


@given(queries, corpora, st.integers(0, 8))
def test_the_rarest_terms_are_kept_in_their_order(query, corpus, most):
    kept = keep_rarest(query, corpus, most)
    known = [term for term in query if corpus.counts.get(term)]
    assert [term for term in known if term in kept] == list(kept)
    assert len(kept) == min(most, len(known))
    left = [corpus.counts[term] for term in known if term not in kept]
    assert not left or not kept or max(corpus.counts[term] for term in kept) <= min(left)


def test_a_term_that_occurs_nowhere_takes_no_place():
    assert keep_rarest(["unheard", "deploy", "docker"], CORPUS, 1) == ["docker"]
