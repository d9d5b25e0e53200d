"""From evidence to an order: what turns around a memory say, how recent it is, and how unlike the ones before it.

The formulas and their gains are in docs/ranking.md. Nothing here reads a clock or a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

NEIGHBOURS = {1: 0.25, 2: 0.125}  # share of a neighbouring turn's score by distance, each side
SESSION_SHARE = 0.5  # share of the best score in the session …
SESSION_SIZE = 40  # … in sessions up to so many records; longer ones say less about each of them
CONTEXT_TOKENS = 60  # records up to this length take all of their context; longer ones carry their own
QUESTION_PENALTY = 0.08  # a short question rarely holds the fact that is asked for
QUESTION_TOKENS = (20, 40)  # full penalty below the first length, none from the second on
TIE = 5e-7  # float32 cosines of one and the same vector differ by up to a fifth of this, depending on its neighbours

Session = tuple[str, str]  # scope and session id


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A record on its way to the result: its best chunk, and what each step has made of its score."""

    record_key: int
    record_id: str
    chunk_key: int
    session: Session | None
    created_at: int
    tokens: int
    asks: bool
    score: float
    context: float = 0.0
    decay: float = 1.0


def spread_context(
    items: Mapping[int, Ranked], neighbours: Mapping[int, Mapping[int, int]], sizes: Mapping[Session, int]
) -> list[Ranked]:
    """Add what neighbouring turns and the best of the session say to each item's score.

    `items` by record key; `neighbours` gives record keys by offset (-2, -1, 1, 2) for the items that have any;
    `sizes` the number of records of each session.
    """
    best: dict[Session, float] = {}
    for item in items.values():
        if item.session is not None:
            best[item.session] = max(best.get(item.session, 0.0), item.score)
    return [_with_context(item, items, neighbours.get(key, {}), best, sizes) for key, item in items.items()]


def _with_context(
    item: Ranked,
    items: Mapping[int, Ranked],
    beside: Mapping[int, int],
    best: Mapping[Session, float],
    sizes: Mapping[Session, int],
) -> Ranked:
    if item.session is None:
        return item
    evidence = sum(
        NEIGHBOURS[abs(offset)] * items[key].score
        for offset, key in sorted(beside.items())
        if abs(offset) in NEIGHBOURS and key in items
    )
    size = max(sizes.get(item.session, 1), 1)
    if size > 1:
        evidence += SESSION_SHARE * min(1.0, SESSION_SIZE / size) * best[item.session]
    gate = min(1.0, CONTEXT_TOKENS / max(item.tokens, 1))
    context = gate * evidence
    return replace(item, score=item.score + context, context=context)


def penalise_questions(items: Sequence[Ranked]) -> list[Ranked]:
    """Lower the score of short questions."""
    full, none = QUESTION_TOKENS
    return [
        replace(item, score=item.score - QUESTION_PENALTY * min(1.0, (none - item.tokens) / (none - full)))
        if item.asks and item.session is not None and item.tokens < none
        else item
        for item in items
    ]


def decay(created_at: int, now: int, half_life: float) -> float:
    """Return 0.5 ** (age / half-life), in (0, 1]; times and half-life in microseconds, future ages count as zero."""
    age = max(0, now - created_at)
    return float(2.0 ** -min(age / half_life, 1000.0))


def blend_recency(items: Sequence[Ranked], now: int, half_life: float, weight: float) -> list[Ranked]:
    """Give recency its share: (1 - weight) x score / best score + weight x decay. Weight 0 only notes the decay."""
    decays = [decay(item.created_at, now, half_life) for item in items]
    if weight <= 0:
        return [replace(item, decay=value) for item, value in zip(items, decays, strict=True)]
    best = max((item.score for item in items), default=0.0)
    scale = best if best > 0 else 1.0
    return [
        replace(item, decay=value, score=(1.0 - weight) * item.score / scale + weight * value)
        for item, value in zip(items, decays, strict=True)
    ]


def sort_ranked(items: Sequence[Ranked]) -> list[Ranked]:
    """Sort by score; of equal ones the newer comes first, then the smaller id. Equal ones get the same score."""
    ranked: list[Ranked] = []
    equals: list[Ranked] = []
    for item in sorted(items, key=lambda item: -item.score):
        if equals and equals[-1].score - item.score > TIE:
            ranked += _sort_equals(equals)
            equals = []
        equals.append(item)
    return ranked + _sort_equals(equals)


def _sort_equals(items: Sequence[Ranked]) -> list[Ranked]:
    ordered = sorted(items, key=lambda item: (-item.created_at, item.record_id))
    highest = items[0].score if items else 0.0
    return [item if item.score == highest else replace(item, score=highest) for item in ordered]


def diversify(
    items: Sequence[Ranked], similarity: Callable[[int, int], float], strength: float, limit: int
) -> list[Ranked]:
    """Reorder by maximal marginal relevance (Carbonell and Goldstein 1998).

    Each place goes to the item with the largest (1 - strength) x score / best score - strength x similarity to the
    most similar item already placed; `similarity` takes two chunk keys. Strength 0 keeps the order.
    """
    left, placed = list(items), list[Ranked]()
    closest = [0.0] * len(left)
    best = max((item.score for item in items), default=0.0)
    weight = (1.0 - strength) / (best if best > 0 else 1.0)  # RRF's scores are tiny, those of bm25 large
    while left and len(placed) < limit:
        values = [weight * item.score - strength * near for item, near in zip(left, closest, strict=True)]
        chosen = max(range(len(left)), key=lambda i: (values[i], -i))
        item = left.pop(chosen)
        closest.pop(chosen)
        placed.append(item)
        closest = [
            max(near, similarity(other.chunk_key, item.chunk_key)) for other, near in zip(left, closest, strict=True)
        ]
    return placed
