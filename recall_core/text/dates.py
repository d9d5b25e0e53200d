"""Finds the days, months and years that a question names: "in May 2023", "last week", 2023年5月8日, 上周."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import islice
from typing import NamedTuple

from ..patterns import compile_late

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MOST_CHARACTERS = 4_000  # of a text that are looked at
MOST_NAMED = 8  # days, months and years that one text names
MOST_YEARS = 20  # back, for those without a year

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
# A month alone is one only where nothing else can be meant: "you may march".
_BEFORE = r"(?:in|on|of|since|until|till|by|from|before|after|during|around|early|late|mid|last|this|next)"
_PATTERNS = tuple(
    compile_late(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_YEAR}(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}})\b",
        rf"\b{_DAY} (?:of )?{_MONTH}\.?,? ?{_YEAR}?\b",
        rf"\b{_MONTH}\.? {_DAY}(?:,? {_YEAR})?\b",
        rf"\b{_MONTH}\.?,? (?:of )?{_YEAR}\b",
        rf"\b{_BEFORE} {_MONTH}\b",
        r"(?:(?P<year>\d{4}) ?年 ?)?(?P<month>\d{1,2}) ?月 ?(?P<day>\d{1,2}) ?[日号]",
        r"(?:(?P<year>\d{4}) ?年 ?)?(?P<month>\d{1,2}) ?月(?:份)?(?! ?\d)",
        rf"\b(?:in|of|since|during|from|until|before|after) {_YEAR}\b",
        rf"{_YEAR} ?年(?! ?\d)",
    )
)
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_AGO = compile_late(rf"\b(\d{{1,3}}|an?|{'|'.join(_WORDS)}) (day|week|month|year)s? ago\b", re.IGNORECASE)
_AGO_ZH = compile_late(r"([一二两三四五六七八九十]{1,3}|\d{1,3}) ?个?(天|日|周|星期|礼拜|月|年)以?前")
_DIGITS = {digit: number for number, digit in enumerate("一二三四五六七八九", start=1)} | {"两": 2}
_DAYS = {"day 天 日": 1, "week 周 星期 礼拜": 7, "month 月": 30, "year 年": 365}
_UNITS = {unit: days for units, days in _DAYS.items() for unit in units.split()}
_FIRST_YEAR = 2  # before, "last year" can't be said


class Period(NamedTuple):
    """Some days: the first one and the last one."""

    first: date
    last: date


def find_periods(text: str, today: date, since: date) -> list[Period]:
    """Return the periods that a text names. A day or a month without a year may be that of any year from `since` to
    `today`, of the last 20; "last week" is the one before today's.
    """
    text = text[:MOST_CHARACTERS]
    found: list[Period] = []
    taken: list[tuple[int, int]] = []
    for match in (match for pattern in _PATTERNS for match in pattern.finditer(text)):
        if len(taken) == MOST_NAMED:
            break
        if any(match.start() < stop and start < match.end() for start, stop in taken):
            continue
        if periods := _read(match, today, since):
            taken.append(match.span())
            found += periods
    return [*found, *islice(_find_relative(text, today), MOST_NAMED)]


def _read(match: re.Match[str], today: date, since: date) -> list[Period]:
    groups = {"year": None, "month": None, "day": None} | match.groupdict()
    years = range(max(since.year, today.year - MOST_YEARS + 1), today.year + 1)
    if groups["year"] is not None:
        years = range(int(groups["year"]), int(groups["year"]) + 1)
    periods = [_make_period(year, groups["month"], groups["day"]) for year in years]
    return [period for period in periods if period is not None and period.first <= today][::-1]


def _make_period(year: int, month: str | None, day: str | None) -> Period | None:
    try:
        if month is None:
            return Period(date(year, 1, 1), date(year, 12, 31))
        number = int(month) if month.isdigit() else 1 + MONTHS.index(month[:3].lower())
        first = date(year, number, int(day or 1))
        following = date(year + number // 12, number % 12 + 1, 1)
        return Period(first, first if day else following - timedelta(days=1))
    except ValueError:  # there is no such day
        return None


def _find_relative(text: str, today: date) -> Iterator[Period]:
    """Yield what is named by its distance from today."""
    if today.year < _FIRST_YEAR:
        return
    day, monday = timedelta(days=1), today - timedelta(days=today.weekday())
    named = {
        r"\b(?:today|this morning|tonight)\b|今天|今日|今早|今晚": Period(today, today),
        r"(?<!before )\b(?:yesterday|last night)\b|昨天|昨日|昨晚": Period(today - day, today - day),
        r"\bthe day before yesterday\b|前天": Period(today - 2 * day, today - 2 * day),
        r"\bthis week\b|这周|本周|这个?星期|这个?礼拜": Period(monday, today),
        r"\blast week\b|上周|上个?星期|上个?礼拜": Period(monday - 7 * day, monday - day),
        r"\bthis month\b|这个月|本月": Period(today.replace(day=1), today),
        r"\blast month\b|上个?月": _month_before(today),
        r"\bthis year\b|今年": Period(today.replace(month=1, day=1), today),
        r"\blast year\b|去年": Period(date(today.year - 1, 1, 1), date(today.year - 1, 12, 31)),
    }
    yield from (period for pattern, period in named.items() if re.search(pattern, text, re.IGNORECASE))
    for ago in (_AGO, _AGO_ZH):
        for count, unit in ago.findall(text):
            number, days = _read_count(count.casefold()), _UNITS.get(unit.casefold())
            if number is not None and days is not None:
                yield _ago(number, days, today)


def _read_count(count: str) -> int | None:
    """Return the number that is written in digits, in English words up to twelve, or in Chinese up to ninety-nine."""
    if count.isdecimal():
        return int(count)
    if count in ("a", "an"):
        return 1
    if count in _WORDS:
        return _WORDS.index(count) + 1
    tens, ten, ones = count.rpartition("十")
    if not (all(part in _DIGITS for part in (tens, ones) if part)):
        return None
    return (10 * _DIGITS.get(tens, 1) if ten else 0) + _DIGITS.get(ones, 0)


def _month_before(today: date) -> Period:
    last = today.replace(day=1) - timedelta(days=1)
    return Period(last.replace(day=1), last)


def _ago(count: int, unit: int, today: date) -> Period:
    """Return the period around so many units ago: half a unit to either side."""
    days, around = min(count * unit, (today - date.min).days), unit // 2
    return Period(
        today - timedelta(days=min(days + around, (today - date.min).days)),
        today - timedelta(days=max(days - around, 0)),
    )
