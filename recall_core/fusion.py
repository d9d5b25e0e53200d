"""Two legs become one score. Evidence is an array with a score for each row; 0 means none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TIE = 5e-7  # float32 cosines of one and the same vector differ by up to a fifth of this, depending on its neighbours

Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ranks = NDArray[np.int64]


def fuse_weighted(keyword: Scores, meaning: Scores, keyword_weight: Scores | float) -> Scores:
    """Return the weighted sum of two scores that are comparable as they are (both at most 1)."""
    return np.asarray(keyword_weight * keyword + (1.0 - keyword_weight) * meaning, dtype=np.float64)


def fuse_reciprocal(legs: Sequence[tuple[Scores, Flags]], k: float, depth: int) -> tuple[Scores, Flags]:
    """Return reciprocal rank fusion, and which rows it has found: the sum of 1 / (k + rank) over the legs, ranks from 1
    (Cormack, Clarke and Büttcher 2009).

    Each leg comes with the rows that it has found, of which the best `depth` count. Equal scores share a rank.
    """
    scores, found = np.zeros(len(legs[0][0])), np.zeros(len(legs[0][0]), dtype=bool)
    for leg, seen in legs:
        ranks = rank_rows(leg, seen)
        counted = seen & (ranks <= depth)
        scores[counted] += 1.0 / (k + ranks[counted])
        found |= counted
    return scores, found


def rank_rows(scores: Scores, seen: Flags) -> Ranks:
    """Return the rank of each seen row, from 1, best first; equal scores share a rank. Others get 0."""
    ranks = np.zeros(len(scores), dtype=np.int64)
    rows = np.flatnonzero(seen)
    order = rows[np.argsort(-scores[rows], kind="stable")]
    if len(order):
        falls = np.diff(scores[order], prepend=np.inf) < -TIE
        ranks[order] = np.maximum.accumulate(np.where(falls, np.arange(1, len(order) + 1), 0))
    return ranks


def find_ranks(scores: Scores, seen: Flags, rows: NDArray[np.int32]) -> list[int | None]:
    """Return the ranks of some rows among the seen ones, from 1: how many score higher. None for those not seen."""
    others = scores[seen]
    return [1 + int(np.count_nonzero(others > scores[row] + TIE)) if seen[row] else None for row in rows.tolist()]


def blend_questions(whole: Scores, parts: Sequence[Scores]) -> Scores:
    """Return half the score for the whole query and half the best score for one of the questions in it."""
    if not parts:
        return whole
    return np.asarray(0.5 * whole + 0.5 * np.maximum.reduce(list(parts)), dtype=np.float64)
