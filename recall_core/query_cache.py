"""The vectors of recent queries, so that a query that is asked again is not embedded again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from .errors import EmbeddingError
from .forks import Lock

if TYPE_CHECKING:
    from .models import Vectors

Key = tuple[str, str]  # model and text


class QueryCache:
    """Keeps the vectors of the last `size` queries for `ttl` seconds. The clock gives seconds.

    A query that several threads ask at the same time is embedded once.
    """

    def __init__(self, size: int, ttl: float, clock: Callable[[], float]) -> None:
        self._size = size
        self._ttl = ttl
        self._clock = clock
        self._lock = Lock()
        self._kept: OrderedDict[Key, tuple[float, Vectors]] = OrderedDict()  # the last used one last
        self._coming: dict[Key, Future[Vectors]] = {}
        self._hits = self._misses = 0

    @property
    def counts(self) -> tuple[int, int]:
        """How many queries had their vector here, and how many did not."""
        return self._hits, self._misses

    def clear(self) -> None:
        """Let go of all that is kept."""
        with self._lock:
            self._kept.clear()

    def embed(self, model: str, texts: Sequence[str], make: Callable[[Sequence[str]], Vectors]) -> Vectors:
        """Return the vectors of texts by a model, shape (texts, dimensions); `make` gives those that are not kept.

        Raises what `make` raises, in all threads that wait for it.
        """
        import numpy as np

        if self._size == 0:
            return make(texts)
        found: dict[str, Vectors] = {}
        waited: dict[str, Future[Vectors]] = {}
        made: dict[str, Future[Vectors]] = {}
        with self._lock:
            for text in dict.fromkeys(texts):
                key = (model, text)
                if (vector := self._find(key)) is not None:
                    found[text] = vector
                elif key in self._coming:
                    waited[text] = self._coming[key]
                else:
                    made[text] = self._coming[key] = Future()
            self._hits += len(found) + len(waited)
            self._misses += len(made)
        if made:
            found.update(self._make(model, made, make))
        found.update((text, future.result()) for text, future in waited.items())
        return np.stack([found[text] for text in texts])

    def _make(
        self, model: str, made: dict[str, Future[Vectors]], make: Callable[[Sequence[str]], Vectors]
    ) -> dict[str, Vectors]:
        """Embed texts for all who wait for them."""
        try:
            vectors = dict(zip(made, make(list(made)), strict=True))
        except BaseException as error:
            told = error if isinstance(error, Exception) else EmbeddingError("the embedder was interrupted")
            with self._lock:
                for text, future in made.items():
                    self._coming.pop((model, text))
                    future.set_exception(told)
            raise
        with self._lock:
            for text, future in made.items():
                self._kept[(model, text)] = (self._clock(), vectors[text])
                self._coming.pop((model, text))
                future.set_result(vectors[text])
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return vectors

    def _find(self, key: Key) -> Vectors | None:
        made_at, vector = self._kept.get(key, (0.0, None))
        if vector is None:
            return None
        if not 0 <= self._clock() - made_at < self._ttl:  # below 0 the clock was set back
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return vector
