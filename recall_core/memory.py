"""The front door: a memory file, opened."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .causes import Cause
from .deletion import tidy
from .drafting import check_limit, check_timeout
from .engine import Engine, Progress
from .errors import EmbedderMismatchError, InvalidInputError
from .indexer import Indexer
from .maintenance import Maintenance
from .models import DEFAULT, Default, Embedder, Reembedded, Stats
from .query_cache import QueryCache
from .settings import Settings
from .store import OWN_SPACE, SqliteStore, open_store
from .store.vectors import describe_mismatch
from .text import segmenter_version
from .times import MICROS_PER_SECOND, from_micros
from .view import View
from .words import LiveDictionary, check_words

if TYPE_CHECKING:
    from .doctor import Checkup

logger = logging.getLogger("recall_core")

WORDS = "To index just the records that hold them anew: recall reindex --words (Memory.reindex(words_only=True))"
ANEW = "To index all records anew: recall reindex (Memory.reindex)"


class Memory(View, Maintenance):
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
        """Open the memory at `path`, made with its folder if missing; ":memory:" keeps everything in RAM.

        `embedder` is the model in the package by default, any object with the `Embedder` protocol, the folder of an
        ONNX model, or None for keywords only. `clock` returns seconds since 1970 UTC.

        A file that can't be written to is opened to be read; what writes then raises StoreUnavailableError.

        Raises StoreError if the file can't be used, EmbedderMismatchError if its vectors come from another model, and
        ModelNotFoundError.
        """
        settings = settings or Settings()
        model = _resolve(embedder)
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

    def flush(
        self,
        timeout: float | None = None,
        *,
        retry_failed: bool = False,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Index what other programs wrote, then give vectors to all chunks that wait for one, for at most `timeout`
        seconds and at most `limit` chunks; return how many still wait.

        What could not be embedded before is tried again at once, but not what rests after more than
        `Settings.embed_failures` failures, unless `retry_failed`. What other processes are embedding is waited for.
        `progress` is called after each batch with the number of chunks embedded so far. Raises InvalidInputError.
        """
        check_timeout(timeout)
        if limit is not None:
            check_limit(limit)
        waiting = self._engine.indexer.flush(timeout, retry_failed=retry_failed, limit=limit, progress=progress)
        self._engine.refresh()
        return waiting

    def stats(self, *, details: bool = False) -> Stats:
        """Return what the file holds and in which state it is; with `details` its records are counted by scope,
        session, role, kind, tag and day, as `breakdown` does.
        """
        from .reembedding import describe_moves

        engine = self._engine
        segmenter = engine.store.facts.segmenter() or segmenter_version()
        notes = []
        if obstacle := engine.store.database.obstacle:
            notes.append(f"the file can only be read: {obstacle}")
        if segmenter != segmenter_version():
            notes.append(f"the keyword index was made by {segmenter}, new text uses {segmenter_version()}. {ANEW}")
        if words := engine.store.dictionary.changed().words:
            notes.append(f"dictionary words changed since older records were indexed: {len(words)}. {WORDS}")
        found = engine.store.facts.stats(segmenter=segmenter, notes=tuple(notes))
        backlog, present = engine.indexer.count(), engine.trouble.present
        hits, misses = engine.cache.counts
        return replace(
            found,
            pending=backlog.pending,
            failed=backlog.failed,
            resting=backlog.resting,
            leased=backlog.leased,
            degraded=None if present is None else present[0],
            degraded_at=None if present is None else from_micros(int(present[1] * MICROS_PER_SECOND)),
            query_hits=hits,
            query_misses=misses,
            notes=(*found.notes, *describe_moves(found)),
            details=self.breakdown() if details else None,
        )

    def check(self, embedder: Embedder | None = None, *, quick: bool = False) -> Checkup:
        """Look for what keeps the memory from working as it should, and say what to do about it.

        Every part of the file is compared with what it was made from, which reads all of it; `quick` leaves out what
        takes long. A query is embedded to see whether that works, by `embedder` or else the one that the memory was
        opened with. Nothing is written; while the keyword index is compared other writers wait.
        """
        from .doctor import examine
        from .integrity import examine_memory

        damages = examine_memory(self._engine, quick=quick)
        return examine(self._engine, embedder or self._engine.embedder, self.stats(), damages)

    def reembed(
        self,
        embedder: Embedder | Default | str | Path,
        *,
        progress: Callable[[int, int], object] | None = None,
        batch: int | None = None,
    ) -> Reembedded:
        """Move the whole file to another model; searches go on with the old vectors until the new ones are complete.

        Texts are embedded `batch` by batch (by default 128, or what the embedder likes best), and `progress` is called
        after each with the number of chunks that are done and of all. Whatever interrupts this, the file works as
        before, and the next call with the same model goes on where it ended. Afterwards this memory has the new model;
        others that have the file open find by keywords, and say so, until they open it again.

        Raises EmbedderMismatchError if the file is on its way to a third model, EmbeddingError if the embedder fails.
        """
        from .reembedding import reembed

        model = _resolve(embedder)
        if model is None:
            raise InvalidInputError("embedder is None; give the model that the file shall move to")
        engine, indexer = self._engine, self._engine.indexer.for_embedder(model)
        found, left = reembed(engine, indexer, progress=progress, batch=batch)
        if engine.embedder is not model:
            engine.adopt(indexer).close(engine.settings.close_timeout)
        engine.store.moves.clear()
        engine.indexer.embed(left)
        engine.indexer.wake()
        return found

    def abort_reembed(self) -> str | None:
        """Drop what an unfinished `reembed` has done, and return the model it was moving to; None if there is none."""
        space = self._engine.store.moves.abandon()
        self._engine.store.moves.clear()
        return None if space is None else space.model

    def close(self) -> None:
        """Close the file. What this memory has added and not embedded yet is embedded first, for up to
        `Settings.close_timeout` seconds, waiting for other programs that write included; the rest stays pending in the
        file. Closing twice does nothing.
        """
        if not self._closed:
            self._closed = True
            engine, timeout = self._engine, self._engine.settings.close_timeout
            deadline = time.monotonic() + timeout
            engine.store.database.hurry(timeout)
            engine.indexer.close(timeout)
            tidy(engine, max(0.0, deadline - time.monotonic()))
            engine.store.close()


def _resolve(embedder: Embedder | Default | str | Path | None) -> Embedder | None:
    if embedder is None:
        return None
    from .embedding import resolve_embedder

    return resolve_embedder(embedder)


def _assemble(store: SqliteStore, model: Embedder | None, settings: Settings, clock: Callable[[], float]) -> Engine:
    _check_model(store, model)
    dictionary = LiveDictionary(store)
    new = set(check_words(settings.dictionary)) - dictionary.held.words
    if new and store.database.obstacle is None:
        store.dictionary.change(add=sorted(new))
        dictionary.follow()
        if not new.isdisjoint(store.dictionary.changed().words):
            logger.warning("%s has new dictionary words, which are not found in older records. %s", store.path, WORDS)
    return Engine(
        store=store,
        indexer=Indexer(store, model, settings, dictionary, clock),
        settings=settings,
        clock=clock,
        dictionary=dictionary,
        cache=QueryCache(settings.query_cache_size, settings.query_cache_ttl, clock),
        trouble=Cause(clock),
    )


def _check_model(store: SqliteStore, model: Embedder | None) -> None:
    space = store.vectors.find_space(OWN_SPACE)
    if model is None or space is None:
        return
    # A server that has to be asked for them may be away; the first vectors are checked in any case.
    known = getattr(model, "knows_dimensions", True)
    dimensions = model.dimensions if known else space.dimensions
    if (space.model, space.dimensions) != (model.model_id, dimensions):
        raise EmbedderMismatchError(describe_mismatch(store.path, OWN_SPACE, space, model.model_id, dimensions))


def _catch_up(engine: Engine) -> None:
    """Take up what other programs, or a killed process, left to do."""
    version = segmenter_version()
    known = engine.store.facts.segmenter()
    if known not in (None, version):
        logger.warning("%s was indexed by %s, new text uses %s. %s", engine.store.path, known, version, ANEW)
    if engine.store.database.obstacle is not None:
        return
    if known is None:
        engine.store.facts.save_segmenter(version)
    changed = engine.indexer.reindex_stale()
    if changed:
        logger.info("%s: indexed %d records that another program had written", engine.store.path, changed)
    engine.indexer.wake()
