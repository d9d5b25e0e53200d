"""The steps behind the scores: neighbours and sessions, questions, recency, ties, repetition."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.ranking import (
    CONTEXT_TOKENS,
    NEIGHBOURS,
    OFFSETS,
    QUESTION_PENALTY,
    QUESTION_TOKENS,
    SESSION_SHARE,
    SESSION_SIZE,
    TIE,
    Surroundings,
    blend_recency,
    decay,
    diversify,
    find_surroundings,
    level_ties,
    penalise_questions,
    select_best,
    sort_places,
    spread_context,
)

DAY = 86_400_000_000
NOW = 1_800_000_000_000_000
SIZE = 12

shares = st.integers(-1000, 1000).map(lambda number: number / 1000)
scores = st.lists(shares, min_size=1, max_size=SIZE).map(np.array)
times = st.integers(NOW - 4000 * DAY, NOW + 400 * DAY)
half_lives = st.floats(1, 1e18)


@st.composite
def talks(draw):
    """Scores, who is visible, lengths, the session of each record (-1: none), and the order of the conversations."""
    size = draw(st.integers(1, SIZE))
    values = np.array(draw(st.lists(st.floats(0, 1), min_size=size, max_size=size)))
    visible = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    tokens = np.array(draw(st.lists(st.integers(0, 300), min_size=size, max_size=size)), dtype=np.int32)
    sessions = np.array(draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size)), dtype=np.int32)
    order = [place for place in draw(st.permutations(range(size))) if sessions[place] >= 0]
    order.sort(key=lambda place: sessions[place])
    return values, visible, tokens, sessions, np.array(order, dtype=np.int32)


def everybody(size):
    return np.ones(size, dtype=bool)


def talk(size, *, sessions=None, visible=None, counted=None) -> Surroundings:
    """Surroundings of records that follow each other, all in one session if none are given."""
    sessions = np.zeros(size, dtype=np.int32) if sessions is None else np.array(sessions, dtype=np.int32)
    order = np.argsort(sessions, kind="stable").astype(np.int32)
    visible = everybody(size) if visible is None else np.array(visible)
    return find_surroundings(order[sessions[order] >= 0], sessions, visible, visible if counted is None else counted)


def spread(values, around, *, tokens=None, visible=None):
    size = len(values)
    lengths = np.array([10] * size if tokens is None else tokens, dtype=np.int32)
    visible = everybody(size) if visible is None else np.array(visible)
    return spread_context(np.array(values, dtype=np.float64), visible, lengths, around)


# Surroundings


def test_neighbours_are_those_two_and_one_before_and_after():
    beside = talk(4).beside
    assert dict(zip(OFFSETS, beside.tolist(), strict=True)) == {
        -2: [-1, -1, 0, 1],
        -1: [-1, 0, 1, 2],
        1: [1, 2, 3, -1],
        2: [2, 3, -1, -1],
    }


def test_neighbours_follow_the_order_of_the_conversation():
    order, sessions = np.array([2, 0, 1], dtype=np.int32), np.zeros(3, dtype=np.int32)
    beside = find_surroundings(order, sessions, everybody(3), everybody(3)).beside
    assert beside[OFFSETS.index(1)].tolist() == [1, -1, 0]


@given(talks())
def test_neighbours_are_the_nearest_visible_records_of_the_same_session(talks):
    _, visible, _, sessions, order = talks
    around = find_surroundings(order, sessions, visible, visible)
    expected = np.full((len(OFFSETS), len(sessions)), -1)
    for session in set(sessions.tolist()) - {-1}:
        row = [place for place in order.tolist() if sessions[place] == session and visible[place]]
        for at, place in enumerate(row):
            for index, offset in enumerate(OFFSETS):
                if 0 <= at + offset < len(row):
                    expected[index, place] = row[at + offset]
    assert (around.beside == expected).all()


@given(talks())
def test_the_size_of_a_session_is_the_number_of_records_that_count(talks):
    _, counted, _, sessions, order = talks
    around = find_surroundings(order, sessions, everybody(len(sessions)), counted)
    expected = [int((counted & (sessions == session)).sum()) if session >= 0 else 0 for session in sessions]
    assert around.sizes.tolist() == expected


# Context


def test_neighbours_and_the_best_of_the_session_add_their_shares():
    context = spread([0.1, 0.4, 0.8], talk(3))
    assert context[0] == pytest.approx(NEIGHBOURS[0] * 0.4 + NEIGHBOURS[1] * 0.8 + SESSION_SHARE * 0.8)
    assert context[1] == pytest.approx(NEIGHBOURS[0] * (0.1 + 0.8) + SESSION_SHARE * 0.8)


def test_a_record_outside_of_sessions_gets_no_context():
    assert spread([0.1, 0.9, 0.5], talk(3, sessions=[-1, 0, 0]))[0] == 0


def test_a_record_alone_in_its_session_gets_no_context():
    assert spread([0.5], talk(1)).tolist() == [0]


def test_what_another_session_says_adds_nothing():
    together = spread([0.2, 0.3, 0.9, 0.9], talk(4, sessions=[0, 0, 1, 1]))
    assert together[:2].tolist() == spread([0.2, 0.3], talk(2)).tolist()


@given(talks())
def test_context_is_bounded_by_the_best_score_around(talks):
    values, visible, tokens, sessions, order = talks
    context = spread(values, find_surroundings(order, sessions, visible, visible), tokens=tokens, visible=visible)
    most = 2 * sum(NEIGHBOURS) + SESSION_SHARE
    for place, session in enumerate(sessions):
        around = values[visible & (sessions == session)]
        assert 0 <= context[place] <= most * max(around, default=0) + 1e-12


@given(talks())
def test_who_is_not_visible_gives_and_gets_nothing(talks):
    values, visible, tokens, sessions, order = talks
    around = find_surroundings(order, sessions, visible, visible)
    context = spread(values, around, tokens=tokens, visible=visible)
    louder = spread(np.where(visible, values, 1.0), around, tokens=tokens, visible=visible)
    assert (context[~visible] == 0).all()
    assert (context == louder).all()


@given(talks(), st.randoms())
def test_the_order_of_the_records_does_not_matter_to_their_context(talks, random):
    values, visible, tokens, sessions, order = talks
    moved = list(range(len(values)))
    random.shuffle(moved)
    places = np.argsort(moved)  # where each record went
    one = spread(values, find_surroundings(order, sessions, visible, visible), tokens=tokens, visible=visible)
    around = find_surroundings(places[order].astype(np.int32), sessions[moved], visible[moved], visible[moved])
    assert spread(values[moved], around, tokens=tokens[moved], visible=visible[moved]) == pytest.approx(one[moved])


def test_long_records_take_less_context():
    lengths = (1, CONTEXT_TOKENS, 2 * CONTEXT_TOKENS, 10 * CONTEXT_TOKENS)
    contexts = [spread([0.1, 0.8], talk(2), tokens=[tokens, 10])[0] for tokens in lengths]
    assert contexts[0] == contexts[1]
    assert contexts[2:] == pytest.approx([contexts[0] / 2, contexts[0] / 10])


def test_a_long_session_says_less_about_each_of_its_records():
    around = talk(2)
    apart = replace(around, beside=np.full_like(around.beside, -1))

    def context(size):
        return spread([0.0, 0.8], replace(apart, sizes=np.full(2, size, dtype=np.int32)))[0]

    assert context(2) == context(SESSION_SIZE)
    assert context(10 * SESSION_SIZE) == pytest.approx(context(2) / 10)


def test_a_session_is_as_long_as_it_is_however_little_of_it_is_selected():
    visible, counted = [True, True, *[False] * (2 * SESSION_SIZE - 2)], everybody(2 * SESSION_SIZE)
    around = talk(2 * SESSION_SIZE, visible=visible, counted=counted)
    values = [0.0, 0.8, *[0.9] * (2 * SESSION_SIZE - 2)]
    assert spread(values, around, visible=visible)[0] == pytest.approx((NEIGHBOURS[0] + SESSION_SHARE / 2) * 0.8)


# Questions


def penalty(asks, tokens):
    return float(penalise_questions(np.array([asks]), np.array([tokens], dtype=np.int32))[0])


def test_a_short_question_loses_the_whole_penalty():
    assert penalty(True, QUESTION_TOKENS[0]) == pytest.approx(QUESTION_PENALTY)
    assert penalty(True, 0) == pytest.approx(QUESTION_PENALTY)


@pytest.mark.parametrize(("asks", "tokens"), [(True, QUESTION_TOKENS[1]), (True, 1000), (False, 1)])
def test_long_questions_and_what_asks_nothing_lose_nothing(asks, tokens):
    assert penalty(asks, tokens) == 0


def test_the_penalty_fades_with_the_length():
    lost = [penalty(True, tokens) for tokens in range(QUESTION_TOKENS[1] + 5)]
    assert all(one >= other for one, other in pairwise(lost))
    assert penalty(True, sum(QUESTION_TOKENS) // 2) == pytest.approx(QUESTION_PENALTY / 2)


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
