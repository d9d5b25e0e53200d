"""The way of a text: cut into chunks, segmented for the keyword index, embedded when its turn comes."""

from __future__ import annotations

import atexit
import enum
import hashlib
import logging
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from .chunking import TextChunker, estimate_tokens, fit_spans
from .errors import ClosedError, EmbedderMismatchError, EmbeddingError, RecallError, StoreBusyError, StoreError
from .models import Chunker, Embedder, Json, Record, Span, TokenWindow
from .settings import Settings
from .store import OWN_SPACE, ChunkDraft, PendingChunk, Space, SqliteStore, Stale
from .text import analyse
from .times import MICROS_PER_SECOND

logger = logging.getLogger("recall_core")

BATCH = 256  # chunks embedded and stored together
MOST_REFUSED = 16  # texts of a batch that may be refused before the rest is left for later
RETRY_AFTER = 60.0  # seconds until a chunk that could not be embedded is tried again; doubles with each failure
LABEL_TERMS = 64  # of tags and metadata, at most so many are findable
SPEAKER_LENGTH = 64  # characters of a role that are part of the text; the rest would push it out of a model's window

EXIT_TIMEOUT = 10.0  # seconds that the end of a program waits for the batch that is being embedded

# Names that say what kind of party speaks, not who: they are no words of the text.
GENERIC_ROLES = frozenset(
    {"user", "assistant", "system", "tool", "human", "ai", "bot", "function"}
    | {"developer", "model", "document", "agent", "data"}
)


def describe_speaker(role: str | None) -> str:
    """Return what precedes a text in both indexes, so that it is found by who said it; "" for generic roles."""
    name = "" if role is None else role.strip()[:SPEAKER_LENGTH]
    return "" if not name or name.casefold() in GENERIC_ROLES else f"{name}: "


class _Step(enum.Enum):
    """What became of a batch."""

    IDLE = "nothing was due"
    DONE = "all chunks have their vectors"
    REFUSED = "some texts were refused, the others have their vectors"
    STALLED = "the embedder seems to be out of order; some chunks were not tried"


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
        self._worker_lock = threading.Lock()
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
            try:
                step = self._embed_batch(chunk_keys[start : start + BATCH])
            except RecallError as error:  # the text is stored, only its vectors have to wait
                logger.warning("vectors could not be stored (%s); they are made again later", error)
                step = _Step.STALLED
            if step in (_Step.REFUSED, _Step.STALLED):
                self.wake()
            if step is _Step.STALLED:
                return

    def flush(self, timeout: float | None) -> int:
        """Embed what is pending, for at most `timeout` seconds, and return how many chunks still wait.

        What another program has written is indexed first, and what has failed before is tried again at once.
        """
        self.reindex_stale()
        if self._embedder is None:
            return 0
        deadline = None if timeout is None else time.monotonic() + timeout
        self._store.pending.retry()
        stalled = 0
        while stalled < 2 and (deadline is None or time.monotonic() < deadline):
            step = self._embed_batch(None, deadline)
            if step is _Step.IDLE:
                break
            stalled = stalled + 1 if step is _Step.STALLED else 0
        return self._store.vectors.count_pending()

    def reindex_stale(self) -> int:
        """Index the records that another program added or changed; return how many there were."""
        total, after = 0, -(1 << 63)  # another program may have chosen any key
        while records := self._store.records.stale(BATCH, after):
            after = records[-1].key
            prepared = [(stale, self._prepare_stale(stale)) for stale in records]  # takes long: outside the lock
            with self._store.records.transaction():
                total += sum(self._store.records.reindex(stale, chunks) for stale, chunks in prepared if chunks)
        return total

    def has_pending(self) -> bool:
        """Tell whether chunks wait for a vector of this memory's embedder."""
        return self._embedder is not None and self._store.vectors.count_pending() > 0

    def wake(self) -> None:
        """Let the worker look for pending chunks; it is started at the first call."""
        if self._embedder is None:
            return
        with self._worker_lock:
            if self._stopping:
                return
            self._wake.set()
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="recall-core-embedder", daemon=True)
                self._worker.start()
                # A model that runs while the interpreter goes away aborts the process.
                atexit.register(self.close, EXIT_TIMEOUT)

    def close(self, timeout: float) -> None:
        """Stop the worker; what it has not done stays pending in the file."""
        self._stopping = True
        self._wake.set()
        atexit.unregister(self.close)
        worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join(timeout)

    def open_space(self) -> Space:
        """Return the memory's own vector space. Raises EmbedderMismatchError if another model made it."""
        if self._embedder is None:
            raise EmbeddingError("this memory was opened without an embedder")
        return self._store.vectors.ensure_space(OWN_SPACE, self._embedder.model_id, self._embedder.dimensions)

    def _work(self) -> None:
        """Embed what is due until nothing is pending; after a failure wait for a while, or until woken."""
        while not self._stopping:
            self._wake.clear()
            try:
                step = self._embed_batch(None)
                waits = step is _Step.STALLED or (step is _Step.IDLE and self.has_pending())
            except StoreBusyError as error:
                logger.warning("embedding in the background waits: %s", error)
                step, waits = _Step.STALLED, True
            except RecallError as error:
                if not self._stopping:
                    logger.warning("embedding in the background stopped: %s", error)
                break
            if waits:
                self._wake.wait(RETRY_AFTER)
            elif step is _Step.IDLE and self._retire():
                return
        self._worker = None

    def _retire(self) -> bool:
        """Tell whether the worker may end: not if it was woken since it last looked."""
        with self._worker_lock:
            if not self._wake.is_set():
                self._worker = None
            return self._worker is None

    def _embed_batch(self, chunk_keys: Sequence[int] | None, deadline: float | None = None) -> _Step:
        """Embed some pending chunks; in a file one batch at a time, so that no text is embedded twice."""
        lock = self._store.database.embedding_lock
        if not lock.acquire(timeout=-1 if deadline is None else max(0.0, deadline - time.monotonic())):
            return _Step.IDLE
        try:
            chunks = self._store.pending.due(BATCH, self._now(), chunk_keys)
            if not chunks or self._stopping:
                return _Step.IDLE
            return self._settle(chunks)
        finally:
            lock.release()

    def _settle(self, chunks: Sequence[PendingChunk]) -> _Step:
        """Embed chunks and store their vectors. If that fails, find the refused texts; the others need not wait."""
        waiting: list[Sequence[PendingChunk]] = [chunks]
        refused: list[PendingChunk] = []
        reason: Exception | None = None
        settled = False
        while waiting and len(refused) < (MOST_REFUSED if settled else 2):
            part = waiting.pop()
            error = self._try(part)
            if error is None:
                settled = True
            elif len(part) == 1:
                refused.append(part[0])
                reason = error
            elif part is chunks:  # both ends first: if they fail too, it is hardly the text
                waiting += filter(None, (part[1:-1], part[-1:], part[:1]))
            else:
                half = len(part) // 2
                waiting += (part[half:], part[:half])
        if reason is None:
            return _Step.DONE
        self._note_failure(refused, reason)
        return _Step.REFUSED if settled or not waiting else _Step.STALLED

    def _try(self, chunks: Sequence[PendingChunk]) -> Exception | None:
        """Embed chunks and store their vectors, or return what went wrong with the embedder."""
        try:
            space = self.open_space()
            vectors = self._make_vectors(space, chunks)
        except (StoreError, ClosedError, EmbedderMismatchError):
            raise
        except Exception as error:  # an embedder is foreign code: whatever it raises, the text is kept
            return error
        with self._store.records.transaction():
            self._store.pending.settle(space, chunks, vectors)
            left = self._store.index.refresh(space)
        while left:  # one by one, so that other writers have their turn
            left = self._store.index.refresh(space)
        return None

    def _note_failure(self, chunks: Sequence[PendingChunk], error: Exception) -> None:
        logger.warning(
            "%d chunks could not be embedded (%s: %s); they are found by keywords and tried again later",
            len(chunks),
            type(error).__name__,
            error,
        )
        message, delay = f"{type(error).__name__}: {error}"[:500], int(RETRY_AFTER * MICROS_PER_SECOND)
        self._store.pending.fail([chunk.key for chunk in chunks], message, self._now(), delay)

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

    def _prepare_stale(self, stale: Stale) -> tuple[ChunkDraft, ...]:
        """Return the chunks of another program's record; none if that fails, so that it is no obstacle to others."""
        try:
            return self.prepare(stale.record)
        except Exception as error:  # a chunker may be foreign code
            logger.warning("a record of another program can't be indexed (%s: %s)", type(error).__name__, error)
            return ()

    def _make_chunker(self) -> TextChunker:
        settings = self._settings
        size = settings.chunk_size
        spans = None
        if self._window is not None and settings.chunk_unit == "tokens":
            size, spans = min(size, self._window.window), self._window.token_spans
        return TextChunker(size, min(settings.chunk_overlap, size // 2), settings.chunk_unit, spans)

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

        No tokenizer makes more tokens than there are bytes of the text, decomposed, and one in front.
        """
        if self._window is None:
            return len(text) <= self._settings.chunk_size
        size = min(self._settings.chunk_size, self._window.window)
        return len(text) < size and len(unicodedata.normalize("NFKD", text).encode("utf-8")) < size

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
            tokens=found.length,
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
