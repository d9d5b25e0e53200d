"""How relevant is a hit, from 0 to 1: a score means something only within one result, a relevance across queries.

It is judged by what a text says itself, by its length and by how well the memory knows what the query is about. The
weights were fitted on questions that the searched memories answer against questions that they don't (docs/ranking.md).
It tells "there is something on this topic here", not "the answer is here".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .fusion import Scores
from .models import Mode

KEYWORD_WEIGHT = 0.4  # in the evidence of both legs, whatever weighs in the order
CONTEXT_SHARE = 0.25  # of what the turns around a memory say: they order it, but it is relevant by what it says itself
SHORT = 15  # tokens; a longer text resembles more questions by chance
NEAR, FAR = 1.0, 2.0  # between them a query's distance tells something


@dataclass(frozen=True, slots=True)
class Familiarity:
    """How well a memory knows what a query is about: `known` is the share of the query's words, by their idf, that
    occur in it; `distance` how far the query lies from the mean of the stored vectors, in their own mean distances.
    """

    known: float
    distance: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Log-odds: of the evidence (at most 1), of known words, of the distance, of each factor e in length; and what they
    start from.
    """

    evidence: float
    known: float
    distance: float
    length: float
    start: float


CURVES: dict[Mode, Curve] = {
    "hybrid": Curve(evidence=22.0, known=1.0, distance=-3.0, length=-1.2, start=-2.5),
    "keyword": Curve(evidence=12.0, known=2.0, distance=0.0, length=-1.0, start=-2.0),
    "semantic": Curve(evidence=19.0, known=0.0, distance=-3.0, length=-1.0, start=-3.0),
}


def judge(mode: Mode, evidence: Scores, tokens: NDArray[np.int32], familiarity: Familiarity) -> Scores:
    """Return the relevance of texts of so many tokens, by the evidence for each and what holds for all: a logistic
    function of the weighted sum.
    """
    curve = CURVES[mode]
    common = curve.start + curve.known * familiarity.known
    common += curve.distance * (min(max(familiarity.distance, NEAR), FAR) - NEAR)
    odds = common + curve.evidence * evidence + curve.length * np.log(np.maximum(tokens, SHORT) / SHORT)
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0))), dtype=np.float64)


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
