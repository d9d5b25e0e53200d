"""The steps behind the scores: neighbours and sessions, questions, recency, ties, repetition."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.ranking import (
    CONTEXT_TOKENS,
    NEIGHBOURS,
    QUESTION_PENALTY,
    QUESTION_TOKENS,
    SESSION_SHARE,
    SESSION_SIZE,
    TIE,
    Ranked,
    blend_recency,
    decay,
    diversify,
    penalise_questions,
    sort_ranked,
    spread_context,
)

DAY = 86_400_000_000
NOW = 1_800_000_000_000_000
TALK, OTHER = ("user", "talk"), ("user", "other")

scores = st.floats(-1, 1)
times = st.integers(NOW - 4000 * DAY, NOW + 400 * DAY)


def item(key: int, score: float = 0.5, **fields) -> Ranked:
    defaults = {"session": None, "created_at": NOW, "tokens": 10, "asks": False}
    return Ranked(record_key=key, record_id=f"r{key:03}", chunk_key=1000 + key, score=score, **{**defaults, **fields})


@st.composite
def lists_of_items(draw, max_size=15):
    keys = draw(st.lists(st.integers(1, 99), unique=True, max_size=max_size))
    sessions = st.sampled_from([None, TALK, OTHER])
    return [
        item(
            key,
            draw(scores),
            session=draw(sessions),
            created_at=draw(times),
            tokens=draw(st.integers(0, 300)),
            asks=draw(st.booleans()),
        )
        for key in keys
    ]


def in_rows(items: list[Ranked]) -> dict[int, dict[int, int]]:
    """Neighbours as the store tells them: the items of a session, one after the other."""
    neighbours: dict[int, dict[int, int]] = {}
    for session in {one.session for one in items if one.session is not None}:
        row = [one.record_key for one in items if one.session == session]
        for place, key in enumerate(row):
            beside = {offset: place + offset for offset in (-2, -1, 1, 2) if 0 <= place + offset < len(row)}
            neighbours[key] = {offset: row[other] for offset, other in beside.items()}
    return neighbours


def spread(items, neighbours=None, sizes=None) -> dict[int, Ranked]:
    beside = in_rows(items) if neighbours is None else neighbours
    sizes = sizes or {TALK: 5, OTHER: 5}
    return {one.record_key: one for one in spread_context({one.record_key: one for one in items}, beside, sizes)}


def keys_of(items) -> list[int]:
    return [one.record_key for one in items]


# Context


def test_neighbours_and_the_best_of_the_session_add_their_shares():
    found = spread([item(1, 0.1, session=TALK), item(2, 0.4, session=TALK), item(3, 0.8, session=TALK)])
    expected = NEIGHBOURS[1] * 0.4 + NEIGHBOURS[2] * 0.8 + SESSION_SHARE * 0.8
    assert found[1].context == pytest.approx(expected)
    assert found[1].score == pytest.approx(0.1 + expected)


def test_a_record_outside_of_sessions_gets_no_context():
    found = spread([item(1, 0.1), item(2, 0.9)], {1: {1: 2}, 2: {-1: 1}})
    assert (found[1].score, found[1].context) == (0.1, 0.0)


def test_a_record_alone_in_its_session_gets_no_context():
    assert spread([item(1, 0.5, session=TALK)], sizes={TALK: 1})[1].score == 0.5


def test_what_another_session_says_adds_nothing():
    quiet = [item(1, 0.2, session=TALK), item(2, 0.2, session=TALK)]
    loud = [item(3, 0.9, session=OTHER), item(4, 0.9, session=OTHER)]
    assert spread([*quiet, *loud])[1] == spread(quiet)[1]


@given(lists_of_items())
def test_context_is_bounded_by_the_best_and_the_worst_score_around(items):
    most = 2 * sum(NEIGHBOURS.values()) + SESSION_SHARE
    for one in spread(items).values():
        around = [abs(other.score) for other in items if other.session == one.session]
        assert abs(one.context) <= most * max(around) + 1e-12


@given(lists_of_items())
def test_context_changes_nothing_but_the_score(items):
    for one, after in zip(items, spread(items).values(), strict=True):
        assert (after.record_key, after.chunk_key, after.tokens) == (one.record_key, one.chunk_key, one.tokens)
        assert after.score == pytest.approx(one.score + after.context)


@given(lists_of_items())
def test_the_order_of_the_items_does_not_matter(items):
    beside = in_rows(items)
    assert spread(items, beside) == spread(items[::-1], beside)


def test_long_records_take_less_context():
    contexts = [
        spread([item(1, 0.1, session=TALK, tokens=tokens), item(2, 0.8, session=TALK)])[1].context
        for tokens in (1, CONTEXT_TOKENS, 2 * CONTEXT_TOKENS, 10 * CONTEXT_TOKENS)
    ]
    assert contexts[0] == contexts[1]
    assert contexts[2] == pytest.approx(contexts[0] / 2)
    assert contexts[3] == pytest.approx(contexts[0] / 10)


def test_a_long_session_says_less_about_each_of_its_records():
    def context(size):
        return spread([item(1, 0.0, session=TALK), item(2, 0.8, session=TALK)], {}, {TALK: size})[1].context

    assert context(2) == context(SESSION_SIZE)
    assert context(10 * SESSION_SIZE) == pytest.approx(context(2) / 10)


def test_a_neighbour_that_was_not_scored_adds_nothing():
    assert spread([item(1, 0.5, session=TALK)], {1: {1: 77}}, {TALK: 1})[1].score == 0.5


# Questions


def test_a_short_question_in_a_session_is_lowered():
    (found,) = penalise_questions([item(1, 0.5, session=TALK, asks=True, tokens=QUESTION_TOKENS[0])])
    assert found.score == pytest.approx(0.5 - QUESTION_PENALTY)


@pytest.mark.parametrize(
    "fields",
    [
        {"session": TALK, "asks": True, "tokens": QUESTION_TOKENS[1]},
        {"session": TALK, "asks": False},
        {"session": None, "asks": True},
    ],
    ids=["long", "no question", "no session"],
)
def test_other_records_are_not_lowered(fields):
    assert penalise_questions([item(1, 0.5, **fields)]) == [item(1, 0.5, **fields)]


def test_the_penalty_fades_with_the_length():
    lengths = range(QUESTION_TOKENS[1] + 5)
    found = penalise_questions([item(1, 0.5, session=TALK, asks=True, tokens=tokens) for tokens in lengths])
    assert all(one.score <= other.score for one, other in pairwise(found))


# Recency


@given(times, st.floats(1, 1e18))
def test_decay_lies_above_0_and_is_at_most_1(created_at, half_life):
    assert 0 < decay(created_at, NOW, half_life) <= 1


@given(times, times, st.floats(1, 1e18))
def test_what_is_older_has_decayed_no_less(one, other, half_life):
    older, newer = sorted([one, other])
    assert decay(older, NOW, half_life) <= decay(newer, NOW, half_life)


@pytest.mark.parametrize(("days", "expected"), [(0, 1.0), (30, 0.5), (60, 0.25), (-5, 1.0)])
def test_decay_halves_with_each_half_life_and_the_future_counts_as_now(days, expected):
    assert decay(NOW - days * DAY, NOW, 30 * DAY) == pytest.approx(expected)


@given(lists_of_items(), st.floats(1, 1e18))
def test_no_weight_of_recency_leaves_the_scores_and_notes_the_decay(items, half_life):
    for before, after in zip(items, blend_recency(items, NOW, half_life, 0.0), strict=True):
        assert (after.score, after.decay) == (before.score, decay(before.created_at, NOW, half_life))


@given(lists_of_items())
def test_all_the_weight_on_recency_orders_by_time_alone(items):
    blended = blend_recency(items, NOW, 30 * DAY, 1.0)
    assert [one.score for one in blended] == pytest.approx([one.decay for one in blended])


def test_a_share_of_recency_is_taken_of_the_best_score():
    items = [item(1, 0.8, created_at=NOW - 30 * DAY), item(2, 0.4)]
    found = blend_recency(items, NOW, 30 * DAY, 0.3)
    assert [one.score for one in found] == pytest.approx([0.7 * 1.0 + 0.3 * 0.5, 0.7 * 0.5 + 0.3 * 1.0])


@given(lists_of_items(), st.floats(0, 1))
def test_of_two_equally_old_records_the_better_stays_ahead(items, weight):
    same_age = [item(one.record_key, one.score) for one in items]
    blended = {one.record_key: one.score for one in blend_recency(same_age, NOW, 30 * DAY, weight)}
    ordered = sorted(same_age, key=lambda one: one.score)
    assert all(blended[low.record_key] <= blended[high.record_key] for low, high in pairwise(ordered))


# Order


@given(lists_of_items(), st.randoms())
def test_the_order_depends_on_the_items_alone(items, random):
    shuffled = [*items]
    random.shuffle(shuffled)
    assert sort_ranked(shuffled) == sort_ranked(items)


@given(lists_of_items())
def test_sorted_scores_fall_and_are_what_they_were(items):
    ordered = sort_ranked(items)
    before = {one.record_key: one.score for one in items}
    assert sorted(keys_of(ordered)) == sorted(keys_of(items))
    assert all(one.score >= other.score for one, other in pairwise(ordered))
    assert all(abs(one.score - before[one.record_key]) <= TIE * len(items) for one in ordered)


def test_of_equal_scores_the_newer_comes_first_then_the_smaller_id():
    items = [item(3, created_at=NOW - 1), item(2), item(1), item(4, created_at=NOW + 1), item(5, 0.9)]
    assert keys_of(sort_ranked(items)) == [5, 4, 1, 2, 3]


def test_scores_that_differ_by_the_rounding_of_float32_are_equal():
    items = [item(1, 0.5, created_at=NOW - 2), item(2, 0.5 - 6e-8, created_at=NOW - 1), item(3, 0.5 - 1.2e-7)]
    assert keys_of(sort_ranked(items)) == [3, 2, 1]
    assert {one.score for one in sort_ranked(items)} == {0.5}


def test_scores_that_differ_by_more_are_not_equal():
    assert keys_of(sort_ranked([item(1, 0.5, created_at=NOW - 1), item(2, 0.5 - 1e-5)])) == [1, 2]


# Diversity


def same_topic(one: int, other: int) -> float:
    return 1.0 if one // 10 == other // 10 else 0.0


@given(lists_of_items(), st.integers(0, 20))
def test_no_strength_keeps_the_order(items, limit):
    ordered = sort_ranked(items)
    assert diversify(ordered, lambda one, other: math.cos(one * other), 0.0, limit) == ordered[:limit]


@given(lists_of_items(), st.floats(0, 1), st.integers(0, 20))
def test_diversifying_gives_each_item_once_up_to_the_limit(items, strength, limit):
    found = diversify(sort_ranked(items), lambda one, other: math.sin(one + other), strength, limit)
    assert len(found) == min(limit, len(items))
    assert len(set(keys_of(found))) == len(found)


@given(lists_of_items(), st.floats(0, 1))
def test_the_best_item_stays_first(items, strength):
    ordered = sort_ranked(items)
    assert diversify(ordered, same_topic, strength, 20)[:1] == ordered[:1]


def test_repetitions_go_behind_what_is_new():
    ordered = [item(11, 0.9), item(12, 0.89), item(13, 0.88), item(21, 0.5), item(31, 0.4)]
    assert keys_of(diversify(ordered, same_topic, 0.5, 5)) == [11, 21, 31, 12, 13]


@pytest.mark.parametrize("scale", [0.016, 1.0, 25.0])
def test_the_scale_of_the_scores_does_not_matter(scale):
    ordered = [item(11, 1.0), item(12, 0.95), item(21, 0.6), item(22, 0.55), item(31, 0.1)]
    scaled = [item(one.record_key, one.score * scale) for one in ordered]
    for strength in (0.05, 0.3, 0.6):
        expected = keys_of(diversify(ordered, same_topic, strength, 5))
        assert keys_of(diversify(scaled, same_topic, strength, 5)) == expected
