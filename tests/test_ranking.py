"""The steps behind the scores: recency, ties, the best of many, repetition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.ranking import (
    TIE,
    blend_recency,
    decay,
    diversify,
    level_ties,
    select_best,
    sort_places,
)

DAY = 86_400_000_000
NOW = 1_800_000_000_000_000
SIZE = 12

shares = st.integers(-1000, 1000).map(lambda number: number / 1000)
scores = st.lists(shares, min_size=1, max_size=SIZE).map(np.array)
times = st.integers(NOW - 4000 * DAY, NOW + 400 * DAY)
half_lives = st.floats(1, 1e18)


# Recency


def decay_one(created_at, half_life):
    return float(decay(np.array([created_at]), NOW, half_life)[0])


@given(times, half_lives)
def test_decay_lies_above_0_and_is_at_most_1(created_at, half_life):
    assert 0 < decay_one(created_at, half_life) <= 1


@given(times, times, half_lives)
def test_what_is_older_has_decayed_no_less(one, other, half_life):
    older, newer = sorted([one, other])
    assert decay_one(older, half_life) <= decay_one(newer, half_life)


@pytest.mark.parametrize(("days", "expected"), [(0, 1.0), (30, 0.5), (60, 0.25), (-5, 1.0)])
def test_decay_halves_with_each_half_life_and_the_future_counts_as_now(days, expected):
    assert decay_one(NOW - days * DAY, 30 * DAY) == pytest.approx(expected)


@given(scores)
def test_no_weight_of_recency_leaves_the_scores(values):
    assert blend_recency(values, np.full(len(values), 0.5), 0.0).tolist() == values.tolist()


@given(scores)
def test_all_the_weight_on_recency_is_the_decay_alone(values):
    decays = np.linspace(0.1, 1, len(values))
    assert blend_recency(values, decays, 1.0) == pytest.approx(decays)


def test_a_share_of_recency_is_taken_of_the_best_score():
    blended = blend_recency(np.array([0.8, 0.4]), np.array([0.5, 1.0]), 0.3)
    assert blended == pytest.approx(np.array([0.7 * 1.0 + 0.3 * 0.5, 0.7 * 0.5 + 0.3 * 1.0]))


@given(scores, st.floats(0, 1))
def test_of_two_equally_old_records_the_better_stays_ahead(values, weight):
    blended = blend_recency(np.sort(values), np.full(len(values), 0.5), weight)
    assert all(one <= other for one, other in pairwise(blended))


def test_no_records_have_no_recency():
    assert len(blend_recency(np.zeros(0), np.zeros(0), 0.5)) == 0


# Order


@st.composite
def lists_of_records(draw):
    """Scores, many of them equal or nearly so, times, and ids."""
    size = draw(st.integers(1, SIZE))
    near = st.sampled_from([0.5, 0.5 - TIE / 8, 0.5 - TIE / 4, 0.25]) | st.floats(-1, 1)
    values = draw(st.lists(near, min_size=size, max_size=size))
    created = draw(st.lists(st.integers(NOW - 3, NOW), min_size=size, max_size=size))
    return np.array(values), np.array(created), [f"r{number:02}" for number in range(size)]


def sort(values, created=None, ids=None):
    size = len(values)
    created = np.full(size, NOW) if created is None else np.array(created)
    return sort_places(np.arange(size, dtype=np.int32), np.array(values), created, ids or [*"abcdefgh"[:size]])


@given(lists_of_records(), st.randoms())
def test_the_order_depends_on_the_records_alone(records, random):
    values, created, ids = records
    moved = list(range(len(values)))
    random.shuffle(moved)
    there = sort(values[moved], created[moved], [ids[place] for place in moved])
    assert [moved[place] for place in there] == sort(values, created, ids)


@given(lists_of_records())
def test_sorted_scores_fall_and_are_what_they_were_to_a_rounding(records):
    values, created, ids = records
    order = sort(values, created, ids)
    levelled = level_ties(values, order)
    assert sorted(order) == list(range(len(values)))
    assert all(one >= other for one, other in pairwise(levelled))
    assert (abs(levelled - values[order]) <= TIE * len(values)).all()


def test_of_equal_scores_the_newer_comes_first_then_the_smaller_id():
    created = [NOW - 1, NOW, NOW, NOW + 1, NOW]
    assert sort([0.5, 0.5, 0.5, 0.5, 0.9], created, ["r3", "r2", "r1", "r4", "r5"]) == [4, 3, 2, 1, 0]


def test_scores_that_differ_by_the_rounding_of_float32_are_equal():
    values = np.array([0.5, 0.5 - 6e-8, 0.5 - 1.2e-7])
    order = sort(values, [NOW - 2, NOW - 1, NOW])
    assert order == [2, 1, 0]
    assert set(level_ties(values, order)) == {0.5}


def test_scores_that_differ_by_more_are_not_equal():
    values = np.array([0.5, 0.5 - 20 * TIE])
    order = sort(values, [NOW - 1, NOW])
    assert order == [0, 1]
    assert level_ties(values, order).tolist() == values.tolist()


# The best


@given(lists_of_records(), st.integers(1, SIZE), st.data())
def test_the_best_are_selected_among_those_found_with_all_that_tie_with_the_last(records, most, data):
    values, _, _ = records
    found = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    chosen = set(select_best(values, found, most).tolist())
    among = sorted(np.flatnonzero(found).tolist(), key=lambda place: -values[place])
    assert chosen <= set(among)
    assert chosen >= set(among[:most])
    assert all(values[place] >= values[among[most - 1]] - TIE for place in chosen if len(among) > most)
    assert all(place in chosen for place in among if values[place] == values[among[:most][-1]])


# Diversity


def same_topic(topics):
    return np.array([[float(one == other) for other in topics] for one in topics], dtype=np.float32)


@st.composite
def similarities(draw):
    """Falling scores and how alike their records are."""
    falling = np.array(sorted(draw(st.lists(shares, max_size=SIZE)), reverse=True))
    vectors = np.random.default_rng(draw(st.integers(0, 99))).normal(size=(len(falling), 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return falling, (vectors @ vectors.T).astype(np.float32)


@given(similarities(), st.integers(0, 20))
def test_no_strength_keeps_the_order(records, limit):
    assert diversify(*records, 0.0, limit) == list(range(len(records[0])))[:limit]


@given(similarities(), st.floats(0, 1), st.integers(0, 20))
def test_diversifying_gives_each_record_once_up_to_the_limit(records, strength, limit):
    placed = diversify(*records, strength, limit)
    assert len(placed) == min(limit, len(records[0]))
    assert len(set(placed)) == len(placed)


@given(similarities(), st.floats(0, 1))
def test_the_best_record_stays_first(records, strength):
    assert diversify(*records, strength, 20)[:1] == [0][: len(records[0])]


def test_repetitions_go_behind_what_is_new():
    values = np.array([0.9, 0.89, 0.88, 0.5, 0.4])
    assert diversify(values, same_topic("aaabc"), 0.5, 5) == [0, 3, 4, 1, 2]


@pytest.mark.parametrize("scale", [0.016, 1.0, 25.0])
def test_the_scale_of_the_scores_does_not_matter(scale):
    values, similarity = np.array([1.0, 0.95, 0.6, 0.55, 0.1]), same_topic("aabbc")
    for strength in (0.05, 0.3, 0.6):
        expected = diversify(values, similarity, strength, 5)
        assert diversify(values * scale, similarity, strength, 5) == expected
