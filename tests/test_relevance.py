"""Relevance: a number from 0 to 1 that rises with the evidence, and with what the memory knows of the query."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.relevance import FAR, LARGEST, MANY, NEAR, SHORT, Background, Texts, judge, level

modes = st.sampled_from(["hybrid", "keyword", "semantic"])
shares = st.floats(0, 1)
lengths = st.integers(1, 10**4)
distances = st.floats(0, 1e6)
sizes = st.integers(0, 10**6)
texts = st.tuples(st.floats(-1, 2), shares, lengths)
backgrounds = st.builds(Background, known=shares, distance=distances, size=sizes)
ORDINARY = Background(known=0.5, distance=1.3, size=30)


def make_texts(many):
    evidence, shared, tokens = zip(*many, strict=True) if many else ((), (), ())
    return Texts(np.array(evidence, dtype=float), np.array(shared, dtype=float), np.array(tokens, dtype=np.int32))


def judge_one(mode, text, background=ORDINARY):
    (relevance,) = judge(mode, make_texts([text]), background).tolist()
    return relevance


@given(modes, st.lists(texts, max_size=9), backgrounds)
def test_each_text_is_judged_by_itself(mode, many, background):
    alone = [judge_one(mode, text, background) for text in many]
    assert judge(mode, make_texts(many), background).tolist() == pytest.approx(alone)


@given(modes, st.floats(-1e6, 1e6), shares, lengths, backgrounds)
def test_a_relevance_lies_between_0_and_1(mode, evidence, shared, tokens, background):
    assert 0 <= judge_one(mode, (evidence, shared, tokens), background) <= 1


@given(modes, texts, st.floats(-1, 2), backgrounds)
def test_more_evidence_is_never_less_relevant(mode, text, evidence, background):
    low, high = sorted([text, (evidence, *text[1:])])
    assert judge_one(mode, low, background) <= judge_one(mode, high, background)


@given(modes, texts, shares, shares, backgrounds)
def test_more_shared_words_are_never_less_relevant(mode, text, one, other, background):
    few, many = ((text[0], shared, text[2]) for shared in sorted([one, other]))
    assert judge_one(mode, few, background) <= judge_one(mode, many, background)


@given(modes, texts, lengths, lengths, backgrounds)
def test_a_longer_text_is_never_more_relevant(mode, text, one, other, background):
    short, long = ((*text[:2], tokens) for tokens in sorted([one, other]))
    assert judge_one(mode, long, background) <= judge_one(mode, short, background)


@given(modes, texts, st.integers(1, SHORT), backgrounds)
def test_among_short_texts_length_does_not_count(mode, text, tokens, background):
    assert judge_one(mode, (*text[:2], tokens), background) == judge_one(mode, (*text[:2], SHORT), background)


@given(modes, texts, backgrounds, shares)
def test_more_known_words_are_never_less_relevant(mode, text, background, share):
    few, many = (replace(background, known=known) for known in sorted([background.known, share]))
    assert judge_one(mode, text, few) <= judge_one(mode, text, many)


@given(modes, texts, backgrounds, distances)
def test_a_query_farther_off_is_never_more_relevant(mode, text, background, distance):
    near, far = (replace(background, distance=value) for value in sorted([background.distance, distance]))
    assert judge_one(mode, text, far) <= judge_one(mode, text, near)


@given(modes, texts, backgrounds, st.floats(0, NEAR), st.floats(FAR, 1e6))
def test_a_distance_counts_within_its_bounds(mode, text, background, near, far):
    for distance, bound in ((near, NEAR), (far, FAR)):
        judged = judge_one(mode, text, replace(background, distance=distance))
        assert judged == judge_one(mode, text, replace(background, distance=bound))


@given(modes, texts, backgrounds, sizes)
def test_the_same_text_is_never_more_relevant_among_more(mode, text, background, size):
    few, many = (replace(background, size=number) for number in sorted([background.size, size]))
    assert judge_one(mode, text, many) <= judge_one(mode, text, few) + 1e-12


@given(modes, st.floats(-1, 2), lengths, backgrounds, st.integers(0, MANY), st.integers(LARGEST, 10**9))
def test_a_size_counts_within_its_bounds_if_no_word_is_shared(mode, evidence, tokens, background, few, many):
    for size, bound in ((few, MANY), (many, LARGEST)):
        judged = judge_one(mode, (evidence, 0.0, tokens), replace(background, size=size))
        assert judged == judge_one(mode, (evidence, 0.0, tokens), replace(background, size=bound))


@given(modes, lengths, backgrounds)
def test_no_evidence_is_less_than_half_relevant(mode, tokens, background):
    assert judge_one(mode, (0.0, 0.0, tokens), background) < 0.5


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
@pytest.mark.parametrize("tokens", [1, 30, 256])
@pytest.mark.parametrize("distance", [NEAR, FAR])
@pytest.mark.parametrize("size", [1, 1000, 10**6])
def test_the_same_meaning_is_nearly_1_whatever_its_background(mode, tokens, distance, size):
    assert judge_one(mode, (0.75, 1.0, tokens), Background(known=1.0, distance=distance, size=size)) > 0.9


@given(st.lists(st.floats(0, 1), max_size=12))
def test_levelled_relevances_are_the_nearest_ones_that_fall(relevances):
    def mean(start, stop):
        return sum(relevances[start:stop]) / (stop - start)

    places = range(len(relevances))
    nearest = [min(max(mean(a, b + 1) for b in places[i:]) for a in places[: i + 1]) for i in places]
    assert level(relevances) == pytest.approx(nearest)


@given(st.lists(st.floats(0, 1), min_size=1))
def test_levelled_relevances_never_rise_and_stay_between_0_and_1(relevances):
    levelled = level(relevances)
    assert len(levelled) == len(relevances)
    assert all(one >= other for one, other in pairwise(levelled))
    assert all(0 <= value <= 1 + 1e-12 for value in levelled)


@given(st.lists(st.floats(0, 1)).map(lambda values: sorted(values, reverse=True)))
def test_relevances_that_fall_stay_as_they_are(relevances):
    assert level(relevances) == relevances
