"""Keeps the leases of chunks from running out while a slow embedder works on them."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from .errors import RecallError
from .forks import Lock

logger = logging.getLogger("recall_core")

RENEW_EVERY = 2.5  # seconds; a quarter of a lease


class LeaseKeeper:
    """Renews the leases of those who embed, in a thread that is there only while somebody does."""

    def __init__(self, renew: Callable[[Sequence[str]], object]) -> None:
        self._renew = renew
        self._lock = Lock()
        self._since: dict[str, float] = {}  # who embeds, and since when
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def hold(self, owner: str) -> Iterator[None]:
        """Renew the leases of `owner` while the context lasts."""
        with self._lock:
            self._since[owner] = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recall-core-leases", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._since.pop(owner, None)

    def drop(self) -> list[str]:
        """Renew no lease any more, and return whose there were."""
        with self._lock:
            owners = list(self._since)
            self._since.clear()
            return owners

    def _run(self) -> None:
        ticks = threading.Event()  # never set: it only keeps time
        while True:
            ticks.wait(RENEW_EVERY)
            with self._lock:
                if not self._since:
                    self._thread = None
                    return
                before = time.monotonic() - RENEW_EVERY
                slow = [owner for owner, since in self._since.items() if since <= before]
            if slow:
                try:
                    self._renew(slow)
                except RecallError as error:  # at worst another process embeds the same
                    logger.debug("leases could not be renewed: %s", error)
