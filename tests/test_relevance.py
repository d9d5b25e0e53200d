"""Relevance: a number from 0 to 1 that rises with the score and asks more of the best of many."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.relevance import CURVES, LARGEST, judge, level

modes = st.sampled_from(["hybrid", "keyword", "semantic"])
scores = st.floats(-10, 10)
sizes = st.integers(0, 10**6)


def judge_one(mode, score, size):
    (relevance,) = judge(mode, np.array([score], dtype=np.float64), size).tolist()
    return relevance


@given(modes, st.lists(scores, max_size=9), sizes)
def test_each_score_is_judged_by_itself(mode, many, size):
    assert judge(mode, np.array(many), size).tolist() == [judge_one(mode, score, size) for score in many]


@given(modes, st.floats(-1e6, 1e6), sizes)
def test_a_relevance_lies_between_0_and_1(mode, score, size):
    assert 0 <= judge_one(mode, score, size) <= 1


@given(modes, scores, scores, sizes)
def test_a_higher_score_is_never_less_relevant(mode, one, other, size):
    low, high = sorted([one, other])
    assert judge_one(mode, low, size) <= judge_one(mode, high, size)


@given(modes, st.floats(0, 10), sizes, sizes)
def test_the_same_score_is_never_more_relevant_among_more_texts(mode, score, one, other):
    few, many = sorted([one, other])
    assert judge_one(mode, score, many) <= judge_one(mode, score, few)


@given(modes, sizes)
def test_the_middle_of_the_curve_is_half_relevant(mode, size):
    assert judge_one(mode, CURVES[mode].middle(size), size) == pytest.approx(0.5)


@given(modes, sizes)
def test_no_evidence_is_hardly_relevant(mode, size):
    assert judge_one(mode, 0.0, size) < 0.05


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
@pytest.mark.parametrize("size", [1, 5, 30, 1000, 10**6])
def test_the_same_meaning_is_nearly_1_whatever_the_size(mode, size):
    assert judge_one(mode, 1.0, size) > 0.95


@given(modes, st.floats(0, 10), st.integers(LARGEST, 10**9))
def test_beyond_the_largest_size_nothing_changes(mode, score, size):
    assert judge_one(mode, score, size) == judge_one(mode, score, LARGEST)


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
