"""The second stage of a search: the first hits are read again, by a reranker and for a limited time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, TypeVar

from .errors import RerankError
from .models import Reranker, RerankFunction

BATCH = 8  # texts between two looks at the clock

Item = TypeVar("Item")


def rerank(
    query: str,
    texts: Sequence[str],
    reranker: Reranker | RerankFunction,
    *,
    budget: float,
    clock: Callable[[], float],
) -> list[float | None]:
    """Return the score of each text, larger is better; None for those that the time did not suffice for.

    The texts are scored in the order given, 8 at a time, until `budget` seconds of `clock` are used up. The first 8
    always are, and nothing is interrupted. Raises RerankError, whatever the reranker raised, or if what it gave is not
    one finite number for each text.
    """
    score = reranker.score if isinstance(reranker, Reranker) else reranker
    scores: list[float | None] = []
    start = clock()
    while len(scores) < len(texts) and (not scores or clock() - start < budget):
        scores += _score(score, query, texts[len(scores) : len(scores) + BATCH])
    return scores + [None] * (len(texts) - len(scores))


def order_reranked(items: Sequence[Item], scores: Sequence[float | None]) -> list[Item]:
    """Put items in the order of their scores, the largest first; of equal ones the order stays.

    Those without a score stay behind, in their order: None, and items beyond the end of `scores`.
    """
    scored = [(item, score) for item, score in zip(items, scores, strict=False) if score is not None]
    rest = [item for place, item in enumerate(items) if place >= len(scores) or scores[place] is None]
    return [item for item, _ in sorted(scored, key=lambda pair: -pair[1])] + rest


def _score(score: RerankFunction, query: str, texts: Sequence[str]) -> list[float]:
    try:
        values = _as_list(score(query, texts))
        count = len(values)
    except RerankError:
        raise
    except Exception as error:  # a reranker is foreign code, and a search does without
        raise RerankError(f"the reranker failed: {type(error).__name__}: {error}") from error
    if count != len(texts):
        raise RerankError(
            f"the reranker gave {count} scores for {len(texts)} texts; it must return one for each of them"
        )
    return [_as_float(value, place, len(values)) for place, value in enumerate(values)]


def _as_list(given: Any) -> list[Any]:
    values = given.tolist() if hasattr(given, "tolist") else given  # arrays, tensors
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise RerankError(f"the reranker gave a {type(given).__name__}; it must return a list of numbers")
    return list(values)


def _as_float(value: Any, place: int, count: int) -> float:
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RerankError(f"the reranker's score {place} of {count} is {value!r}; it must be a finite number")
    return number
