"""Cosines that mean something: vectors are compared after centring and whitening by the statistics of their scope.

Embedding models put all texts into a narrow cone (e5: every cosine lies between .78 and .90), and within one person's
memories the cone is narrower still. Taking off the mean and evening out the directions shows what differs. Source: the
measurements in docs/ranking.md; the ridge keeps rare directions from being blown up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .models import Vectors

RIDGE = 15.0  # times the mean variance of a direction; 5 to 40 differ by less than a point
WHITEN_FROM = 20  # vectors; below, the covariance says nothing
FULL_FROM = 100  # vectors; below, the ridge grows, so that small scopes are hardly more than centred
LEAST_VARIANCE = 1e-9  # over all directions; below, the vectors are the same but for rounding
PRIOR_WEIGHT = 10.0  # the language's mean counts as so many vectors
SHORTEST = 1e-9  # squared length; below, a vector is the mean itself
FEW = 64  # vectors that are whitened one by one
BLOCK = 4096  # passages whitened at a time, so that what lies between stays in the cache


@dataclass(frozen=True, slots=True)
class Statistics:
    """How the vectors of a scope lie: their mean, shape (dimensions,), and the inverse of their ridged covariance,
    shape (dimensions, dimensions), None for few vectors. `count` is the number of vectors it was made from.
    """

    count: int
    mean: Vectors
    inverse: Vectors | None


@dataclass(frozen=True, slots=True)
class Directions:
    """Queries ready to be compared: a raw passage's dot product with a vector, shape (queries, dimensions), less the
    offset, shape (queries,), is its whitened cosine times its whitened length.
    """

    vectors: Vectors
    offsets: Vectors


def measure(vectors: Vectors) -> Statistics:
    """Return the statistics of unit vectors, shape (n, dimensions)."""
    count, dimensions = vectors.shape
    if count == 0:
        return Statistics(0, np.zeros(dimensions, dtype=np.float32), None)
    mean = vectors.mean(axis=0, dtype=np.float64)
    inverse = None
    if count >= WHITEN_FROM:
        centred = vectors - mean.astype(np.float32)
        covariance = (centred.T @ centred).astype(np.float64) / count
        variance = np.trace(covariance)
        if variance > LEAST_VARIANCE:
            ridge = RIDGE * max(1.0, FULL_FROM / count) * variance / dimensions
            inverse = np.linalg.inv(covariance + ridge * np.eye(dimensions)).astype(np.float32)
    return Statistics(count, mean.astype(np.float32), inverse)


def lean_on(prior: Vectors | None, statistics: Statistics) -> Statistics:
    """Return the statistics with their mean drawn towards a typical one, shape (dimensions,), while there is little.

    Without a prior the mean of a few vectors is taken for what it is worth: nothing if there is but one.
    """
    weight = 1.0 if prior is None else PRIOR_WEIGHT
    start = np.zeros_like(statistics.mean) if prior is None else prior
    count = statistics.count if prior is not None or statistics.count > 1 else 0
    mean = (count * statistics.mean + weight * start) / (count + weight)
    return Statistics(statistics.count, np.asarray(mean, dtype=np.float32), statistics.inverse)


def measure_lengths(statistics: Statistics, passages: Vectors) -> Vectors:
    """Return the length of each whitened passage, shape (n,), of raw unit vectors, shape (n, dimensions)."""
    lengths = np.empty(len(passages), dtype=np.float32)
    for start in range(0, len(passages), BLOCK):
        centred = passages[start : start + BLOCK] - statistics.mean
        weighted = _weigh(statistics, centred)
        lengths[start : start + BLOCK] = np.einsum("ij,ij->i", weighted, centred)
    return np.sqrt(np.maximum(lengths, SHORTEST))


def direct(statistics: Statistics, queries: Vectors) -> Directions:
    """Return what scores raw passages by their whitened cosines with queries, shape (queries, dimensions)."""
    centred = queries - statistics.mean
    weighted = _weigh(statistics, centred)
    lengths = np.sqrt(np.maximum(np.einsum("ij,ij->i", weighted, centred), SHORTEST))
    vectors = (weighted / lengths[:, None]).astype(np.float32)
    return Directions(vectors, np.vecdot(vectors, statistics.mean))


def compare(directions: Directions, passages: Vectors, lengths: Vectors) -> Vectors:
    """Return whitened cosines, shape (queries, n), of raw unit vectors, shape (n, dimensions), whose whitened `lengths`
    are known.
    """
    # vecdot takes each passage by itself, so its cosine does not depend on the others, and starts no threads: those of
    # a matrix product wait for each other, and on a busy machine that takes longer than the product.
    products = np.empty((len(directions.vectors), len(passages)), dtype=np.float32)
    for place, vector in enumerate(directions.vectors):
        products[place] = np.vecdot(passages, vector)
    return np.asarray(np.clip((products - directions.offsets[:, None]) / lengths, -1.0, 1.0), dtype=np.float32)


def whiten(statistics: Statistics, vectors: Vectors, out: Vectors | None = None) -> Vectors:
    """Return unit vectors whose dot products are the whitened cosines of raw unit vectors, shape (n, dimensions).

    Zeros, which stand for no vector, stay zeros. `out` may be `vectors` themselves, which are overwritten then.
    """
    factor = None
    if statistics.inverse is not None:
        factor = np.linalg.cholesky(statistics.inverse.astype(np.float64)).astype(np.float32)
    whitened = np.zeros_like(vectors) if out is None else out
    for start in range(0, len(vectors), BLOCK):
        part = vectors[start : start + BLOCK]
        centred = part - statistics.mean
        weighted = centred if factor is None else centred @ factor
        lengths = np.sqrt(np.maximum(np.einsum("ij,ij->i", weighted, weighted), SHORTEST))
        whitened[start : start + BLOCK] = weighted / lengths[:, None] * np.any(part, axis=1, keepdims=True)
    return whitened


def _weigh(statistics: Statistics, centred: Vectors) -> Vectors:
    """Return centred vectors times the inverse covariance, which is symmetric."""
    if statistics.inverse is None:
        return centred
    if len(centred) <= FEW:
        return np.array([np.vecdot(statistics.inverse, vector) for vector in centred]).reshape(centred.shape)
    return np.asarray(centred @ statistics.inverse)
