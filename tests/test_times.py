"""Whatever a caller gives as a time becomes microseconds UTC, or a clear error."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recall_core.errors import InvalidInputError
from recall_core.times import EPOCH, from_micros, to_micros

OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
JANUARY = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


@given(st.datetimes(timezones=st.just(UTC)))
@example(datetime.min.replace(tzinfo=UTC))
@example(datetime.max.replace(tzinfo=UTC))
def test_an_aware_datetime_comes_back_to_the_microsecond(moment):
    assert from_micros(to_micros(moment)) == moment


@given(st.datetimes())
def test_a_naive_datetime_means_utc(moment):
    assert to_micros(moment) == to_micros(moment.replace(tzinfo=UTC))


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=OFFSETS))
def test_the_same_moment_in_another_zone_is_the_same_time(moment):
    assert to_micros(moment) == to_micros(moment.astimezone(UTC))


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_iso_string_is_read_back(moment):
    assert to_micros(moment.isoformat()) == to_micros(moment)


@given(st.dates())
def test_a_date_is_its_midnight_in_utc(day):
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    assert to_micros(day) == to_micros(midnight) == to_micros(day.isoformat())


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_a_timestamp_keeps_its_microseconds(moment):
    assert abs(to_micros(moment.timestamp()) - to_micros(moment)) <= 1


@given(st.integers(-60_000_000_000, 200_000_000_000))
def test_whole_seconds_are_exact(seconds):
    assert to_micros(seconds) == seconds * 1_000_000


@given(st.one_of(st.text(), st.integers(), st.floats(), st.datetimes(timezones=OFFSETS)))
@example("1712121512300")
@example(10**400)
@example(-(10**5000))
@example(10**15)
@example(1e308)
@example(math.nan)
@example(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))))
@example(datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-14))))
@example("0001-01-01T00:00+14:00")
def test_any_value_is_a_time_that_can_be_shown_or_an_error_of_ours(value):
    try:
        micros = to_micros(value)
    except InvalidInputError:
        return
    assert isinstance(micros, int)
    assert from_micros(micros).tzinfo is UTC


@pytest.mark.parametrize("value", [True, None, b"2026-01-31", (2026, 1, 31), 1j])
def test_another_type_is_no_time(value):
    with pytest.raises(InvalidInputError, match="a time is a datetime"):
        to_micros(value)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "31.01.2026", "1769851800", "1769851800000"])
def test_a_string_that_is_no_iso_time_is_refused_with_an_example(text):
    with pytest.raises(InvalidInputError, match="write it like 2026-01-31"):
        to_micros(text)


def test_digits_that_would_pass_for_a_date_and_an_hour_are_refused():
    # Milliseconds as text: fromisoformat reads 1712-12-15 at 23:00 here.
    with pytest.raises(InvalidInputError, match="1712121512300"):
        to_micros("1712121512300")


@pytest.mark.parametrize("text", ["20260131", "2026-01-31 09:30", " 2026-01-31T09:30:00Z\n", "2026-01-31T17:30+08:00"])
def test_the_usual_ways_to_write_a_time_are_read(text):
    assert from_micros(to_micros(text)).date() == date(2026, 1, 31)


def test_milliseconds_are_refused_with_the_way_out():
    with pytest.raises(InvalidInputError, match="not milliseconds"):
        to_micros(JANUARY.timestamp() * 1000)


def test_an_error_names_the_argument():
    with pytest.raises(InvalidInputError, match=r"^since: "):
        to_micros("soon", "since")


def test_a_zone_without_an_offset_counts_as_naive():
    class Nowhere(tzinfo):
        def utcoffset(self, moment):
            return None

    assert to_micros(JANUARY.replace(tzinfo=Nowhere())) == to_micros(JANUARY)


def test_no_microseconds_is_1970():
    assert from_micros(0) == EPOCH == datetime(1970, 1, 1, tzinfo=UTC)
