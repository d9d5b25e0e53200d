"""Times in, times out: whatever a caller gives becomes integer microseconds UTC, and back an aware datetime."""

from __future__ import annotations

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
    if not abs(value) < 1e18:  # not-a-number and infinity too; nanoseconds since 1970 reach this
        seen = value if isinstance(value, float) else f"an integer of {value.bit_length()} bits"
        raise InvalidInputError(f"{name}: {seen} is no time; give seconds since 1970 UTC")
    micros = round(value * MICROS_PER_SECOND)
    from_micros(micros, name)
    return micros


def from_micros(micros: int, name: str = "time") -> datetime:
    """Return the aware UTC datetime of `micros` microseconds since 1970."""
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise InvalidInputError(
            f"{name}: {micros // MICROS_PER_SECOND} seconds lies outside the years 1 to 9999; "
            "give seconds since 1970, not milliseconds"
        ) from None


def _parse(text: str, name: str) -> datetime:
    digits = text.strip()
    try:
        # Of digits alone only a date makes sense: fromisoformat reads milliseconds such as 1712121512300 as a date, any
        # character between, and an hour.
        if digits.isdigit() and len(digits) != len("20260131"):
            raise ValueError
        return datetime.fromisoformat(digits)
    except ValueError:
        raise InvalidInputError(
            f"{name}: {text!r} is no ISO 8601 time; write it like 2026-01-31 or 2026-01-31T09:30:00Z"
        ) from None


def _aware(value: datetime, name: str) -> int:
    if value.utcoffset() is None:
        value = value.replace(tzinfo=UTC)
    micros = (value - EPOCH) // MICROSECOND
    from_micros(micros, name)
    return micros
