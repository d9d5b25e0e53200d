"""The way of a text: cut into chunks, segmented for the keyword index, embedded when its turn comes."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from .chunking import TextChunker, count_tokens, estimate_tokens, fit_spans
from .errors import EmbeddingError, RecallError
from .models import Chunker, Embedder, Json, Record, Span, TokenWindow
from .settings import Settings
from .store import OWN_SPACE, ChunkDraft, PendingChunk, Space, SqliteStore
from .text import analyse
from .times import MICROS_PER_SECOND

logger = logging.getLogger("recall_core")

BATCH = 256  # chunks embedded and stored together
RETRY_AFTER = 60.0  # seconds until a chunk that could not be embedded is tried again
LABEL_TERMS = 64  # of tags and metadata, at most so many are findable

# Names that say what kind of party speaks, not who: they are no words of the text.
GENERIC_ROLES = frozenset(
    {"user", "assistant", "system", "tool", "human", "ai", "bot", "function"}
    | {"developer", "model", "document", "agent", "data"}
)


def describe_speaker(role: str | None) -> str:
    """Return what precedes a text in both indexes, so that it is found by who said it; "" for generic roles."""
    if role is None or role.strip().casefold() in GENERIC_ROLES:
        return ""
    return f"{role.strip()}: "


class Indexer:
    """Prepares records for the store and gives their chunks vectors, at once or in a worker thread."""

    def __init__(
        self,
        store: SqliteStore,
        embedder: Embedder | None,
        settings: Settings,
        words: frozenset[str],
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._settings = settings
        self._words = words
        self._clock = clock
        self._window: TokenWindow | None = embedder if isinstance(embedder, TokenWindow) else None
        self._chunker: Chunker = settings.chunker or self._make_chunker()
        self._wake = threading.Event()
        self._stopping = False
        self._worker: threading.Thread | None = None

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the memory's own space."""
        return self._embedder

    def prepare(self, record: Record) -> tuple[ChunkDraft, ...]:
        """Return the chunks of a record with the terms that they are found by."""
        speaker = describe_speaker(record.role)
        labels = self._find_labels(record)
        return tuple(self._draft(record.text, span, speaker, labels) for span in self._cut(record.text, speaker))

    def embed(self, chunk_keys: Sequence[int]) -> None:
        """Give chunks their vectors now, or wake the worker. A failure is logged; the chunks stay pending."""
        if self._embedder is None or not chunk_keys:
            return
        if self._settings.embedding == "background":
            self.wake()
            return
        for start in range(0, len(chunk_keys), BATCH):
            if not self._embed_batch(chunk_keys[start : start + BATCH]):
                self.wake()

    def flush(self, timeout: float | None) -> int:
        """Embed what is pending, for at most `timeout` seconds, and return how many chunks still wait."""
        if self._embedder is None:
            return 0
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._embed_batch(None) and (deadline is None or time.monotonic() < deadline):
            pass
        return self._store.vectors.count_pending()

    def reindex_stale(self) -> int:
        """Index the records that another program added or changed; return how many there were."""
        total = 0
        while True:
            with self._store.records.transaction():
                records = self._store.records.stale(BATCH)
                for record in records:
                    self._store.records.update(record, self.prepare(record))
            total += len(records)
            if len(records) < BATCH:
                return total

    def has_pending(self) -> bool:
        """Tell whether chunks wait for a vector of this memory's embedder."""
        return self._embedder is not None and bool(self._store.vectors.pending(1, self._now()))

    def wake(self) -> None:
        """Let the worker look for pending chunks; it is started at the first call."""
        if self._embedder is None or self._stopping:
            return
        self._wake.set()
        if self._worker is None or not self._worker.is_alive():
            self._worker = threading.Thread(target=self._work, name="recall-core-embedder", daemon=True)
            self._worker.start()

    def close(self, timeout: float) -> None:
        """Stop the worker; what it has not done stays pending in the file."""
        self._stopping = True
        self._wake.set()
        if self._worker is not None and self._worker is not threading.current_thread():
            self._worker.join(timeout)

    def _work(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                if self._embed_batch(None):
                    continue
            except RecallError as error:
                logger.warning("embedding in the background stopped: %s", error)
                return
            if not self._store.vectors.count_pending():
                return
            self._wake.wait(RETRY_AFTER)

    def _embed_batch(self, chunk_keys: Sequence[int] | None) -> bool:
        """Embed some pending chunks; tell whether any was settled."""
        chunks = self._store.vectors.pending(BATCH, self._now(), chunk_keys)
        if not chunks or self._stopping:
            return False
        space = self.open_space()
        try:
            vectors = self._make_vectors(space, chunks)
        except Exception as error:  # an embedder is foreign code: whatever it raises, the text is kept
            return self._isolate_failure(space, chunks, error)
        self._save(space, chunks, vectors)
        return True

    def _isolate_failure(self, space: Space, chunks: Sequence[PendingChunk], error: Exception) -> bool:
        """After a failed batch try each chunk alone, so that one refused text does not keep the others waiting."""
        failed, reason = [], error
        settled = False
        for chunk in chunks if len(chunks) > 1 else []:
            try:
                self._save(space, [chunk], self._make_vectors(space, [chunk]))
                settled = True
            except Exception as again:
                failed.append(chunk.key)
                reason = again
                if not settled and len(failed) == 3:  # it is not the text: leave the rest for later
                    failed = [left.key for left in chunks]
                    break
        failed = failed if len(chunks) > 1 else [chunks[0].key]
        if failed:
            logger.warning(
                "%d chunks could not be embedded (%s: %s); they are found by keywords and tried again later",
                len(failed),
                type(reason).__name__,
                reason,
            )
            next_at = self._now() + int(RETRY_AFTER * MICROS_PER_SECOND)
            self._store.vectors.fail(failed, f"{type(reason).__name__}: {reason}"[:500], next_at)
        return settled

    def open_space(self) -> Space:
        """Return the memory's own vector space. Raises EmbedderMismatchError if another model made it."""
        if self._embedder is None:
            raise EmbeddingError("this memory was opened without an embedder")
        return self._store.vectors.ensure_space(OWN_SPACE, self._embedder.model_id, self._embedder.dimensions)

    def _make_vectors(self, space: Space, chunks: Sequence[PendingChunk]) -> Mapping[bytes, bytes]:
        """Return a vector for each text hash: one that the file has already, or a new one."""
        from .embedding import check_vectors

        vectors = self._store.vectors.known(space, [chunk.hash for chunk in chunks])
        texts = {chunk.hash: describe_speaker(chunk.role) + chunk.text for chunk in chunks if chunk.hash not in vectors}
        if texts and self._embedder is not None:
            made = self._embedder.embed_passages(list(texts.values()))
            checked = check_vectors(made, len(texts), space.dimensions)
            vectors.update(zip(texts, (vector.tobytes() for vector in checked), strict=True))
        return vectors

    def _save(self, space: Space, chunks: Sequence[PendingChunk], vectors: Mapping[bytes, bytes]) -> None:
        with self._store.records.transaction():
            self._store.vectors.save(space, {chunk.key: vectors[chunk.hash] for chunk in chunks}, settles=True)
            self._store.index.refresh(space)

    def _make_chunker(self) -> TextChunker:
        settings = self._settings
        size = settings.chunk_size
        spans = None
        if self._window is not None and settings.chunk_unit == "tokens":
            size, spans = min(size, self._window.window), self._window.token_spans
        return TextChunker(min(size, size), min(settings.chunk_overlap, size // 2), settings.chunk_unit, spans)

    def _cut(self, text: str, speaker: str) -> Sequence[Span]:
        if self._settings.chunker is None and self._surely_fits(speaker + text):
            return [(0, len(text))]
        spans = self._chunker.chunk(text)
        if self._window is None:
            return fit_spans(text, spans, len(text) + 1, estimate_tokens)
        window = self._window.window - (len(self._window.token_spans(speaker)) if speaker else 0)
        return fit_spans(text, spans, max(window, 1), self._window.token_spans)

    def _surely_fits(self, text: str) -> bool:
        """Tell whether a text is one chunk without asking the model's tokenizer, which takes long to load.

        No tokenizer makes more tokens than characters of the normalised text, and one for each leading space.
        """
        size = self._settings.chunk_size
        if len(text) > size:
            return False
        return len(unicodedata.normalize("NFKC", text)) + text.count(" ") + 1 < size

    def _find_labels(self, record: Record) -> str:
        strings = chain(record.tags, [record.source or ""], *(_strings(value) for value in record.metadata.values()))
        terms = [term for text in strings if text for term in self._terms(text)]
        return " ".join(list(dict.fromkeys(terms))[:LABEL_TERMS])

    def _terms(self, text: str) -> list[str]:
        found = analyse(text, self._words)
        return [*found.latin, *found.grams, *found.words]

    def _draft(self, text: str, span: Span, speaker: str, labels: str) -> ChunkDraft:
        start, end = span
        spoken = speaker + text[start:end]
        found = analyse(spoken, self._words)
        return ChunkDraft(
            start=start,
            end=end,
            tokens=count_tokens(text[start:end]),
            hash=hashlib.blake2b(spoken.encode("utf-8"), digest_size=16).digest(),
            latin=" ".join(found.latin),
            grams=" ".join(found.grams),
            words=" ".join(found.words),
            labels=labels,
        )

    def _now(self) -> int:
        return int(self._clock() * MICROS_PER_SECOND)


def _strings(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple):
        return [item for item in value if isinstance(item, str)]
    return []
