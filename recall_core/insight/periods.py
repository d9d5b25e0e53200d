"""Periods of time, as callers give them."""

from __future__ import annotations

from datetime import timedelta

from ..errors import InvalidInputError
from ..times import MICROSECOND, Time, from_micros, to_micros


def read_period(since: Time | timedelta | None, until: Time | None, now: int, length: timedelta) -> tuple[int, int]:
    """Return a period as microseconds [since, until): by default it ends with `now` and is so long. A timedelta says
    how long before its end it begins.

    Raises InvalidInputError if it does not end after it begins.
    """
    end = now if until is None else to_micros(until, "until")
    past = end + 1 if until is None else end  # what was made this very moment is part of it
    if since is None or isinstance(since, timedelta):
        start = end - (length if since is None else since) // MICROSECOND
        from_micros(start, "since")
    else:
        start = to_micros(since, "since")
    if start >= past:
        raise InvalidInputError(
            f"since ({from_micros(start):%Y-%m-%d %H:%M}) is not before until ({from_micros(end):%Y-%m-%d %H:%M})"
        )
    return start, past
