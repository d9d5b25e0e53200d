"""How relevant is a hit, from 0 to 1: a score means something only within one result, a relevance across queries.

The curves were fitted on questions that the searched memories answer against questions that they don't (see
docs/ranking.md). They tell "there is something on this topic here", not "the answer is here".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .models import Mode


@dataclass(frozen=True, slots=True)
class Curve:
    """A logistic curve over the fused score: relevance = 1 / (1 + exp(-slope x (score - middle)))."""

    slope: float
    middle: float

    def __call__(self, score: float) -> float:
        return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, self.slope * (score - self.middle)))))


CURVES: dict[Mode, Curve] = {
    "hybrid": Curve(slope=14.0, middle=0.30),
    "keyword": Curve(slope=14.0, middle=0.30),
    "semantic": Curve(slope=12.0, middle=0.40),
}


def judge(mode: Mode, score: float) -> float:
    """Return the relevance of a fused score in a mode."""
    return CURVES[mode](score)


def level(relevances: Sequence[float]) -> list[float]:
    """Return relevances that never rise down the list: none is above the one before it."""
    lowest, levelled = 1.0, []
    for value in relevances:
        lowest = min(lowest, value)
        levelled.append(lowest)
    return levelled
