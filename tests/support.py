"""Shared parts of the tests: `from support import ...`.

pytest's importlib mode puts no folder on `sys.path`, so that the tests see the installed recall_core and not the
checkout's; `pythonpath = ["tests"]` in pyproject.toml puts this one there.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recall_core.models import Vectors

ROOT = Path(__file__).parent.parent
"""The checkout, for tests about its files (docs, examples, sources)."""

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
"""What the `clock` fixture shows at the start."""


LIMIT = 120.0
"""Seconds after which what a test waits for is taken to hang: machines may be slow, or stop for a while."""


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for something that another thread or process does."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "what is waited for does not happen"
        time.sleep(0.02)


class FixedClock:
    """A clock that stands still until it is told to move: `clock()` gives seconds since 1970, as time.time does."""

    def __init__(self, now: datetime = NOW) -> None:
        self.seconds = now.timestamp()

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float = 0, *, days: float = 0) -> None:
        self.seconds += seconds + days * 86_400


class HashedEmbedder:
    """Embeds without a model: the counts of a text's character 1- to 3-grams, hashed into unit vectors.

    Texts that share characters are alike, so rankings are sensible, and the same text has the same vector on every
    machine. `passages` and `queries` keep what was embedded, in order, for tests that count.
    """

    def __init__(self, dimensions: int = 64, model_id: str | None = None) -> None:
        self.dimensions = dimensions
        self.model_id = model_id or f"hashed-{dimensions}"
        self.passages: list[str] = []
        self.queries: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.passages.extend(texts)
        return self._embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        self.queries.extend(texts)
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for gram in _grams(text):
                number = zlib.crc32(gram.encode("utf-8", "surrogatepass"))
                row[number % self.dimensions] += 1 if number & 0x8000_0000 else -1
            if not row.any():  # opposite signs met in every place
                row[0] = 1
            row /= np.linalg.norm(row)
        return vectors


def _grams(text: str) -> Iterator[str]:
    padded = f"\x02{text.casefold()}\x03"  # the ends count too, and an empty text has grams
    for size in (1, 2, 3):
        for start in range(len(padded) - size + 1):
            yield padded[start : start + size]
