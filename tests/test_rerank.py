"""Reranking: a budget of time, scores that are checked, and the order that they make."""

from __future__ import annotations

import math
from array import array
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.errors import ModelNotFoundError, RecallError, RerankError
from recall_core.rerank import BATCH, order_reranked, rerank

TEXTS = [f"text {number}" for number in range(3 * BATCH + 1)]


class Stopwatch:
    """Shows seconds, and moves on when told to."""

    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        return self.seconds


def stand_still():
    return 0.0


def lengths(query, texts):
    return [float(len(text)) for text in texts]


def rerank_by(scores, texts=TEXTS[:3]):
    return rerank("query", texts, lambda query, texts: scores, budget=1.0, clock=stand_still)


# Whom is asked, and for what


def test_an_object_with_score_is_asked():
    class Lengths:
        def score(self, query, texts):
            return lengths(query, texts)

    assert rerank("query", ["a", "bcd"], Lengths(), budget=1.0, clock=stand_still) == [1.0, 3.0]


def test_a_function_is_asked():
    assert rerank("query", ["a", "bcd"], lengths, budget=1.0, clock=stand_still) == [1.0, 3.0]


def test_an_object_with_score_that_can_be_called_is_asked_for_its_score():
    class Both:
        def __call__(self):
            raise AssertionError

        def score(self, query, texts):
            return lengths(query, texts)

    assert rerank("query", ["a"], Both(), budget=1.0, clock=stand_still) == [1.0]


def test_a_reranker_gets_the_query_and_every_text_once_in_order():
    seen = []

    def score(query, texts):
        assert query == "what?"
        seen.extend(texts)
        return [0.0] * len(texts)

    rerank("what?", TEXTS, score, budget=1.0, clock=stand_still)
    assert seen == TEXTS


def test_no_texts_ask_nobody():
    assert rerank("query", [], None, budget=1.0, clock=stand_still) == []


# The budget


@given(st.integers(0, 60), st.floats(0, 20), st.floats(0, 5))
def test_batches_are_scored_until_the_time_is_used_up(count, budget, cost):
    stopwatch, texts = Stopwatch(), ["a"] * count
    sizes = []

    def score(query, texts):
        stopwatch.seconds += cost
        sizes.append(len(texts))
        return [1.0] * len(texts)

    scores = rerank("query", texts, score, budget=budget, clock=stopwatch)
    started = [100.0]
    for _ in sizes:
        started.append(started[-1] + cost)
    assert len(scores) == count
    assert scores == [1.0] * sum(sizes) + [None] * (count - sum(sizes))
    assert all(size == BATCH for size in sizes[:-1])
    assert all(moment - 100.0 < budget for moment in started[1 : len(sizes)])
    assert sum(sizes) == count or started[len(sizes)] - 100.0 >= budget


def test_a_slow_reranker_leaves_the_rest():
    stopwatch = Stopwatch()

    def score(query, texts):
        stopwatch.seconds += 0.75
        return lengths(query, texts)

    scores = rerank("query", TEXTS, score, budget=1.0, clock=stopwatch)
    assert [value is None for value in scores] == [False] * 2 * BATCH + [True] * (BATCH + 1)


def test_a_budget_of_zero_scores_the_first_batch():
    scores = rerank("query", TEXTS, lengths, budget=0, clock=stand_still)
    assert scores == [6.0] * BATCH + [None] * (len(TEXTS) - BATCH)


def test_a_budget_without_end_scores_everything():
    assert None not in rerank("query", TEXTS, lengths, budget=math.inf, clock=stand_still)


# Scores that are none


@pytest.mark.parametrize(
    "scores",
    [
        [1, 0.5, Fraction(1, 4)],
        (1, 0.5, 0.25),
        np.array([1, 0.5, 0.25], np.float32),
        [np.float32(1), np.float64(0.5), np.float16(0.25)],
        array("d", [1, 0.5, 0.25]),
    ],
    ids=["list", "tuple", "array", "scalars", "stdlib"],
)
def test_numbers_of_any_kind_are_scores(scores):
    found = rerank_by(scores)
    assert found == [1.0, 0.5, 0.25]
    assert {type(value) for value in found} == {float}


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([1.0, 2.0], "gave 2 scores for 3 texts"),
        ([1.0, 2.0, 3.0, 4.0], "gave 4 scores for 3 texts"),
        ([], "gave 0 scores for 3 texts"),
        (None, "gave a NoneType"),
        (1.0, "gave a float"),
        ("123", "gave a str"),
        (b"123", "gave a bytes"),
        ({0: 1.0, 1: 2.0, 2: 3.0}, "gave a dict"),
        (iter([1.0, 2.0, 3.0]), "gave a list_iterator"),
        (np.array(1.0), "gave a ndarray"),
        (np.ones((3, 1)), r"score 0 of 3 is \[1\.0\]"),
        (["high", "low", "low"], "score 0 of 3 is 'high'"),
        ([1.0, None, 1.0], "score 1 of 3 is None"),
        ([1.0, 2.0, math.nan], "score 2 of 3 is nan"),
        (np.array([1.0, -math.inf, 1.0]), "score 1 of 3 is -inf"),
        ([10**400, 1, 1], "score 0 of 3 is 10"),
        ([1j, 1, 1], "score 0 of 3 is 1j"),
    ],
)
def test_what_is_no_score_is_named_in_the_error(scores, said):
    with pytest.raises(RerankError, match=f"^the reranker(?:'s)? {said}"):
        rerank_by(scores)


def test_a_fault_in_a_later_batch_is_an_error_too():
    with pytest.raises(RerankError, match="gave 1 scores for 8 texts"):
        rerank(
            "query", TEXTS, lambda query, texts: [1.0] * (8 if "text 0" in texts else 1), budget=1, clock=stand_still
        )


@pytest.mark.parametrize("fault", [RuntimeError("out of memory"), ModelNotFoundError("out of memory")])
def test_whatever_a_reranker_raises_is_an_error_of_recall_core(fault):
    def fail(query, texts):
        raise fault

    with pytest.raises(RerankError, match=f"^the reranker failed: {type(fault).__name__}: out of memory") as caught:
        rerank("query", TEXTS, fail, budget=1.0, clock=stand_still)
    assert isinstance(caught.value, RecallError)
    assert caught.value.__cause__ is fault


def test_an_error_of_reranking_stays_itself():
    fault = RerankError("no quota left")

    def fail(query, texts):
        raise fault

    with pytest.raises(RerankError) as caught:
        rerank("query", TEXTS, fail, budget=1.0, clock=stand_still)
    assert caught.value is fault


def test_a_reranker_that_wants_other_arguments_is_an_error_of_recall_core():
    with pytest.raises(RerankError, match="TypeError"):
        rerank("query", TEXTS, lambda query: [], budget=1.0, clock=stand_still)


def test_an_interrupt_is_let_through():
    def interrupt(query, texts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rerank("query", TEXTS, interrupt, budget=1.0, clock=stand_still)


# The order


def test_scored_items_come_first_and_the_rest_behind_in_its_order():
    assert order_reranked("abcdef", [0.1, None, 0.9, None]) == ["c", "a", "b", "d", "e", "f"]


def test_equal_scores_keep_the_order():
    assert order_reranked("abcd", [0.0, 1.0, -0.0, 1.0]) == ["b", "d", "a", "c"]


@given(st.lists(st.none() | st.integers(-3, 3).map(float)), st.integers(0, 5))
def test_an_order_has_every_item_once(scores, beyond):
    items = list(range(len(scores) + beyond))
    known = dict(enumerate(scores))
    ordered = order_reranked(items, scores)
    assert sorted(ordered) == items
    scored = [item for item in ordered if known.get(item) is not None]
    assert ordered[: len(scored)] == scored == sorted(scored, key=lambda item: (-known[item], item))
    assert ordered[len(scored) :] == sorted(ordered[len(scored) :])
