"""Finds the pairs of texts that are worth comparing word by word: those that share rare pairs of words, and those whose
vectors lie close together. Time and memory are bounded, however alike all texts are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..models import Vectors
    from .wording import Wording

Pairs = NDArray[np.int64]  # shape (n, 2), the smaller row first

CROWD = 48  # texts that share a pair of words, from which on only neighbours in the order of their words are compared
NEIGHBOURS = 12
PROBES = 16  # pairs of words of a text that are looked up, the rarest
MIXER = 0x9E3779B1  # spreads neighbouring numbers
PRODUCTS = 1 << 24  # of vectors that are held at a time
SKETCH = 512  # bits in which the pairs of words of a text are noted
NEAR = 24  # neighbours by vector that a text is compared with, at most


def pair_by_words(wordings: Sequence[Wording], parts: Sequence[int], threshold: float) -> Pairs:
    """Return pairs of texts of the same part that may share `threshold` of the shorter one's pairs of words.

    As in prefix filtering (Chaudhuri, Ganti and Kaushik 2006): who shares that many shares one of the rarest, too.
    """
    numbers: dict[tuple[int, tuple[str, str]], int] = {}
    terms, owners = [], []
    for row, (wording, part) in enumerate(zip(wordings, parts, strict=True)):
        found = {numbers.setdefault((part, pair), len(numbers)) for pair in wording.pairs}
        terms += sorted(found)
        owners += [row] * len(found)
    term, owner = np.array(terms, dtype=np.int64), np.array(owners, dtype=np.int64)
    del numbers, terms, owners
    frequency = np.bincount(term) if len(term) else np.zeros(0, dtype=np.int64)
    rank = _rank_words(wordings)
    probes = _choose_probes(term, owner, frequency, threshold)
    by_term = np.lexsort((rank[owner], term))
    holders, starts = owner[by_term], np.concatenate([[0], np.cumsum(frequency)])
    place = np.empty(len(term), dtype=np.int64)  # of each entry among the holders of its term
    place[by_term] = np.arange(len(term)) - starts[term[by_term]]
    pairs = _expand(term, owner, place, probes, frequency, starts, holders)
    return _drop_unlike(pairs, _sketch(term, owner, len(wordings)), threshold)


def pair_by_vectors(vectors: Vectors, parts: Sequence[int], least: float) -> tuple[Pairs, NDArray[np.float32]]:
    """Return the pairs of rows of the same part whose dot product is at least so much, and that. Rows are unit vectors,
    or zeros; of a row's nearest at most 24 later ones are taken.
    """
    part = np.array(parts, dtype=np.int64)
    found, products = [np.zeros((0, 2), dtype=np.int64)], [np.zeros(0, dtype=np.float32)]
    for rows in _split(part):
        usable = rows[vectors[rows].any(axis=1)]
        for pairs, values in _near(np.ascontiguousarray(vectors[usable]), least):
            found.append(np.sort(usable[pairs], axis=1))
            products.append(values)
    return np.concatenate(found), np.concatenate(products)


def _near(vectors: Vectors, least: float) -> Iterator[tuple[Pairs, NDArray[np.float32]]]:
    size = max(PRODUCTS // max(len(vectors), 1), 1)
    for start in range(0, len(vectors), size):
        products = vectors[start : start + size] @ vectors[start:].T
        ones, others = np.nonzero(products >= least)
        later = others > ones
        ones, others = ones[later], others[later]
        values = products[ones, others]
        best = np.lexsort((others, -values, ones))
        ones, others, values = ones[best], others[best], values[best]
        kept = np.arange(len(ones)) - np.searchsorted(ones, ones) < NEAR
        yield np.stack([ones[kept], others[kept]], axis=1) + start, values[kept]


def _split(part: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    order = np.argsort(part, kind="stable")
    return iter(np.split(order, np.flatnonzero(np.diff(part[order])) + 1))


def _rank_words(wordings: Sequence[Wording]) -> NDArray[np.int64]:
    """Return the place of each text in the order of their words: near-duplicates stand close together."""
    rank = np.empty(len(wordings), dtype=np.int64)
    rank[sorted(range(len(wordings)), key=lambda row: wordings[row].tokens)] = np.arange(len(wordings))
    return rank


def _choose_probes(
    term: NDArray[np.int64], owner: NDArray[np.int64], frequency: NDArray[np.int64], threshold: float
) -> NDArray[np.int64]:
    """Return which entries are looked up: of each text its rarest pairs of words, as many as may be missing in a text
    that shares `threshold` of them, and one more.
    """
    order = np.lexsort((term, frequency[term], owner))
    firsts = np.searchsorted(owner[order], owner[order])
    counts = np.bincount(owner, minlength=int(owner.max()) + 1 if len(owner) else 0)
    missing = np.floor((1.0 - threshold) * counts[owner[order]] + 1e-9)
    chosen = np.arange(len(order)) - firsts <= np.minimum(missing, PROBES - 1)
    entries = order[chosen]
    return np.asarray(entries[frequency[term[entries]] > 1])


def _sketch(term: NDArray[np.int64], owner: NDArray[np.int64], count: int) -> NDArray[np.uint64]:
    """Return for each text the pairs of words that it has, as bits at places that depend on the pair."""
    bits = np.zeros((count, SKETCH), dtype=bool)
    bits[owner, (term * MIXER) % SKETCH] = True
    return np.packbits(bits, axis=1).view(np.uint64)


def _drop_unlike(pairs: Pairs, sketches: NDArray[np.uint64], threshold: float) -> Pairs:
    """Leave out pairs whose sketches share too few bits for `threshold` of the shorter one's pairs of words."""
    ones = np.bitwise_count(sketches).sum(axis=1, dtype=np.int64)
    kept = [pairs[:0]]
    for start in range(0, len(pairs), 1 << 16):
        some = pairs[start : start + (1 << 16)]
        shared = np.bitwise_count(sketches[some[:, 0]] & sketches[some[:, 1]]).sum(axis=1, dtype=np.int64)
        # Where many pairs of words fall on few bits, what is shared can't be told from what is not.
        kept.append(some[shared >= threshold * np.minimum(ones[some[:, 0]], ones[some[:, 1]]) - 1])
    return np.concatenate(kept)


def _expand(
    term: NDArray[np.int64],
    owner: NDArray[np.int64],
    place: NDArray[np.int64],
    probes: NDArray[np.int64],
    frequency: NDArray[np.int64],
    starts: NDArray[np.int64],
    holders: NDArray[np.int64],
) -> Pairs:
    """Return the pairs of each probe's owner with the other holders of its term, or with the nearest of a crowd."""
    found = [np.zeros((0, 2), dtype=np.int64)]
    for start in range(0, len(probes), 1 << 16):
        some = probes[start : start + (1 << 16)]
        crowded = frequency[term[some]] > CROWD
        low = np.where(crowded, np.maximum(place[some] - NEIGHBOURS, 0), 0)
        high = np.where(crowded, np.minimum(place[some] + NEIGHBOURS + 1, frequency[term[some]]), frequency[term[some]])
        widths = high - low
        ones = np.repeat(owner[some], widths)
        steps = np.arange(int(widths.sum())) - np.repeat(np.cumsum(widths) - widths, widths)
        others = holders[np.repeat(starts[term[some]] + low, widths) + steps]
        pairs = np.stack([np.minimum(ones, others), np.maximum(ones, others)], axis=1)
        found.append(unite(pairs[ones != others]))
    return unite(np.concatenate(found))


def unite(pairs: Pairs) -> Pairs:
    """Return pairs without repetitions, in order."""
    if not len(pairs):
        return pairs
    size = int(pairs.max()) + 1
    joined = np.sort(pairs[:, 0] * size + pairs[:, 1])
    joined = joined[np.diff(joined, prepend=-1) > 0]
    return np.stack([joined // size, joined % size], axis=1)
