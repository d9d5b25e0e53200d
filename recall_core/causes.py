"""What keeps something from working: the last cause and since when, told in the log once and not with every call."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from .forks import Lock

logger = logging.getLogger("recall_core")

SILENCE = 300.0  # seconds in which one cause is told once, however often it comes and goes
SHOWN = 200  # characters of a cause that tell it from others; numbers in it are request ids and counts


class Cause:
    """The present cause, None while all is well. The clock gives seconds since 1970."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._present: tuple[str, float] | None = None
        self._kind: str | None = None
        self._seen: dict[str, float] = {}

    @property
    def present(self) -> tuple[str, float] | None:
        """The last cause and when it was last seen, in seconds since 1970."""
        return self._present

    def note(self, cause: str, message: str, *arguments: object) -> None:
        """Note a cause, and log a message: as a warning if it is a new one, else at the level of debugging."""
        kind, now = re.sub(r"\d+", "#", cause)[:SHOWN], self._clock()
        with self._lock:
            seen = self._seen.get(kind)
            known = kind == self._kind or (seen is not None and 0 <= now - seen < SILENCE)
            self._present = (cause, now)
            self._kind = kind
            self._seen = {old: at for old, at in self._seen.items() if abs(now - at) < SILENCE} | {kind: now}
        logger.log(logging.DEBUG if known else logging.WARNING, message, *arguments)

    def clear(self, message: str) -> None:
        """Note that all is well again; log a message if it was not."""
        with self._lock:
            was, self._present, self._kind = self._present, None, None
        if was is not None:
            logger.info(message)
