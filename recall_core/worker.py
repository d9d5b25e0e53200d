"""The thread that embeds in the background: what its memory has just added at once, what is left over now and then."""

from __future__ import annotations

import atexit
import logging
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from .embedding_queue import PAUSE, EmbeddingQueue, Outcome, Step
from .errors import ClosedError, EmbedderMismatchError, RecallError
from .forks import Lock
from .leases import RENEW_EVERY
from .settings import Settings

logger = logging.getLogger("recall_core")

EXIT_TIMEOUT = 10.0  # seconds that the end of a program waits for the batch that is being embedded
LONGEST_WAIT = 3600.0  # seconds
LEASED_PAUSE = 4 * RENEW_EVERY  # seconds after which it shows whether those who were embedding still do


class Worker:
    """Embeds in a thread, from the first call until it is closed. What is left over is looked for at intervals."""

    def __init__(self, queue: EmbeddingQueue, settings: Settings) -> None:
        self._queue = queue
        self._interval = settings.backfill_interval
        self._most = settings.backfill_limit if settings.embedding == "background" else math.inf
        self._added: deque[int] = deque()
        self._left: float = 0  # chunks that this run may still take
        self._next_run = 0.0 if self._interval < math.inf else math.inf  # on the monotonic clock
        self._deadline = math.inf  # no batch is begun that would hardly be done by then
        self._longest = 0.0  # seconds that a batch has taken
        self._closing = False
        self._wake = threading.Event()
        self._lock = Lock()
        self._thread: threading.Thread | None = None
        self._at_exit: Callable[[], None] | None = None

    def add(self, keys: Sequence[int]) -> None:
        """Embed chunks that were just added, before all others."""
        if keys and self._queue.embedder is not None:
            self._added.extend(keys)
            self._begin()
            self._wake.set()

    def retry(self, pause: float) -> None:
        """Make the next run over what is left over in `pause` seconds, unless `backfill_interval` forbids any."""
        if self._queue.embedder is not None and self._interval < math.inf:
            self._next_run = min(self._next_run, time.monotonic() + pause)
            self._begin()
            self._wake.set()

    def close(self, timeout: float, *, drains: bool = True) -> None:
        """Embed what was added, if this `drains`, and end, within `timeout` seconds. The rest stays pending."""
        with self._lock:
            self._deadline = time.monotonic() + (timeout if drains else 0.0)
            self._closing = True
            thread = self._thread
        self._wake.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        self._queue.close()
        if self._at_exit is not None and (thread is None or not thread.is_alive()):
            atexit.unregister(self._at_exit)

    def _begin(self) -> None:
        with self._lock:
            if self._thread is not None or self._closing:
                return
            self._thread = threading.Thread(
                target=_serve, args=(weakref.ref(self), self._wake), name="recall-core-embedder", daemon=True
            )
            # A model that runs while the interpreter goes away aborts the process.
            self._at_exit = partial(_end, weakref.ref(self))
            atexit.register(self._at_exit)
            weakref.finalize(self, _forget, self._wake, self._at_exit).atexit = False
            self._thread.start()

    def _do(self) -> float | None:
        """Do what there is to do now; return for how many seconds nothing will be, None if it is over."""
        try:
            while self._step():
                pass
        except (ClosedError, EmbedderMismatchError) as error:
            if not self._closing:
                logger.warning("embedding in the background stopped: %s", error)
            return None
        except (
            RecallError,
            SystemExit,
        ) as error:  # another writer, a full disk, an embedder that gives up: it may pass
            if not self._closing:
                logger.warning("embedding in the background waits: %s: %s", type(error).__name__, error)
            self._left, self._next_run = 0, time.monotonic() + min(self._interval, PAUSE)
        return None if self._closing else min(max(0.0, self._next_run - time.monotonic()), LONGEST_WAIT)

    def _step(self) -> bool:
        """Embed a batch, or begin a run; tell whether there may be more to do."""
        now = time.monotonic()
        if self._added and now + self._longest < self._deadline:
            keys = [self._added.popleft() for _ in range(min(self._queue.batch, len(self._added)))]
            self._run(len(keys), keys)
        elif self._closing:
            return False
        elif now >= self._next_run:
            self._left, self._next_run = self._most, now + self._interval
        elif self._left > 0:
            outcome = self._run(int(min(self._left, self._queue.batch)), None)
            self._left -= self._queue.batch
            if outcome.step is Step.IDLE:
                self._left = 0
                if self._queue.has_open():  # but claimed by somebody who may have been killed
                    self._next_run = min(self._next_run, now + LEASED_PAUSE)
        else:
            return False
        return True

    def _run(self, limit: int, keys: Sequence[int] | None) -> Outcome:
        started = time.monotonic()
        outcome = self._queue.run(limit, keys)
        ended = time.monotonic()
        self._longest = max(self._longest, ended - started)
        if outcome.step is Step.STALLED:
            self._added.clear()  # the next run finds them
            self._left, self._next_run = 0, min(self._next_run, ended + outcome.pause)
        return outcome


def _serve(reference: weakref.ref[Worker], wake: threading.Event) -> None:
    """Let a worker work until it is over, or nobody has it any more."""
    while (worker := reference()) is not None:
        wake.clear()
        pause = worker._do()
        del worker
        if pause is None:
            return
        wake.wait(pause)


def _end(reference: weakref.ref[Worker]) -> None:
    if (worker := reference()) is not None:
        worker.close(EXIT_TIMEOUT, drains=False)


def _forget(wake: threading.Event, at_exit: Callable[[], None]) -> None:
    atexit.unregister(at_exit)
    wake.set()
