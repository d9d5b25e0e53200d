"""From evidence to an order: what turns around a memory say, how recent it is, and how unlike the ones before it.

The formulas and their gains are in docs/ranking.md. Nothing here reads a clock or a file. Arrays have an entry for each
record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .chunk_rows import QUESTION_TOKENS
from .fusion import TIE, Flags, Scores

NEIGHBOURS = (0.25, 0.125)  # share of a neighbouring turn's score by distance, each side
SESSION_SHARE = 0.5  # share of the best score in the session …
SESSION_SIZE = 40  # … in sessions up to so many records; longer ones say less about each of them
CONTEXT_TOKENS = 60  # records up to this length take all of their context; longer ones carry their own
QUESTION_PENALTY = 0.08  # a short question rarely holds the fact that is asked for

Places = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where records stand in their sessions: `beside` has the places of the records two before, one before, one after
    and two after, shape (4, records), -1 for none; `sessions` numbers the sessions, -1 for none; `sizes` counts the
    records of each record's session.
    """

    beside: Places
    sessions: Places
    sizes: Places


OFFSETS = (-2, -1, 1, 2)  # in the order of `beside`


def find_surroundings(order: Places, sessions: Places, visible: Flags, counted: Flags) -> Surroundings:
    """Return the surroundings of records, given their order in the conversations: only `visible` records are
    neighbours, `counted` ones count for the size of a session.
    """
    beside = np.full((len(OFFSETS), len(sessions)), -1, dtype=np.int32)
    present = order[visible[order]]
    for place, offset in enumerate(OFFSETS):
        step = abs(offset)
        earlier, later = present[:-step], present[step:]
        same = sessions[earlier] == sessions[later]
        here, there = (later, earlier) if offset < 0 else (earlier, later)
        beside[place, here[same]] = there[same]
    return Surroundings(beside, sessions, _count_sessions(sessions, counted))


def spread_context(scores: Scores, visible: Flags, tokens: NDArray[np.int32], around: Surroundings) -> Scores:
    """Return what neighbouring turns and the best of the session add to each record's score.

    Records that are not `visible` give and get nothing; `tokens` is the length of each record's best chunk.
    """
    known = np.where(visible, scores, 0.0)
    padded = np.append(known, 0.0)  # a neighbour at -1 is the last
    evidence = np.zeros(len(scores))
    for place, offset in enumerate(OFFSETS):
        evidence += NEIGHBOURS[abs(offset) - 1] * padded[around.beside[place]]
    inside = visible & (around.sessions >= 0)
    if inside.any():
        best = np.full(int(around.sessions.max()) + 1, -np.inf)
        np.maximum.at(best, around.sessions[inside], scores[inside])
        share = SESSION_SHARE * np.minimum(1.0, SESSION_SIZE / np.maximum(around.sizes, 1)) * (around.sizes > 1)
        evidence[inside] += share[inside] * best[around.sessions[inside]]
    gate = np.minimum(1.0, CONTEXT_TOKENS / np.maximum(tokens, 1))
    return np.asarray(np.where(inside, gate * evidence, 0.0), dtype=np.float64)


def penalise_questions(asks: Flags, tokens: NDArray[np.int32]) -> Scores:
    """Return what short questions lose."""
    full, none = QUESTION_TOKENS
    return np.asarray(asks * QUESTION_PENALTY * np.clip((none - tokens) / (none - full), 0.0, 1.0), dtype=np.float64)


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


def _count_sessions(sessions: Places, counted: Flags) -> Places:
    inside = sessions >= 0
    if not inside.any():
        return np.zeros(len(sessions), dtype=np.int32)
    sizes = np.bincount(sessions[inside & counted], minlength=int(sessions.max()) + 1)
    return np.where(inside, sizes[sessions], 0).astype(np.int32)
