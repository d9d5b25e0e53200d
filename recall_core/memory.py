"""The front door: a memory file, opened."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from .embedding import DEFAULT, Default, resolve_embedder
from .engine import Engine
from .errors import EmbedderMismatchError
from .indexer import Indexer
from .models import Embedder, Stats
from .settings import Settings
from .store import OWN_SPACE, SqliteStore, open_store
from .store.vectors import describe_mismatch
from .text import segmenter_version
from .view import View

logger = logging.getLogger("recall_core")

ANEW = 'To index all records anew, run "UPDATE record SET text = text" with sqlite3 and open the file again'
CLOSE_TIMEOUT = 5.0  # seconds that close waits for the batch that is being embedded


class Memory(View):
    """A memory file. All methods may be called from any thread; close it when done, or use it as a context manager."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, "")
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        embedder: Embedder | Default | str | Path | None = DEFAULT,
        settings: Settings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Memory:
        """Open the memory at `path`, made if missing; ":memory:" keeps everything in RAM.

        `embedder` is the model in the package by default, any object with the `Embedder` protocol, the folder of an
        ONNX model, or None for keywords only. `clock` returns seconds since 1970 UTC.

        Raises StoreError if the file can't be used, EmbedderMismatchError if its vectors come from another model, and
        ModelNotFoundError.
        """
        settings = settings or Settings()
        model = resolve_embedder(embedder)
        store = open_store(path, durability=settings.durability, busy_timeout=settings.busy_timeout)
        try:
            engine = _assemble(store, model, settings, clock)
            _catch_up(engine)
        except BaseException:
            store.close()
            raise
        return cls(engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory.open({self._engine.store.path!r})"

    def flush(self, timeout: float | None = None) -> int:
        """Index what other programs wrote, then give vectors to all chunks that wait for one, for at most `timeout`
        seconds; return how many still wait.
        """
        waiting = self._engine.indexer.flush(timeout)
        self._engine.refresh()
        return waiting

    def stats(self) -> Stats:
        """Return what the file holds and in which state it is."""
        engine = self._engine
        segmenter = engine.store.facts.segmenter() or segmenter_version()
        notes = []
        if segmenter != segmenter_version():
            notes.append(f"the keyword index was made by {segmenter}, new text uses {segmenter_version()}. {ANEW}")
        return engine.store.facts.stats(segmenter=segmenter, notes=tuple(notes))

    def close(self) -> None:
        """Close the file. What is not embedded yet stays pending in it. Closing twice does nothing."""
        if not self._closed:
            self._closed = True
            self._engine.indexer.close(CLOSE_TIMEOUT)
            self._engine.store.close()


def _assemble(store: SqliteStore, model: Embedder | None, settings: Settings, clock: Callable[[], float]) -> Engine:
    _check_model(store, model)
    stored = store.facts.words()
    words = stored | set(settings.dictionary)
    if words != stored:
        store.facts.add_words(words - stored)
        if store.facts.segmenter() is not None:
            logger.warning("%s has new dictionary words, which are not found in older records. %s", store.path, ANEW)
    return Engine(
        store=store,
        indexer=Indexer(store, model, settings, words, clock),
        settings=settings,
        clock=clock,
        words=words,
    )


def _check_model(store: SqliteStore, model: Embedder | None) -> None:
    space = store.vectors.find_space(OWN_SPACE)
    if (
        model is not None
        and space is not None
        and (space.model, space.dimensions) != (model.model_id, model.dimensions)
    ):
        raise EmbedderMismatchError(describe_mismatch(store.path, OWN_SPACE, space, model.model_id, model.dimensions))


def _catch_up(engine: Engine) -> None:
    """Take up what other programs, or a killed process, left to do."""
    version = segmenter_version()
    known = engine.store.facts.segmenter()
    if known is None:
        engine.store.facts.save_segmenter(version)
    elif known != version:
        logger.warning("%s was indexed by %s, new text uses %s. %s", engine.store.path, known, version, ANEW)
    changed = engine.indexer.reindex_stale()
    if changed:
        logger.info("%s: indexed %d records that another program had written", engine.store.path, changed)
    if engine.indexer.has_pending():
        engine.indexer.wake()
