"""Two legs become one score. Evidence is a mapping from chunk key to score; a missing key means no evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

TIE = 5e-7  # float32 cosines of one and the same vector differ by up to a fifth of this, depending on its neighbours

Evidence = Mapping[int, float]


def fuse_weighted(keyword: Evidence, meaning: Evidence, keyword_weight: float) -> dict[int, float]:
    """Return the weighted sum of two scores that are comparable as they are (both at most 1)."""
    keys = dict.fromkeys(keyword) | dict.fromkeys(meaning)
    return {
        key: keyword_weight * keyword.get(key, 0.0) + (1.0 - keyword_weight) * meaning.get(key, 0.0) for key in keys
    }


def fuse_reciprocal(legs: Sequence[Evidence], k: int = 60) -> dict[int, float]:
    """Return reciprocal rank fusion: the sum of 1 / (k + rank), ranks from 1 (Cormack, Clarke and Büttcher 2009).

    Equal scores share a rank.
    """
    scores: dict[int, float] = {}
    for leg in legs:
        last, shared = math.inf, 1
        for rank, key in enumerate(rank_keys(leg), start=1):
            if last - leg[key] > TIE:
                shared = rank
            last = leg[key]
            scores[key] = scores.get(key, 0.0) + 1.0 / (k + shared)
    return scores


def rank_keys(evidence: Evidence) -> list[int]:
    """Return the keys, best first; of equal scores the larger key, which is the newer chunk's."""
    ranked: list[int] = []
    equals: list[int] = []
    for key in sorted(evidence, key=evidence.__getitem__, reverse=True):
        if equals and evidence[equals[-1]] - evidence[key] > TIE:
            ranked += sorted(equals, reverse=True)
            equals = []
        equals.append(key)
    return ranked + sorted(equals, reverse=True)


def blend_questions(whole: Evidence, parts: Sequence[Evidence]) -> dict[int, float]:
    """Return half the score for the whole query and half the best score for one of the questions in it."""
    if not parts:
        return dict(whole)
    keys = dict.fromkeys(whole)
    for part in parts:
        keys |= dict.fromkeys(part)
    return {key: 0.5 * whole.get(key, 0.0) + 0.5 * max(part.get(key, 0.0) for part in parts) for key in keys}
