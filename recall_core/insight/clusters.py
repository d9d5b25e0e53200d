"""Clusters unit vectors by average linkage: which groups there are is read from the data, and the same every time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    pass

Merges = NDArray[np.float64]  # shape (n - 1, 3): two clusters, by one row of each, and their mean similarity

GONE = -np.inf


def link_average(similarities: NDArray[np.float32]) -> Merges:
    """Return the merges of average linkage over a similarity matrix, shape (n, n), which is overwritten. The order is
    that of falling similarity.

    By chains of nearest neighbours (Murtagh 1983): each step is one pass over a row, n^2 in all.
    """
    count = len(similarities)
    np.fill_diagonal(similarities, GONE)
    sizes = np.ones(count)
    alive = np.ones(count, dtype=bool)
    merges = np.zeros((max(count - 1, 0), 3))
    chain: list[int] = []
    for step in range(count - 1):
        if not chain:
            chain.append(int(np.argmax(alive)))
        while True:
            tip = chain[-1]
            nearest = int(np.argmax(similarities[tip]))
            if len(chain) > 1 and similarities[tip, chain[-2]] >= similarities[tip, nearest]:
                break
            chain.append(nearest)
        one, other = sorted((chain.pop(), chain.pop()))
        merges[step] = one, other, similarities[one, other]
        _join(similarities, sizes, alive, one, other)
    return merges[np.argsort(-merges[:, 2], kind="stable")]


def cut(merges: Merges, count: int, least: float) -> NDArray[np.int64]:
    """Return for each of `count` rows the number of its cluster, when only clusters of at least this mean similarity
    are merged. The numbers follow the first rows of the clusters.
    """
    parents = np.arange(count)

    def find(row: int) -> int:
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = int(parents[row])
        return row

    for one, other, similarity in merges:
        if similarity < least:
            break
        first, second = sorted((find(int(one)), find(int(other))))
        parents[second] = first
    roots = np.array([find(row) for row in range(count)], dtype=np.int64)
    return np.searchsorted(np.unique(roots), roots)


def _join(
    similarities: NDArray[np.float32], sizes: NDArray[np.float64], alive: NDArray[np.bool_], one: int, other: int
) -> None:
    """Merge cluster `other` into `one`."""
    share = sizes[one] / (sizes[one] + sizes[other])
    mean = share * similarities[one] + (1.0 - share) * similarities[other]
    mean[[one, other]] = GONE
    alive[other] = False
    mean[~alive] = GONE
    similarities[one] = mean
    similarities[:, one] = mean
    similarities[other] = GONE
    similarities[:, other] = GONE
    sizes[one] += sizes[other]
