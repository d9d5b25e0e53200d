"""How relevant is a hit, from 0 to 1: a score means something only within one result, a relevance across queries.

The best of many unrelated texts looks less unrelated than the best of few, so the curve's middle grows with the number
of texts that were searched. It was fitted on questions that the searched memories answer against questions that they
don't (docs/ranking.md), and tells "there is something on this topic here", not "the answer is here".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .models import Mode

STEEPNESS = 4.2
LARGEST = 5_000  # texts; beyond, the middle stays
CONTEXT_SHARE = 0.5  # of what the turns around a memory say: they order it, but it is relevant by what it says itself


@dataclass(frozen=True, slots=True)
class Curve:
    """The score that counts as relevance 0.5 when `size` texts are searched: base + growth x ln(size)."""

    base: float
    growth: float

    def middle(self, size: int) -> float:
        """Return the score of relevance 0.5."""
        return self.base + self.growth * math.log(min(max(size, 2), LARGEST))


CURVES: dict[Mode, Curve] = {
    "hybrid": Curve(base=0.070, growth=0.032),
    "keyword": Curve(base=0.040, growth=0.032),
    "semantic": Curve(base=0.130, growth=0.038),
}


def judge(mode: Mode, scores: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the relevance of fused scores in a mode, found among `size` texts: a logistic curve of score / middle."""
    ratios = scores / CURVES[mode].middle(size)
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(STEEPNESS * (ratios - 1.0), -50.0, 50.0))), dtype=np.float64)


def level(relevances: Sequence[float]) -> list[float]:
    """Return relevances that never rise down the list, as near to the given ones as can be: where one is above those
    before it, they all get their mean (isotonic regression by pooling adjacent violators, Ayer and others 1955).

    So a hit behind a less relevant one, which the turns around it brought up, is not judged down to that one.
    """
    pools: list[tuple[float, int]] = []  # sum and number of neighbouring values that share their mean
    for value in relevances:
        total, count = value, 1
        while pools and pools[-1][0] / pools[-1][1] < total / count:
            before, number = pools.pop()
            total, count = total + before, count + number
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]
