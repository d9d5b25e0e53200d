"""Checks on vectors, whoever made them: the right shape, finite numbers, and a length to compare by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recall_core.errors import VectorError

if TYPE_CHECKING:
    from recall_core.models import Vectors

SHORTEST = 1e-12  # Euclidean length; far below it, squares vanish in float32
LONGEST = 1e12  # far above it, they overflow


def check_vectors(vectors: Any, count: int, dimensions: int) -> Vectors:
    """Return `vectors` as a C-contiguous float32 array of shape (count, dimensions).

    Takes arrays, sequences of numbers and anything that numpy can turn into an array. Raises VectorError for another
    shape, for something that is not numbers, for NaN and infinity, and for a vector whose length is so near to zero
    (below 1e-12) or so large (above 1e12) that no cosine can be taken of it.
    """
    import numpy as np

    array = _as_floats(vectors)
    if count == 0 and array.size == 0:
        return np.zeros((0, dimensions), np.float32)
    if array.shape != (count, dimensions):
        raise VectorError(
            f"vectors of shape {array.shape} were given where {(count, dimensions)} was expected: "
            f"one vector of {dimensions} numbers for each of {count} texts"
        )
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(array, axis=1)
    bad = np.flatnonzero(~((lengths >= SHORTEST) & (lengths <= LONGEST)))
    if bad.size:
        raise VectorError(
            f"vector {bad[0]} of {count} {_describe(array[bad[0]])}; leave it out or embed the text again"
        )
    return np.ascontiguousarray(array)


def normalize(vectors: Vectors) -> Vectors:
    """Return the rows of `vectors`, shape (count, dimensions), scaled to length 1. A row of zeros stays as it is."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def _as_floats(vectors: Any) -> Any:
    import numpy as np

    try:
        array = np.asarray(vectors)
        if array.dtype.kind not in "fiu" and array.size:
            raise TypeError(f"the numbers are of type {array.dtype}")
        with np.errstate(all="ignore"):
            return array.astype(np.float32, copy=False)
    except (TypeError, ValueError) as error:
        raise VectorError(f"not a list of vectors of equal length: {error}; give one list of floats a text") from error


def _describe(vector: Any) -> str:
    import numpy as np

    if np.isnan(vector).any():
        return "has NaN in it"
    if np.isinf(vector).any():
        return "has infinity in it, or a number too large for float32"
    if not vector.any():
        return "is all zeros"
    return f"has the length {np.linalg.norm(vector):.3g}, which is outside {SHORTEST:g} to {LONGEST:g}"
