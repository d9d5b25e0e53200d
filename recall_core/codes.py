"""Sign bits of vectors, and the search over them: a scan of a million takes milliseconds and 48 MB.

A code has one bit per dimension: whether the vector lies above a centre there. A scan counts differing bits; of the
best, those bits are summed by their weight in the query. All comparisons are between whole numbers, so the result does
not depend on the order of the rows. The caller compares the vectors of what is left exactly.

Measured on real embeddings (docs/ranking.md): the ten nearest are among the 400 that are left in 99.9 % of the cases.
Bits of raw e5 vectors would be worthless, since all lie in one narrow cone: the centre makes the difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .models import Vectors

WORD = 64
BLOCK = 65_536  # rows compared at a time, so that what lies between stays in the cache
FIRST = 4_000  # rows kept by the number of differing bits
LEVELS = 4  # bits of a weight; more find no more
# Odd numbers that a code's words are multiplied by, to tell codes apart by the sum (as Knuth does).
MIXERS = np.array([0x9E3779B97F4A7C15 * (2 * place + 1) % 2**64 for place in range(1024)], dtype=np.uint64)
SPARSE = 8  # if only one row in so many is allowed, the others are not compared

Codes = NDArray[np.uint8]  # shape (n, bytes), bytes a multiple of 8
Planes = NDArray[np.uint64]  # shape (words, n): a scan over neighbouring rows of a word is five times faster
Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]


def code_bytes(dimensions: int) -> int:
    """Return the number of bytes in a code."""
    return -(-dimensions // WORD) * (WORD // 8)


def encode(vectors: Vectors, centre: Vectors) -> Codes:
    """Return the codes of unit vectors, shape (n, dimensions)."""
    bits = np.packbits(vectors > centre, axis=1, bitorder="little")
    return np.pad(bits, ((0, 0), (0, code_bytes(vectors.shape[1]) - bits.shape[1])))


def make_planes(codes: Codes) -> Planes:
    """Return codes word by word."""
    return np.ascontiguousarray(np.ascontiguousarray(codes).view("<u8").T)


def find_nearest(planes: Planes, allowed: Flags, direction: Vectors, count: int) -> Rows:
    """Return `count` of the `allowed` rows whose vectors have the largest dot product with a direction, shape
    (dimensions,), ascending.

    If some are copies, one row of each of the next different ones comes as well, until `count` are different.
    """
    first = max(FIRST, 10 * count)
    sought = make_planes(encode(direction[None], np.zeros_like(direction)))[:, 0]
    rows, differing = _compare_allowed(planes, allowed, sought, first)
    while True:
        near = rows[_smallest(differing, first)]
        if len(near) <= count:
            return near
        kept, different = _keep_best(planes[:, near], direction, count)
        if different or len(near) == len(rows):
            return near[kept]
        first *= 4  # copies of a few texts take all the places


def _keep_best(planes: Planes, direction: Vectors, count: int) -> tuple[Rows, bool]:
    """Return the rows to keep, ascending, and whether `count` of all rows are different."""
    weights = -_weigh(planes, direction)
    digests = (planes * MIXERS[: len(planes), None]).sum(axis=0, dtype=np.uint64)
    order = np.lexsort((-np.arange(len(weights)), digests, weights))  # of copies the newest first
    news = (np.diff(weights[order], prepend=weights[order[0]] - 1) != 0) | (np.diff(digests[order], prepend=0) != 0)
    firsts = order[news]
    return np.union1d(order[:count], firsts[:count]), len(firsts) >= count


def _compare_allowed(
    planes: Planes, allowed: Flags, sought: NDArray[np.uint64], first: int
) -> tuple[Rows, NDArray[np.uint16]]:
    """Return the allowed rows, and in how many bits each differs from the sought code; zeros if they are few."""
    rows = np.flatnonzero(allowed)
    if len(rows) <= first:
        return rows, np.zeros(len(rows), dtype=np.uint16)
    if len(rows) * SPARSE < planes.shape[1]:
        return rows, _count_differing(planes[:, rows], sought)
    return rows, _count_differing(planes, sought)[rows]


def _count_differing(planes: Planes, sought: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Return in how many bits each row differs from the sought code."""
    size = planes.shape[1]
    counts = np.zeros(size, dtype=np.uint16)
    differing, counted = np.empty(min(BLOCK, size), np.uint64), np.empty(min(BLOCK, size), np.uint8)
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        bits, ones, total = differing[: stop - start], counted[: stop - start], counts[start:stop]
        for plane, word in zip(planes, sought, strict=True):
            np.bitwise_xor(plane[start:stop], word, out=bits)
            np.bitwise_count(bits, out=ones)
            np.add(total, ones, out=total)
    return counts


def _weigh(planes: Planes, direction: Vectors) -> NDArray[np.int32]:
    """Return for each row the sum of the direction, in whole numbers, over the bits that are set."""
    most = 1 << (LEVELS - 1)
    step = max(float(np.abs(direction).max()) / (most - 0.5), 1e-30)
    weights = np.clip(np.rint(direction / step), -most, most - 1).astype(np.int16)
    total = np.zeros(planes.shape[1], dtype=np.int32)
    for level in range(LEVELS):
        mask = make_planes(encode(((weights >> level) & 1)[None].astype(np.float32), np.zeros_like(direction)))
        counts = np.bitwise_count(planes & mask).sum(axis=0, dtype=np.int32)
        total += counts * (-(1 << level) if level == LEVELS - 1 else 1 << level)
    return total


def _smallest(values: NDArray[np.uint16] | NDArray[np.int32], count: int) -> Rows:
    """Return the rows of the `count` smallest values and of all equal to the last of them, ascending."""
    if count >= len(values):
        return np.arange(len(values))
    return np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
