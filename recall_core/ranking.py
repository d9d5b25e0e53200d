"""From scores to an order: how recent a memory is, ties, and how unlike the ones before it.

Nothing here reads a clock or a file. Arrays have an entry for each record.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .fusion import TIE, Flags, Scores

Places = NDArray[np.int32]


def decay(created: NDArray[np.int64], now: int, half_life: float) -> Scores:
    """Return 0.5 ** (age / half-life), in (0, 1]; times and half-life in microseconds, future ages count as zero."""
    ages = np.maximum(0, now - created)
    return np.asarray(2.0 ** -np.minimum(ages / half_life, 1000.0), dtype=np.float64)


def blend_recency(scores: Scores, decays: Scores, weight: float) -> Scores:
    """Give recency its share: (1 - weight) x score / best score + weight x decay. Weight 0 changes nothing."""
    if weight <= 0 or not len(scores):
        return scores
    best = float(scores.max())
    return np.asarray((1.0 - weight) * scores / (best if best > 0 else 1.0) + weight * decays, dtype=np.float64)


def select_best(scores: Scores, found: Flags, most: int) -> Places:
    """Return the places of at least the best `most` found records, and of all that tie with the last of them."""
    places = np.flatnonzero(found)
    if len(places) > most:
        threshold = -np.partition(-scores[places], most - 1)[most - 1]
        places = places[scores[places] >= threshold - TIE]
    return places.astype(np.int32)


def sort_places(places: Places, scores: Scores, created: NDArray[np.int64], ids: Sequence[str]) -> list[int]:
    """Return places by score; of equal ones the newer comes first, then the smaller id.

    A score equals the one before it if it is less than 5e-7 below.
    """
    order = places[np.argsort(-scores[places], kind="stable")]
    tied = np.cumsum(np.diff(scores[order], prepend=np.inf) < -TIE)
    keys = zip(tied.tolist(), (-created[order]).tolist(), (ids[place] for place in order.tolist()), strict=True)
    return [place for _, place in sorted(zip(keys, order.tolist(), strict=True))]


def level_ties(scores: Scores, order: Sequence[int]) -> Scores:
    """Return the scores in an order from `sort_places`, with equal ones exactly equal: the highest of them."""
    sorted_scores = scores[np.asarray(order, dtype=np.int64)]
    descending = -np.sort(-sorted_scores)
    firsts = np.diff(descending, prepend=np.inf) < -TIE
    return np.asarray(descending[np.flatnonzero(firsts)[np.cumsum(firsts) - 1]], dtype=np.float64)


def diversify(scores: Scores, similarity: NDArray[np.float32], strength: float, limit: int) -> list[int]:
    """Return places reordered by maximal marginal relevance (Carbonell and Goldstein 1998); `scores` are in order.

    Each turn goes to the item with the largest (1 - strength) x score / best score - strength x similarity to the
    most similar item already placed; `similarity` has the shape (items, items). Strength 0 keeps the order.
    """
    best = float(scores.max()) if len(scores) else 0.0
    values = (1.0 - strength) * scores / (best if best > 0 else 1.0)  # RRF's scores are tiny, those of bm25 large
    closest, left, placed = np.zeros(len(scores)), np.ones(len(scores), dtype=bool), list[int]()
    while left.any() and len(placed) < limit:
        chosen = int(np.argmax(np.where(left, values - strength * closest, -np.inf)))
        placed.append(chosen)
        left[chosen] = False
        closest = np.maximum(closest, similarity[chosen])
    return placed
