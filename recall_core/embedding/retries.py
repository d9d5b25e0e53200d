"""When a request is tried again, and how long that waits."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime

LONGEST_BACKOFF = 30.0  # seconds; without a word of the server
LONGEST_PAUSE = 60.0  # seconds; a server that asks for more is tried again by the caller, not here


def read_retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that an answer asks to wait for: `retry-after-ms`, or `Retry-After` (RFC 9110, 10.2.3).

    The latter is a number of seconds or a date. None if there is neither, or nothing that can be read.
    """
    from email.utils import parsedate_to_datetime

    milliseconds = _read_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    seconds = _read_number(given)
    if seconds is not None or given is None:
        return seconds
    try:
        date = parsedate_to_datetime(given)
    except (ValueError, TypeError, OverflowError):
        return None
    date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


def choose_pause(attempt: int, backoff: float, retry_after: float | None, draw: float | None = None) -> float:
    """Return the seconds to wait before attempt `attempt`, from 1, is repeated.

    Doubles with each attempt, with the second half of it left to chance, so that many clients do not come back at the
    same moment. What the server asked for is never undercut. `draw`, in 0..1, stands for chance.
    """
    chance = random.random() if draw is None else draw
    pause: float = min(LONGEST_BACKOFF, backoff * 2 ** min(attempt - 1, 30)) * (0.5 + chance / 2)
    if retry_after is None:
        return pause
    return max(pause, retry_after + min(1.0, 0.1 * retry_after) * chance)


class Pace:
    """When the next request may start. `hold` may be called by any thread, the others by one at a time."""

    def __init__(self) -> None:
        self._next = -math.inf

    def remaining(self) -> float:
        """Return the seconds until the next request may start; 0 or less means now."""
        return self._next - time.monotonic()

    def started(self, interval: float) -> None:
        """Note that a request starts now; the next one may start `interval` seconds later."""
        self.hold(interval)

    def hold(self, seconds: float) -> None:
        """Let no request start for so many seconds."""
        self._next = max(self._next, time.monotonic() + seconds)


def _read_number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None
