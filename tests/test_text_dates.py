"""The days that a question names are found, in English and Chinese, and nothing else is taken for one."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.text.dates import MOST_NAMED, MOST_YEARS, find_periods

TODAY = date(2026, 1, 31)  # a Saturday
SINCE = date(2024, 6, 1)


def found(text, today=TODAY, since=SINCE):
    return [(str(period.first), str(period.last)) for period in find_periods(text, today, since)]


@pytest.mark.parametrize(
    "text",
    [
        "What happened on 2024-05-08?",
        "What happened on 8 May 2024?",
        "what happened on the 8th of may, 2024",
        "on May 8th, 2024",
        "on May 8 2024",
        "2024年5月8日发生了什么",
        "2024 年 5 月 8 号",
        "2024/05/08",
        "on 2024.05.08",
    ],
)
def test_a_day_with_its_year_is_that_day(text):
    assert found(text) == [("2024-05-08", "2024-05-08")]


@pytest.mark.parametrize("text", ["in February 2024", "Feb 2024?", "2024年2月", "2024年2月份聊了什么"])
def test_a_month_reaches_to_its_last_day(text):
    assert found(text) == [("2024-02-01", "2024-02-29")]


@pytest.mark.parametrize("text", ["in 2024", "what did we do during 2024?", "2024年的计划"])
def test_a_year_is_all_of_its_days(text):
    assert found(text) == [("2024-01-01", "2024-12-31")]


def test_a_month_without_a_year_is_that_of_any_year_since_the_first_memory_newest_first():
    assert found("What did we plan in May?") == [("2025-05-01", "2025-05-31"), ("2024-05-01", "2024-05-31")]
    assert found("5月3日") == [("2025-05-03", "2025-05-03"), ("2024-05-03", "2024-05-03")]


def test_days_to_come_are_not_meant():
    assert found("in March", since=date(2026, 1, 1)) == []
    assert found("on 2 February 2026") == []


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what did I say today?", "2026-01-31", "2026-01-31"),
        ("昨天说了什么", "2026-01-30", "2026-01-30"),
        ("前天", "2026-01-29", "2026-01-29"),
        ("the day before yesterday", "2026-01-29", "2026-01-29"),
        ("十一天前", "2026-01-20", "2026-01-20"),
        ("二十天前", "2026-01-11", "2026-01-11"),
        ("ten days ago", "2026-01-21", "2026-01-21"),
        ("this week", "2026-01-26", "2026-01-31"),
        ("上周的会议", "2026-01-19", "2026-01-25"),
        ("last month", "2025-12-01", "2025-12-31"),
        ("去年", "2025-01-01", "2025-12-31"),
        ("three days ago", "2026-01-28", "2026-01-28"),
        ("two weeks ago", "2026-01-14", "2026-01-20"),
        ("两周前", "2026-01-14", "2026-01-20"),
        ("3个月前", "2025-10-18", "2025-11-17"),
    ],
)
def test_a_distance_is_counted_from_today(text, first, last):
    assert found(text) == [(first, last)]


@pytest.mark.parametrize(
    "text",
    ["you may march on", "May I ask?", "february 30 2024", "version 2024", "2024", "the 5th", "32月", "port 8080", ""],
)
def test_what_is_no_date_is_not_taken_for_one(text):
    assert found(text) == []


def test_letters_that_fold_to_others_are_no_numbers():
    assert found("ſix days ago") == [("2026-01-25", "2026-01-25")]
    assert found("fıve years ago") == []


def test_each_month_that_is_named_is_found_in_every_year():
    assert len(found("in May and in June", since=date(2010, 1, 1))) == 2 * 16


def test_a_long_list_of_dates_is_read_no_further_than_it_helps():
    assert len(found("1月," * 20_000)) == MOST_NAMED * 3


@given(st.text(max_size=200), st.dates(), st.dates())
def test_any_text_is_read_whenever_it_is(text, today, since):
    periods = find_periods(text + " last year 上个月 100 years ago in May 九年前 5月", today, since)
    assert len(periods) <= MOST_NAMED * (MOST_YEARS + 1)
    assert all(period.first <= period.last for period in periods)
    assert all(period.first <= today + timedelta(days=0) for period in periods)
