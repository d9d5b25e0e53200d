"""Times in, times out: whatever a caller gives becomes integer microseconds UTC, and back an aware datetime."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta

from .errors import InvalidInputError

Time = datetime | date | str | int | float

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND


def to_micros(value: Time, name: str = "time") -> int:
    """Return `value` as microseconds since 1970-01-01 UTC.

    Takes aware datetimes, naive ones (meaning UTC), dates (midnight UTC), ISO 8601 strings and seconds since 1970.
    Raises InvalidInputError for anything else and for years outside 1 to 9999.
    """
    if isinstance(value, str):
        value = _parse(value, name)
    if isinstance(value, datetime):
        return _aware(value, name)
    if isinstance(value, date):
        return (datetime(value.year, value.month, value.day, tzinfo=UTC) - EPOCH) // MICROSECOND
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError(f"{name}: a time is a datetime, an ISO 8601 string or seconds, not {value!r}")
    if not math.isfinite(value):
        raise InvalidInputError(f"{name}: {value!r} is no time; give seconds since 1970 UTC")
    micros = value * MICROS_PER_SECOND if isinstance(value, int) else round(value * MICROS_PER_SECOND)
    from_micros(micros, name)
    return micros


def from_micros(micros: int, name: str = "time") -> datetime:
    """Return the aware UTC datetime of `micros` microseconds since 1970."""
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise InvalidInputError(
            f"{name}: {micros / MICROS_PER_SECOND:g} seconds lies outside the years 1 to 9999; give seconds since 1970, not milliseconds"
        ) from None


def _parse(text: str, name: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInputError(f"{name}: {text!r} is no ISO 8601 time; write it like 2026-01-31 or 2026-01-31T09:30:00Z") from None


def _aware(value: datetime, name: str) -> int:
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    try:
        return (value - EPOCH) // MICROSECOND
    except OverflowError:
        raise InvalidInputError(f"{name}: {value!r} lies outside the years 1 to 9999 in UTC") from None
