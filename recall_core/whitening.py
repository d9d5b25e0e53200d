"""Cosines that mean something: vectors are compared after centring and whitening by the statistics of their scope.

Embedding models put all texts into a narrow cone (e5: every cosine lies between .78 and .90), and within one person's
memories the cone is narrower still. Taking off the mean and evening out the directions shows what differs. Source: the
measurements in docs/ranking.md; the ridge keeps rare directions from being blown up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .models import Vectors

RIDGE = 15.0  # times the mean variance of a direction; 5 to 40 differ by less than a point
WHITEN_FROM = 20  # vectors; below, the covariance says nothing
FULL_FROM = 100  # vectors; below, the ridge grows, so that small scopes are hardly more than centred
LEAST_VARIANCE = 1e-9  # over all directions; below, the vectors are the same but for rounding
PRIOR_WEIGHT = 10.0  # the language's mean counts as so many vectors


@dataclass(frozen=True, slots=True)
class Statistics:
    """How the vectors of a scope lie: their mean, shape (dimensions,), and the inverse of their ridged covariance,
    shape (dimensions, dimensions), None for few vectors. `count` is the number of vectors it was made from.
    """

    count: int
    mean: Vectors
    inverse: Vectors | None


def measure(vectors: Vectors) -> Statistics:
    """Return the statistics of unit vectors, shape (n, dimensions)."""
    import numpy as np

    count, dimensions = vectors.shape
    if count == 0:
        return Statistics(0, np.zeros(dimensions, dtype=np.float32), None)
    mean = vectors.mean(axis=0, dtype=np.float64)
    inverse = None
    if count >= WHITEN_FROM:
        centred = vectors - mean
        covariance = centred.T @ centred / count
        variance = np.trace(covariance)
        if variance > LEAST_VARIANCE:
            ridge = RIDGE * max(1.0, FULL_FROM / count) * variance / dimensions
            inverse = np.linalg.inv(covariance + ridge * np.eye(dimensions)).astype(np.float32)
    return Statistics(count, mean.astype(np.float32), inverse)


def lean_on(prior: Vectors | None, statistics: Statistics) -> Statistics:
    """Return the statistics with their mean drawn towards a typical one, shape (dimensions,), while there is little.

    Without a prior the mean of a few vectors is taken for what it is worth: nothing if there is but one.
    """
    import numpy as np

    weight = 1.0 if prior is None else PRIOR_WEIGHT
    start = np.zeros_like(statistics.mean) if prior is None else prior
    count = statistics.count if prior is not None or statistics.count > 1 else 0
    mean = (count * statistics.mean + weight * start) / (count + weight)
    return Statistics(statistics.count, np.asarray(mean, dtype=np.float32), statistics.inverse)


def compare(statistics: Statistics, queries: Vectors, passages: Vectors) -> Vectors:
    """Return whitened cosines, shape (queries, passages), of vectors of shape (…, dimensions)."""
    import numpy as np

    q = queries - statistics.mean
    p = passages - statistics.mean
    if statistics.inverse is None:
        weighted, lengths = q, np.einsum("ij,ij->i", q, q)
        p_lengths = np.einsum("ij,ij->i", p, p)
    else:
        weighted = q @ statistics.inverse
        lengths = np.einsum("ij,ij->i", weighted, q)
        p_lengths = np.einsum("ij,ij->i", p @ statistics.inverse, p)
    scale = np.sqrt(np.maximum(np.outer(lengths, p_lengths), 1e-18))
    return np.asarray(np.clip(weighted @ p.T / scale, -1.0, 1.0), dtype=np.float32)


def direct(statistics: Statistics, query: Vectors) -> Vectors:
    """Return the vector, shape (dimensions,), whose dot product with a raw vector orders nearly as `compare` does.

    It leaves out only each passage's own length, so an index over raw vectors can find the candidates.
    """
    import numpy as np

    centred = query - statistics.mean
    return centred if statistics.inverse is None else np.asarray(centred @ statistics.inverse, dtype=np.float32)
