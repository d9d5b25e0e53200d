"""The way of a text: cut into chunks, segmented for the keyword index, embedded when its turn comes."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace

from .chunking import TextChunker, estimate_tokens, fit_spans, split_pages
from .embedding_queue import Claim, EmbeddingQueue, Progress, Step
from .models import Chunker, Embedder, Record, Span, TokenWindow
from .settings import Settings
from .speakers import describe_speaker
from .store import Backlog, ChunkDraft, Space, SqliteStore, Stale
from .terms import describe_spans
from .words import LiveDictionary
from .worker import LEASED_PAUSE, Worker

logger = logging.getLogger("recall_core")

BATCH = 256  # records of another program that are read and indexed together


class Indexer:
    """Prepares records for the store and has their chunks embedded, at once or in a worker thread."""

    def __init__(
        self,
        store: SqliteStore,
        embedder: Embedder | None,
        settings: Settings,
        dictionary: LiveDictionary,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._settings = settings
        self._dictionary = dictionary
        self._clock = clock
        self._queue = EmbeddingQueue(store, embedder, settings, clock)
        self._worker = Worker(self._queue, settings)
        self._window: TokenWindow | None = embedder if isinstance(embedder, TokenWindow) else None
        self._chunker: Chunker = settings.chunker or self._make_chunker()

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the memory's own space."""
        return self._embedder

    def for_embedder(self, embedder: Embedder) -> Indexer:
        """Return an indexer of the same memory with another embedder."""
        return Indexer(self._store, embedder, self._settings, self._dictionary, self._clock)

    def prepare(self, record: Record) -> tuple[ChunkDraft, ...]:
        """Return the chunks of a record with the terms that they are found by."""
        return self.describe(record, self._cut(record.text, describe_speaker(record.role)))

    def describe(self, record: Record, spans: Sequence[Span]) -> tuple[ChunkDraft, ...]:
        """Return the chunks of a record that lie at these offsets of its text."""
        dictionary, embeds = self._dictionary.held, self._is_embedded(record)
        drafts = describe_spans(record, spans, dictionary.words)
        return tuple(replace(draft, embeds=embeds, dictionary=dictionary.version) for draft in drafts)

    def renew(self, record: Record, chunks: Sequence[ChunkDraft]) -> tuple[ChunkDraft, ...]:
        """Return the chunks of a record with other terms if a word has come to the dictionary, or gone, since they were
        made. Inside the transaction that stores them nobody can change it any more.
        """
        version = self._dictionary.follow().version
        if all(chunk.dictionary == version for chunk in chunks):
            return tuple(chunks)
        return self.describe(record, [(chunk.start, chunk.end) for chunk in chunks])

    def claim(self, chunk_keys: Sequence[int]) -> Claim:
        """Claim chunks for `embed`, inside the transaction that stores them: it costs none of its own then."""
        return self._queue.claim(chunk_keys)

    def embed(self, chunk_keys: Sequence[int], claim: Claim | None = None) -> None:
        """Give chunks their vectors now, or leave them to the worker. A failure is logged; the chunks stay pending."""
        if self._embedder is None or not chunk_keys:
            return
        if self._settings.embedding == "background":
            self._worker.add(chunk_keys)
            return
        outcome = self._queue.embed(claim or self._queue.claim(chunk_keys), chunk_keys)
        if outcome.step is not Step.DONE:
            self._worker.retry(LEASED_PAUSE if outcome.step is Step.IDLE else outcome.pause)

    def flush(
        self,
        timeout: float | None = None,
        *,
        retry_failed: bool = False,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Index what another program has written, and embed what is pending; return how many chunks still wait."""
        self.reindex_stale()
        if self._embedder is None:
            return 0
        return self._queue.flush(timeout, retry_failed=retry_failed, limit=limit, progress=progress)

    def count(self) -> Backlog:
        """Count the chunks that wait for a vector, by their state."""
        return self._queue.count()

    def wake(self) -> None:
        """Let the worker look for pending chunks, now and then at intervals; it is started at the first call."""
        self._worker.retry(0.0)

    def close(self, timeout: float) -> None:
        """Embed what was added, for up to `timeout` seconds, and end; the rest stays pending in the file."""
        self._worker.close(timeout)

    def open_space(self) -> Space:
        """Return the memory's own vector space. Raises EmbedderMismatchError if another model made it."""
        return self._queue.open_space()

    def reindex_stale(self) -> int:
        """Index the records that another program added or changed; return how many there were."""
        total, after = 0, -(1 << 63)  # another program may have chosen any key
        self._dictionary.follow()
        while records := self._store.records.stale(BATCH, after):
            after = records[-1].key
            prepared = [(stale, self._prepare_stale(stale)) for stale in records]  # takes long: outside the lock
            with self._store.records.transaction():
                for stale, chunks in prepared:
                    renewed = self.renew(stale.record, chunks) if chunks else chunks
                    total += bool(renewed) and self._store.records.reindex(stale, renewed)
        return total

    def _prepare_stale(self, stale: Stale) -> tuple[ChunkDraft, ...]:
        """Return the chunks of another program's record; none if that fails, so that it is no obstacle to others."""
        try:
            return self.prepare(stale.record)
        except Exception as error:  # a chunker may be foreign code
            logger.warning("a record of another program can't be indexed (%s: %s)", type(error).__name__, error)
            return ()

    def _is_embedded(self, record: Record) -> bool:
        """Tell whether the settings want a record to have vectors."""
        roles, least = self._settings.embed_roles, self._settings.embed_min_characters
        wanted = (roles is None or record.role in roles) and len(record.text) >= least
        return wanted and not record.text.isspace() and record.text != ""

    def _make_chunker(self) -> TextChunker:
        settings = self._settings
        size = settings.chunk_size
        spans = None
        if self._window is not None and settings.chunk_unit == "tokens":
            size, spans = min(size, self._window.window), self._window.token_spans
        return TextChunker(size, min(settings.chunk_overlap, size // 2), settings.chunk_unit, spans)

    def _cut(self, text: str, speaker: str) -> Sequence[Span]:
        return [
            (offset + start, offset + end)
            for offset, page in split_pages(text)
            for start, end in self._cut_page(page, speaker)
        ]

    def _cut_page(self, text: str, speaker: str) -> Sequence[Span]:
        if self._settings.chunker is None and self._surely_fits(speaker + text):
            return [(0, len(text))]
        spans = self._chunker.chunk(text)
        if self._window is None:
            return fit_spans(text, spans, len(text) + 1, estimate_tokens)
        window = self._window.window - (len(self._window.token_spans(speaker)) if speaker else 0)
        return fit_spans(text, spans, max(window, 1), self._window.token_spans)

    def _surely_fits(self, text: str) -> bool:
        """Tell whether a text is one chunk without asking the model's tokenizer, which takes long to load.

        No tokenizer makes more tokens than there are bytes of the text, decomposed, and one in front.
        """
        if self._window is None:
            return len(text) <= self._settings.chunk_size
        size = min(self._settings.chunk_size, self._window.window)
        return len(text) < size and len(unicodedata.normalize("NFKD", text).encode("utf-8")) < size
