"""What the vectors of a frame say: its chunks as unit vectors of one space, ready to be compared with a query's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .blocks import Block, Flags, Floats, Keys, Rows
from .frame import Frame
from .vectors import normalize
from .whitening import Statistics, compare, direct, measure, measure_lengths

if TYPE_CHECKING:
    from .models import Vectors

MIXER = np.int64(0x1E3779B97F4A7C15)  # spreads the bits of a vector over those of a hash
SAMPLE = 4_096  # texts that the statistics of a scope are made from


@dataclass(frozen=True, slots=True)
class FrameVectors:
    """Unit vectors by block, shape (n, dimensions) each, zeros for chunks without one; `present` tells which have."""

    blocks: tuple[Vectors, ...]
    present: Flags

    def pick(self, rows: Rows) -> Vectors:
        """Return the vectors of some rows, shape (rows, dimensions)."""
        picked = np.zeros((len(rows), self.blocks[0].shape[1]), dtype=np.float32)
        offset = 0
        for block in self.blocks:
            inside = (rows >= offset) & (rows < offset + len(block))
            picked[inside] = block[rows[inside] - offset]
            offset += len(block)
        return picked

    def cosines(self, query: Vectors) -> Floats:
        """Return the raw cosine of every row with a unit vector, shape (dimensions,); 0 where there is no vector."""
        return np.concatenate([np.vecdot(block, query) for block in self.blocks])


def sample_texts(frame: Frame, vectors: FrameVectors) -> Vectors:
    """Return the vectors that the statistics of a frame's first block are made from.

    A text that is stored several times counts once, or it would be taken for what all texts have in common; with
    vectors of its own each time, as callers may give, it counts each time. Of many every n-th in the order of their
    hashes is taken: the same ones, in the same order, however they were stored.
    """
    block = frame.blocks[0]
    rows = np.flatnonzero(vectors.present[: len(block)])
    heads = np.zeros((len(rows), 2), dtype=np.float32)
    heads[:, : vectors.blocks[0].shape[1]] = vectors.blocks[0][rows, :2]
    _, firsts = np.unique(block.hashes[rows] ^ (heads.view(np.int64)[:, 0] * MIXER), return_index=True)
    rows = rows[firsts]
    return vectors.blocks[0][rows[:: -(-max(len(rows), 1) // SAMPLE)]]


def measure_frame(frame: Frame, vectors: FrameVectors) -> Statistics:
    """Return the statistics of a frame's vectors."""
    return measure(sample_texts(frame, vectors))


def measure_rows(statistics: Statistics, blocks: Sequence[Vectors]) -> Floats:
    """Return the whitened lengths of all rows."""
    return np.concatenate([measure_lengths(statistics, block) for block in blocks])


def score_meaning(statistics: Statistics, queries: Vectors, vectors: FrameVectors, lengths: Floats) -> Vectors:
    """Return the whitened cosine of every query, shape (queries, dimensions), with every row, 0 where there is no
    vector: shape (queries, rows).
    """
    directions = direct(statistics, queries)
    scores, offset = [], 0
    for block in vectors.blocks:
        scores.append(compare(directions, block, lengths[offset : offset + len(block)]))
        offset += len(block)
    return np.concatenate(scores, axis=1) * vectors.present


def spread(block: Block, laid: Vectors, present: Flags, record_keys: Keys, vectors: Vectors) -> None:
    """Give the chunks of some records that have no vector of their own that of their record, of length 1."""
    owners = np.repeat(block.record_keys, np.diff(block.starts, append=len(block)))
    order = np.argsort(record_keys)
    places = np.searchsorted(record_keys, owners, sorter=order)
    known = places < len(record_keys)
    known[known] = record_keys[order[places[known]]] == owners[known]
    rows = np.flatnonzero(known & ~present)
    laid[rows] = vectors[order[places[rows]]]
    present[rows] = True


def spread_firsts(block: Block, laid: Vectors, present: Flags) -> None:
    """Do so for all records of a block that begins with their first chunks."""
    whole = block.starts[present[block.starts]]
    spread(block, laid, present, block.record_keys[present[block.starts]], laid[whole])


def lay_out(block: Block, dimensions: int, keys: Sequence[int], vectors: Vectors) -> tuple[Vectors, Flags]:
    """Return unit vectors in the order of a block's chunks, zeros for those without one, and which have one."""
    laid = np.zeros((len(block), dimensions), dtype=np.float32)
    found = np.array(keys, dtype=np.int64)
    order = np.argsort(block.chunk_keys, kind="stable")
    places = np.searchsorted(block.chunk_keys, found, sorter=order)
    known = places < len(block)
    known[known] = block.chunk_keys[order[places[known]]] == found[known]
    rows = order[places[known]]
    laid[rows] = normalize(vectors[known])
    present = np.zeros(len(block), dtype=bool)
    present[rows] = True
    return laid, present
