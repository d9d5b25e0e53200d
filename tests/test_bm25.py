"""The keyword score: BM25 against a plain reference, and as a share of what a query could reach."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.bm25 import K1, WEIGHTS, B, Columns, Corpus, highest_score, score_columns

terms = st.sampled_from(["docker", "deploy", "v1.2.3", "c++", "部署", "喝茶", "茶", "☕"])
columns_of_terms = st.lists(terms, max_size=12).map(" ".join)
columns = st.builds(
    Columns, latin=columns_of_terms, grams=columns_of_terms, words=columns_of_terms, labels=columns_of_terms
)
queries = st.lists(terms, min_size=1, max_size=6, unique=True)
corpora = st.builds(
    Corpus,
    chunks=st.integers(1, 10_000),
    mean_length=st.floats(0, 500),
    counts=st.dictionaries(terms, st.integers(0, 10_000)),
)


def reference(columns: Columns, query: list[str], corpus: Corpus) -> float:
    """BM25 as in the paper, term by term, on weighted frequencies."""
    weighted: Counter[str] = Counter()
    for name in ("latin", "grams", "words", "labels"):
        for term in getattr(columns, name).split():
            weighted[term] += getattr(WEIGHTS, name)
    length = len(columns.latin.split()) + len(columns.grams.split()) / 2
    total = 0.0
    for term in query:
        n = min(corpus.counts.get(term, 0), corpus.chunks)
        idf = math.log(1 + (corpus.chunks - n + 0.5) / (n + 0.5))
        norm = K1 * (1 - B + B * length / max(corpus.mean_length, 1))
        total += idf * weighted[term] * (K1 + 1) / (weighted[term] + norm)
    return total


def text(latin: str = "", grams: str = "", words: str = "", labels: str = "") -> Columns:
    return Columns(latin, grams, words, labels)


CORPUS = Corpus(100, 10.0, {"docker": 3, "deploy": 60})


@given(columns, queries, corpora)
def test_scores_are_those_of_the_reference(columns, query, corpus):
    assert score_columns(columns, query, corpus) == pytest.approx(reference(columns, query, corpus))


@given(columns, queries, corpora)
def test_a_score_lies_between_nothing_and_the_highest_possible(columns, query, corpus):
    assert 0 <= score_columns(columns, query, corpus) <= highest_score(query, corpus)


@given(queries, corpora)
def test_every_query_could_reach_something(query, corpus):
    assert highest_score(query, corpus) > 0


@given(terms, corpora)
def test_the_idf_of_a_term_is_never_negative(term, corpus):
    assert corpus.idf(term) > 0


@given(st.integers(1, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_the_rarer_of_two_terms_weighs_more(chunks, one, other):
    corpus = Corpus(chunks, 10.0, {"one": min(one, other), "other": max(one, other)})
    assert corpus.idf("one") >= corpus.idf("other")


def test_a_term_that_occurs_nowhere_weighs_most():
    assert CORPUS.idf("unheard") > CORPUS.idf("docker")


@given(columns, queries, corpora, terms, st.sampled_from(["words", "labels"]))
def test_another_occurrence_never_lowers_a_score(columns, query, corpus, term, name):
    changed = {field: getattr(columns, field) for field in ("latin", "grams", "words", "labels")}
    changed[name] = f"{changed[name]} {term}".strip()
    assert score_columns(Columns(**changed), query, corpus) >= score_columns(columns, query, corpus)


@given(columns, queries, corpora, terms)
def test_a_repeated_term_in_a_text_of_the_same_length_never_scores_less(columns, query, corpus, term):
    padded = Columns(f"{columns.latin} padding".strip(), columns.grams, columns.words, columns.labels)
    repeated = Columns(f"{columns.latin} {term}".strip(), columns.grams, columns.words, columns.labels)
    assert score_columns(repeated, query, corpus) >= score_columns(padded, query, corpus)


@given(columns, queries, corpora)
def test_the_order_of_the_terms_does_not_matter(columns, query, corpus):
    forwards, backwards = (score_columns(columns, terms, corpus) for terms in (query, query[::-1]))
    assert forwards == pytest.approx(backwards)


def test_of_two_texts_with_the_term_the_shorter_one_scores_more():
    short, long = text("docker now"), text("docker " + "word " * 40)
    assert score_columns(short, ["docker"], CORPUS) > score_columns(long, ["docker"], CORPUS)


def test_a_term_in_the_text_counts_more_than_in_a_label():
    assert score_columns(text("docker"), ["docker"], CORPUS) > score_columns(
        text("x", labels="docker"), ["docker"], CORPUS
    )


def test_a_part_of_another_term_is_no_occurrence():
    assert score_columns(text("dockerfile c++"), ["docker", "c"], CORPUS) == 0


def test_an_empty_text_scores_nothing():
    assert score_columns(text(), ["docker"], CORPUS) == 0


def test_an_empty_index_gives_finite_numbers():
    empty = Corpus(0, 0.0, {})
    assert math.isfinite(highest_score(["docker"], empty))
    assert math.isfinite(score_columns(text("docker"), ["docker"], empty))


def test_more_chunks_with_a_term_than_chunks_are_no_harm():
    """Another program may write between the two counts."""
    assert Corpus(3, 10.0, {"docker": 9}).idf("docker") > 0
