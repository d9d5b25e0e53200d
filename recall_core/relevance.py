"""How relevant is a hit, from 0 to 1: a score means something only within one result, a relevance across queries.

It is judged by what a text says itself, by its length and by how well the memory knows what the query is about. The
weights were fitted on questions that the searched memories answer against questions that they don't (docs/ranking.md).
It tells "there is something on this topic here", not "the answer is here".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .models import Mode

Scores = NDArray[np.float64]

KEYWORD_WEIGHT = 0.4  # in the evidence of both legs, whatever weighs in the order
CONTEXT_SHARE = 0.25  # of what the turns around a memory say: they order it, but it is relevant by what it says itself
SHORT = 15  # tokens; a longer text resembles more questions by chance
NEAR, FAR = 1.0, 2.0  # between them a query's distance tells something
FEW = 10  # texts; among fewer, hardly any shares a word with a query by chance, and idf can't tell that yet
MANY, LARGEST = 300, 5_000  # texts; between them the best of more unrelated texts looks less unrelated


@dataclass(frozen=True, slots=True)
class Texts:
    """What is known of each text, as arrays of the same length: the evidence for it (at most 1), the share of the
    query's words that it holds, its tokens.
    """

    evidence: Scores
    shared: Scores
    tokens: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Background:
    """What holds for all texts that are found: `known` is the share of the query's words, by their idf, that occur in
    any; `distance` how far the query lies from the mean of the stored vectors, in their own mean distances; `size` the
    number of texts that were searched.
    """

    known: float
    distance: float
    size: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Log-odds: of the evidence, the shared words of a memory with few texts, the known words, the distance, each
    factor e in length and in size; and what they start from.
    """

    evidence: float
    shared: float
    known: float
    distance: float
    length: float
    size: float
    start: float


CURVES: dict[Mode, Curve] = {
    "hybrid": Curve(evidence=22.0, shared=4.0, known=1.0, distance=-3.0, length=-1.2, size=-0.8, start=-2.4),
    "keyword": Curve(evidence=12.0, shared=4.0, known=2.0, distance=0.0, length=-0.8, size=-0.4, start=-2.3),
    "semantic": Curve(evidence=19.0, shared=0.0, known=0.0, distance=-3.0, length=-1.0, size=-0.8, start=-3.2),
}


def judge(mode: Mode, texts: Texts, background: Background) -> Scores:
    """Return the relevance of texts that a mode has found: a logistic function of a weighted sum."""
    curve, size = CURVES[mode], max(background.size, 1)
    odds = curve.evidence * texts.evidence + curve.shared * texts.shared * FEW / (FEW + size)
    odds += curve.length * np.log(np.maximum(texts.tokens, SHORT) / SHORT)
    odds += curve.known * background.known
    odds += curve.distance * (min(max(background.distance, NEAR), FAR) - NEAR)
    odds += curve.size * math.log(min(max(size, MANY), LARGEST) / MANY)
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(odds + curve.start, -50.0, 50.0))), dtype=np.float64)


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
