"""Fusing the legs: sums that keep what each leg says, ranks that depend on the order alone."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.fusion import TIE, blend_questions, fuse_reciprocal, fuse_weighted, rank_keys

keys = st.integers(1, 40)
scores = st.floats(-1, 1)
evidence = st.dictionaries(keys, scores, max_size=20)
weights = st.floats(0, 1)
rankings = st.lists(st.lists(keys, unique=True, max_size=20), max_size=3)


# Weighted


@given(evidence, evidence, weights)
def test_the_weighted_score_is_the_sum_of_both_shares(keyword, meaning, weight):
    fused = fuse_weighted(keyword, meaning, weight)
    assert fused.keys() == keyword.keys() | meaning.keys()
    for key, score in fused.items():
        assert score == pytest.approx(weight * keyword.get(key, 0) + (1 - weight) * meaning.get(key, 0))


@given(evidence, evidence)
def test_all_the_weight_on_a_leg_is_that_leg_alone(keyword, meaning):
    assert {key: score for key, score in fuse_weighted(keyword, meaning, 1).items() if key in keyword} == keyword
    assert {key: score for key, score in fuse_weighted(keyword, meaning, 0).items() if key in meaning} == meaning


@given(evidence, evidence, st.floats(0.01, 1), st.floats(0, 1), st.data())
def test_more_evidence_never_lowers_a_weighted_score(keyword, meaning, weight, more, data):
    if keyword:
        key = data.draw(st.sampled_from(sorted(keyword)))
        raised = {**keyword, key: keyword[key] + more}
        assert fuse_weighted(raised, meaning, weight)[key] >= fuse_weighted(keyword, meaning, weight)[key]


# Reciprocal ranks


def legs(*rankings):
    """Return evidence in which each ranking's keys have falling scores."""
    return [{key: -float(place) for place, key in enumerate(ranking)} for ranking in rankings]


def test_reciprocal_ranks_are_those_computed_by_hand():
    fused = fuse_reciprocal(legs([1, 2, 3], [3, 1]), k=60)
    expected = {1: 1 / 61 + 1 / 62, 2: 1 / 62, 3: 1 / 63 + 1 / 61}
    assert fused == pytest.approx(expected)
    assert rank_keys(fused) == [1, 3, 2]


@given(rankings, st.integers(1, 100))
def test_the_order_of_the_legs_does_not_matter(rankings, k):
    one, other = fuse_reciprocal(legs(*rankings), k), fuse_reciprocal(legs(*rankings[::-1]), k)
    assert one == pytest.approx(other)
    assert rank_keys(one) == rank_keys(other)


@given(st.lists(keys, unique=True, min_size=2), st.integers(1, 30))
def test_one_ranking_alone_keeps_its_order(ranking, k):
    assert rank_keys(fuse_reciprocal(legs(ranking), k)) == ranking


@given(st.lists(keys, unique=True, min_size=2, max_size=20), st.lists(keys, unique=True, max_size=20), st.data())
def test_a_better_rank_never_lowers_a_score(ranking, other, data):
    place = data.draw(st.integers(1, len(ranking) - 1))
    better = [*ranking]
    better[place - 1], better[place] = better[place], better[place - 1]
    key = ranking[place]
    assert fuse_reciprocal(legs(better, other))[key] > fuse_reciprocal(legs(ranking, other))[key]


@given(rankings)
def test_the_first_of_every_leg_comes_first(rankings):
    firsts = [[99, *ranking] for ranking in rankings]
    fused = fuse_reciprocal(legs(*firsts))
    assert not firsts or rank_keys(fused)[0] == 99


def test_equal_scores_share_a_rank():
    assert fuse_reciprocal([{1: 0.5, 2: 0.5, 3: 0.4}], k=60) == {1: 1 / 61, 2: 1 / 61, 3: 1 / 63}


# Order


@given(evidence)
def test_ranked_keys_are_all_keys_with_falling_scores(evidence):
    ranked = rank_keys(evidence)
    assert sorted(ranked) == sorted(evidence)
    falling = [evidence[key] for key in ranked]
    assert all(one >= other - TIE * len(ranked) for one, other in itertools.pairwise(falling))


@given(evidence, st.randoms())
def test_the_order_of_insertion_does_not_matter(evidence, random):
    shuffled = list(evidence.items())
    random.shuffle(shuffled)
    assert rank_keys(dict(shuffled)) == rank_keys(evidence)


def test_of_equal_scores_the_newer_key_comes_first():
    assert rank_keys({1: 0.5, 2: 0.7, 3: 0.5, 4: 0.5}) == [2, 4, 3, 1]


def test_scores_that_differ_by_the_rounding_of_float32_are_equal():
    assert rank_keys({1: 0.5, 2: 0.5 - 6e-8, 3: 0.5 - 1.2e-7}) == [3, 2, 1]
    assert rank_keys({1: 0.5, 2: 0.5 - 1e-5}) == [1, 2]


# Questions


def test_a_query_without_questions_of_its_own_stays_as_it_is():
    assert blend_questions({1: 0.4}, []) == {1: 0.4}


def test_half_is_the_whole_query_and_half_the_best_of_its_questions():
    assert blend_questions({1: 0.4, 2: 0.2}, [{1: 0.2, 3: 0.6}, {1: 0.8}]) == pytest.approx({1: 0.6, 2: 0.1, 3: 0.3})


@given(evidence, st.lists(evidence, max_size=3))
def test_a_blend_lies_within_what_was_said(whole, parts):
    for key, score in blend_questions(whole, parts).items():
        said = [part.get(key, 0.0) for part in [whole, *parts]]
        assert math.isfinite(score)
        assert min(said) - 1e-12 <= score <= max(said) + 1e-12


@given(evidence, st.lists(evidence, min_size=1, max_size=3))
def test_the_order_of_the_questions_does_not_matter(whole, parts):
    assert blend_questions(whole, parts) == blend_questions(whole, parts[::-1])
