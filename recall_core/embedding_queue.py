"""The durable embedding queue: chunks without a vector are claimed, embedded and settled, whoever fails meanwhile.

The queue is a table of the file, so it survives a crash and all processes share it. Whoever embeds a chunk has claimed
it before, for a while that is renewed as long as that takes; a text is never embedded for two chunks at once.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import os
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .causes import Cause
from .errors import (
    ClosedError,
    EmbedderMismatchError,
    EmbedderUnavailableError,
    EmbeddingError,
    PartlyEmbeddedError,
    RecallError,
    StoreError,
)
from .leases import LeaseKeeper
from .models import Embedder
from .settings import Settings
from .speakers import describe_speaker
from .store import OWN_SPACE, RETRY_AFTER, Backlog, PendingChunk, Space, SqliteStore
from .times import MICROS_PER_SECOND

BATCH = 256  # chunks embedded and stored together, unless the embedder says what it likes best (`call_size`)
MOST_BATCH = 1024
MOST_REFUSED = 16  # texts of a batch that may be refused before the rest is left for later
PAUSE, LONGEST_PAUSE = 60.0, 3840.0  # seconds without a try after the embedder was out of order
POLL = 0.01  # seconds between two looks at what others are embedding
PATIENCE = 2.0  # seconds that `add` waits for somebody who is embedding the same text

Progress = Callable[[int], object]


class Step(enum.Enum):
    """What became of chunks."""

    IDLE = "nothing was due"
    DONE = "all of them have their vectors"
    REFUSED = "some texts were refused, the others have their vectors"
    STALLED = "the embedder seems to be out of order; some chunks were not tried"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of chunks, and how many got a vector. After a stall nothing should be tried for `pause` seconds; it
    is `told` if the embedder said itself that no text is at fault.
    """

    step: Step
    settled: int = 0
    pause: float = 0.0
    told: bool = False

    def add(self, later: Outcome) -> Outcome:
        """Return what became of these chunks and of others after them."""
        step = Step.REFUSED if self.step is Step.REFUSED and later.step is Step.DONE else later.step
        return replace(later, step=step, settled=self.settled + later.settled)


@dataclass(frozen=True, slots=True)
class Claim:
    """Chunks that nobody else embeds meanwhile."""

    owner: str
    chunks: tuple[PendingChunk, ...] = ()


@dataclass(frozen=True, slots=True)
class _Made:
    """What the embedder gave: vectors and reasons for refusal by text hash; the rest has none because of `failure`."""

    vectors: Mapping[bytes, bytes]
    refused: Mapping[bytes, str] = field(default_factory=dict)
    failure: EmbeddingError | None = None


@dataclass(slots=True)
class _Failed:
    """Why texts, by their hashes, have no vector: they were refused, or nothing could be embedded just then."""

    refused: dict[bytes, str] = field(default_factory=dict)
    postponed: dict[bytes, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.refused) + len(self.postponed)

    def note(self, hash_: bytes, error: Exception) -> None:
        """Note what the embedder raised for one text. A network or a disk that fails is not the text's fault."""
        (self.postponed if isinstance(error, OSError) else self.refused)[hash_] = _describe(error)

    def postpone(self) -> None:
        """Blame no text."""
        self.postponed.update(self.refused)
        self.refused.clear()


class EmbeddingQueue:
    """Gives chunks their vectors. All methods may be called from any thread."""

    def __init__(
        self, store: SqliteStore, embedder: Embedder | None, settings: Settings, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._settings = settings
        self._clock = clock
        self._trouble = Cause(clock)
        self._keeper = LeaseKeeper(self._renew)
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._numbers = itertools.count()  # no generator: two threads may ask for the next at once
        self._paused_until = 0.0
        self._closed = False

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the memory's own space."""
        return self._embedder

    @property
    def batch(self) -> int:
        """How many chunks are best embedded together."""
        return max(1, min(MOST_BATCH, int(getattr(self._embedder, "call_size", BATCH))))

    def open_space(self) -> Space:
        """Return the memory's own vector space. Raises EmbedderMismatchError if another model made it."""
        if self._embedder is None:
            raise EmbeddingError("this memory was opened without an embedder")
        return self._store.vectors.ensure_space(OWN_SPACE, self._embedder.model_id, self._embedder.dimensions)

    def claim(self, keys: Sequence[int]) -> Claim:
        """Claim the chunks that are to be embedded inline, in the transaction that stores them: it costs none then."""
        if not keys or self._settings.embedding == "background" or time.monotonic() < self._paused_until:
            return Claim("")
        return self._claim(len(keys), keys)

    def embed(self, claim: Claim, keys: Sequence[int]) -> Outcome:
        """Give chunks that were just stored their vectors, `claim` being those of them that could be claimed. A failure
        is logged; the text is stored all the same. IDLE means that somebody else is embedding the same text.
        """
        pause = self._paused_until - time.monotonic()
        if pause > 0:  # nobody who adds should wait for an embedder that is out of order
            return Outcome(Step.STALLED, pause=pause)
        deadline = time.monotonic() + PATIENCE
        left = list(keys)
        try:
            while True:
                outcome = self._finish(claim)
                if outcome.step in (Step.REFUSED, Step.STALLED):
                    return outcome
                claimed = {chunk.key for chunk in claim.chunks}
                left = [key for key in left if key not in claimed]
                claim = self._claim(len(left), left) if left else Claim("")
                if claim.chunks:
                    continue
                if not left or not self.has_open(left):
                    return Outcome(Step.DONE)
                if time.monotonic() > deadline:
                    return Outcome(Step.IDLE)
                time.sleep(POLL)
        except RecallError as error:
            message = "vectors could not be stored (%s); they are made again later"
            self._trouble.note(_describe(error), message, error)
            return Outcome(Step.STALLED, pause=PAUSE)

    def run(self, limit: int, keys: Sequence[int] | None = None) -> Outcome:
        """Embed up to `limit` chunks that are due, of `keys` if given."""
        return self._finish(self._claim(limit, keys))

    def flush(
        self,
        timeout: float | None = None,
        *,
        retry_failed: bool = False,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Embed what is pending, for at most `timeout` seconds and `limit` chunks, and return how many still wait.

        What has failed before is tried again at once; what rests, too, with `retry_failed`. What other processes are
        embedding is waited for. `progress` is called after each batch with the number of chunks embedded so far.
        """
        if self._embedder is None:
            return self._store.vectors.count_pending()
        deadline = None if timeout is None else time.monotonic() + timeout
        self._paused_until = 0.0
        self._store.pending.retry(most_failures=self._settings.embed_failures, resting=retry_failed)
        stalled = done = 0
        while stalled < 2 and not self._closed and (deadline is None or time.monotonic() < deadline):
            size = self.batch if limit is None else min(self.batch, limit - done)
            if size <= 0:
                break
            outcome = self.run(size)
            if outcome.step is Step.IDLE:
                if not self.has_open():  # but for what others are embedding
                    break
                time.sleep(POLL)
                continue
            stalled = stalled + 1 + outcome.told if outcome.step is Step.STALLED else 0
            done += outcome.settled
            if progress is not None:
                progress(done)
        return self._store.vectors.count_pending()

    def count(self) -> Backlog:
        """Count the chunks that wait, by their state."""
        return self._store.pending.count(self._now(), self._settings.embed_failures)

    def has_open(self, keys: Sequence[int] | None = None) -> bool:
        """Tell whether chunks, of `keys` if given, are being embedded, here or elsewhere, or could be."""
        return self._store.pending.has_open(self._now(), self._settings.embed_failures, keys)

    def close(self) -> None:
        """Begin no batch any more, and give back what one that does not end has claimed."""
        self._closed = True
        owners = self._keeper.drop()
        if owners:
            self._release(owners)

    def _claim(self, limit: int, keys: Sequence[int] | None = None) -> Claim:
        if self._embedder is None or self._closed:
            return Claim("")
        owner = f"{self._name}-{next(self._numbers)}"
        most = self._settings.embed_failures
        chunks = self._store.pending.claim(owner, limit, self._now(), most_failures=most, keys=keys)
        return Claim(owner, tuple(chunks))

    def _finish(self, claim: Claim) -> Outcome:
        """Embed claimed chunks, batch by batch, and give back what was not tried."""
        if not claim.chunks:
            return Outcome(Step.IDLE)
        left, outcome = list(claim.chunks), Outcome(Step.DONE)
        with self._keeper.hold(claim.owner):
            try:
                while left and not self._closed and outcome.step is not Step.STALLED:
                    outcome = outcome.add(self._settle(left[: self.batch]))
                    del left[: self.batch]
            finally:
                if left or outcome.step is not Step.DONE:
                    self._release([claim.owner])
        pause = min(outcome.pause, PAUSE)  # what is added asks again soon, whatever the backlog waits for
        self._paused_until = time.monotonic() + pause if outcome.step is Step.STALLED else 0.0
        if outcome.step is Step.DONE:
            self._trouble.clear("texts are embedded again")
        return outcome

    def _settle(self, chunks: Sequence[PendingChunk]) -> Outcome:
        """Embed chunks and store their vectors. If that fails, find the refused texts; the others need not wait."""
        waiting: list[Sequence[PendingChunk]] = [chunks]
        failed = _Failed()
        settled = 0
        while waiting and len(failed) < (MOST_REFUSED if settled else 2):
            part = waiting.pop()
            made = self._attempt(part)
            if isinstance(made, _Made):
                settled += sum(chunk.hash in made.vectors for chunk in part)
                failed.refused.update(made.refused)
                if made.failure is not None:
                    rest = {chunk.hash for chunk in itertools.chain(part, *waiting)} - made.vectors.keys()
                    return self._stall(rest, failed, settled, made.failure)
            elif len(part) > 1:
                waiting += _split(part, at_first=part is chunks)
            else:
                failed.note(part[0].hash, made)
        if not len(failed):
            return Outcome(Step.DONE, settled)
        stalled = not settled and (bool(waiting) or not failed.refused)
        if stalled:  # both ends failed: it is hardly their fault
            failed.postpone()
        self._note_failures(failed, RETRY_AFTER)
        return Outcome(Step.STALLED if stalled else Step.REFUSED, settled, PAUSE if stalled else 0.0)

    def _attempt(self, chunks: Sequence[PendingChunk]) -> _Made | Exception:
        """Embed chunks and store their vectors, or return what the embedder raised."""
        try:
            space = self.open_space()
            made = self._make_vectors(space, chunks)
        except (StoreError, ClosedError, EmbedderMismatchError):
            raise
        except EmbedderUnavailableError as error:
            return _Made({}, failure=error)
        except Exception as error:  # an embedder is foreign code: whatever it raises, the text is kept
            return error
        with_vectors = [chunk for chunk in chunks if chunk.hash in made.vectors]
        if with_vectors:
            self._save(space, with_vectors, made.vectors)
        return made

    def _make_vectors(self, space: Space, chunks: Sequence[PendingChunk]) -> _Made:
        """Return a vector for each text hash: one that the file has already, or a new one."""
        from .vectors import check_vectors

        vectors = self._store.vectors.known(space, [chunk.hash for chunk in chunks])
        texts = {chunk.hash: describe_speaker(chunk.role) + chunk.text for chunk in chunks if chunk.hash not in vectors}
        if not texts or self._embedder is None:
            return _Made(vectors)
        hashes = list(texts)
        try:
            made = self._embedder.embed_passages(list(texts.values()))
        except PartlyEmbeddedError as error:
            part = check_vectors(list(error.vectors.values()), len(error.vectors), space.dimensions)
            for place, vector in zip(error.vectors, part, strict=True):
                vectors[hashes[place]] = vector.tobytes()
            return _Made(vectors, {hashes[place]: why for place, why in error.refused.items()}, error.failure)
        except EmbedderUnavailableError as error:
            return _Made(vectors, failure=error)
        checked = check_vectors(made, len(texts), space.dimensions)
        vectors.update(zip(texts, (vector.tobytes() for vector in checked), strict=True))
        return _Made(vectors)

    def _save(self, space: Space, chunks: Sequence[PendingChunk], vectors: Mapping[bytes, bytes]) -> None:
        with self._store.records.transaction():
            if self.open_space() != space:  # the file was moved to another model meanwhile
                raise EmbedderMismatchError(
                    f"the vectors of {self._store.path} are of another model by now; open it anew"
                )
            self._store.pending.settle(space, chunks, vectors)
            left = self._store.index.refresh(space)
        while left:  # one by one, so that other writers have their turn
            left = self._store.index.refresh(space)

    def _stall(self, rest: Collection[bytes], failed: _Failed, settled: int, error: Exception) -> Outcome:
        """Leave texts for later because of an error that none of them is to blame for."""
        pause, permanent = PAUSE, False
        if isinstance(error, EmbedderUnavailableError):
            pause = min(max(1.0, error.retry_after or PAUSE), LONGEST_PAUSE)
            permanent = error.permanent
        failed.postponed.update(dict.fromkeys(set(rest) - failed.refused.keys(), _describe(error)))
        self._note_failures(failed, int(pause * MICROS_PER_SECOND))
        return Outcome(Step.STALLED, settled, LONGEST_PAUSE if permanent else pause, told=True)

    def _note_failures(self, failed: _Failed, delay: int) -> None:
        now = self._now()
        for errors, counts in ((failed.refused, True), (failed.postponed, False)):
            if not errors:
                continue
            reason = next(reversed(errors.values()))
            self._trouble.note(
                reason,
                "%d texts could not be embedded (%s); they are found by keywords and tried again later",
                len(errors),
                reason,
            )
            self._store.pending.fail(errors, now, delay=RETRY_AFTER if counts else delay, counts=counts)

    def _renew(self, owners: Sequence[str]) -> None:
        self._store.pending.renew(owners, self._now())

    def _release(self, owners: Sequence[str]) -> None:
        with contextlib.suppress(RecallError):  # it is closed, or busy: the leases run out by themselves
            self._store.pending.release(owners)

    def _now(self) -> int:
        return int(self._clock() * MICROS_PER_SECOND)


def _split(part: Sequence[PendingChunk], *, at_first: bool) -> list[Sequence[PendingChunk]]:
    """Return the parts of a batch that failed, the one to try next last."""
    if at_first:  # both ends: if they fail too, it is hardly the text
        return list(filter(None, (part[1:-1], part[-1:], part[:1])))
    half = len(part) // 2
    return [part[half:], part[:half]]


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]
