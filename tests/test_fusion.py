"""Fusing the legs: sums that keep what each leg says, ranks that depend on the order alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.fusion import TIE, blend_questions, find_ranks, fuse_reciprocal, fuse_weighted, rank_rows

ROWS = 12
scores = st.lists(st.floats(-1, 1), min_size=ROWS, max_size=ROWS).map(np.array)
flags = st.lists(st.booleans(), min_size=ROWS, max_size=ROWS).map(np.array)
legs = st.lists(st.tuples(scores, flags), min_size=1, max_size=3)
weights = st.floats(0, 1)
orders = st.permutations(range(ROWS))


# Weighted


@given(scores, scores, weights)
def test_the_weighted_score_is_the_sum_of_both_shares(keyword, meaning, weight):
    fused = fuse_weighted(keyword, meaning, weight)
    for row in range(ROWS):
        assert fused[row] == pytest.approx(weight * keyword[row] + (1 - weight) * meaning[row])


@given(scores, scores)
def test_all_the_weight_on_a_leg_is_that_leg_alone(keyword, meaning):
    assert (fuse_weighted(keyword, meaning, 1) == keyword).all()
    assert (fuse_weighted(keyword, meaning, 0) == meaning).all()


@given(scores, scores, weights, st.floats(0, 1), st.integers(0, ROWS - 1))
def test_more_evidence_never_lowers_a_weighted_score(keyword, meaning, weight, more, row):
    raised = keyword.copy()
    raised[row] += more
    assert (fuse_weighted(raised, meaning, weight) >= fuse_weighted(keyword, meaning, weight)).all()


# Ranks


@given(scores, flags)
def test_ranks_count_the_seen_rows_from_1_and_are_0_for_others(scores, seen):
    ranks = rank_rows(scores, seen)
    assert (ranks[~seen] == 0).all()
    assert all(1 <= rank <= seen.sum() for rank in ranks[seen])
    assert not seen.any() or ranks[seen].min() == 1


@given(scores, flags)
def test_a_rank_is_better_where_the_score_is_higher(scores, seen):
    ranks = rank_rows(scores, seen)
    for one, other in itertools.permutations(np.flatnonzero(seen), 2):
        if scores[one] > scores[other] + TIE * ROWS:  # equal ones may come in chains
            assert ranks[one] < ranks[other]


def test_equal_scores_share_a_rank_and_take_its_places():
    ranks = rank_rows(np.array([0.4, 0.5, 0.7, 0.5, 0.9]), np.array([True, True, True, True, False]))
    assert ranks.tolist() == [4, 2, 1, 2, 0]


def test_scores_that_differ_by_the_rounding_of_float32_share_a_rank():
    assert rank_rows(np.array([0.5, 0.5 - TIE / 8, 0.5 - 20 * TIE]), np.ones(3, dtype=bool)).tolist() == [1, 1, 3]


@given(scores, flags, orders)
def test_the_order_of_the_rows_does_not_matter_to_ranks(scores, seen, order):
    assert (rank_rows(scores, seen)[order] == rank_rows(scores[order], seen[order])).all()


def test_ranks_of_some_rows_are_those_among_all():
    scores, seen = np.array([0.1, 0.5, 0.7, 0.5, 0.9]), np.array([True, True, True, True, False])
    rows = np.array([3, 4, 0, 2], dtype=np.int32)
    assert find_ranks(scores, seen, rows) == [2, None, 4, 1]


@given(st.lists(st.integers(0, 6), min_size=ROWS, max_size=ROWS), flags)
def test_ranks_of_some_rows_agree_with_those_of_all(scores, seen):
    scores = np.array(scores, dtype=np.float64)
    ranks = [rank or None for rank in rank_rows(scores, seen).tolist()]
    assert find_ranks(scores, seen, np.arange(ROWS, dtype=np.int32)) == ranks


# Reciprocal ranks


def make_leg(*ranking):
    """Return a leg that has seen these rows, best first."""
    scores, seen = np.zeros(ROWS), np.zeros(ROWS, dtype=bool)
    scores[list(ranking)] = -np.arange(len(ranking), dtype=np.float64)
    seen[list(ranking)] = True
    return scores, seen


def test_reciprocal_ranks_are_those_computed_by_hand():
    scores, found = fuse_reciprocal([make_leg(1, 2, 3), make_leg(3, 1)], k=60, depth=9)
    assert scores[1:4] == pytest.approx([1 / 61 + 1 / 62, 1 / 62, 1 / 63 + 1 / 61])
    assert np.flatnonzero(found).tolist() == [1, 2, 3]


@given(legs, st.integers(1, 100), st.integers(1, ROWS))
def test_the_order_of_the_legs_does_not_matter(legs, k, depth):
    one, other = fuse_reciprocal(legs, k, depth), fuse_reciprocal(legs[::-1], k, depth)
    assert one[0] == pytest.approx(other[0])
    assert (one[1] == other[1]).all()


@given(orders, st.integers(1, 30))
def test_one_ranking_alone_keeps_its_order(ranking, k):
    scores, found = fuse_reciprocal([make_leg(*ranking)], k, ROWS)
    assert found.all()
    assert np.argsort(-scores).tolist() == ranking


@given(orders, st.lists(st.integers(0, ROWS - 1), unique=True), st.integers(1, ROWS - 1))
def test_a_better_rank_never_lowers_a_score(ranking, other, place):
    better = [*ranking]
    better[place - 1], better[place] = better[place], better[place - 1]
    row = ranking[place]
    fused = [fuse_reciprocal([make_leg(*one), make_leg(*other)], 60, ROWS)[0][row] for one in (better, ranking)]
    assert fused[0] > fused[1]


@given(legs, st.integers(1, 5))
def test_only_the_best_of_each_leg_count(legs, depth):
    scores, found = fuse_reciprocal(legs, 60, depth)
    ranks = np.array([rank_rows(*leg) for leg in legs])
    assert (found == ((ranks > 0) & (ranks <= depth)).any(axis=0)).all()
    assert (scores[~found] == 0).all()


def test_equal_scores_count_alike():
    leg = np.array([0.5, 0.5, 0.4]), np.ones(3, dtype=bool)
    assert fuse_reciprocal([leg], k=60, depth=3)[0].tolist() == [1 / 61, 1 / 61, 1 / 63]


def test_all_that_share_the_last_rank_are_found():
    leg = np.array([0.9, 0.5, 0.5, 0.5]), np.ones(4, dtype=bool)
    assert fuse_reciprocal([leg], k=60, depth=2)[1].all()


# Questions


@given(scores)
def test_a_query_without_questions_of_its_own_stays_as_it_is(whole):
    assert (blend_questions(whole, []) == whole).all()


def test_half_is_the_whole_query_and_half_the_best_of_its_questions():
    whole, parts = np.array([0.4, 0.2, 0.0]), [np.array([0.2, 0.0, 0.6]), np.array([0.8, 0.0, 0.0])]
    assert blend_questions(whole, parts) == pytest.approx(np.array([0.6, 0.1, 0.3]))


@given(scores, st.lists(scores, max_size=3))
def test_a_blend_lies_within_what_was_said(whole, parts):
    blended = blend_questions(whole, parts)
    said = np.array([whole, *parts])
    assert (said.min(axis=0) - 1e-12 <= blended).all()
    assert (blended <= said.max(axis=0) + 1e-12).all()


@given(scores, st.lists(scores, min_size=1, max_size=3))
def test_the_order_of_the_questions_does_not_matter(whole, parts):
    assert (blend_questions(whole, parts) == blend_questions(whole, parts[::-1])).all()
