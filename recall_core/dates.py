"""Records of the days that a question names come first: "what did we plan in May?"."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from .fusion import Scores
from .text import find_periods
from .times import MICROS_PER_DAY

DATE_SHARE = 0.15  # of a record made on a day that the question names
AROUND = 1  # days to either side that count in full: the day depends on the time zone
FADING = 10  # days after, until e times less is left: people tell what has been

EPOCH = date(1970, 1, 1)


def find_times(text: str, now: int, created: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the times that a text names as (from, to) in microseconds, given the time and when records were made."""
    if not len(created):
        return []
    oldest, today = _find_day(int(created.min())), _find_day(now)
    return [
        ((period.first - EPOCH).days * MICROS_PER_DAY, ((period.last - EPOCH).days + 1) * MICROS_PER_DAY)
        for period in find_periods(text, today, oldest)
    ]


def _find_day(micros: int) -> date:
    return EPOCH + timedelta(days=micros // MICROS_PER_DAY)


def weigh_dates(created: NDArray[np.int64], times: Sequence[tuple[int, int]]) -> Scores:
    """Return what records gain by the times that a question names."""
    gained = np.zeros(len(created))
    for start, stop in times:
        late = (created - stop) / MICROS_PER_DAY - AROUND
        inside = (created >= start - AROUND * MICROS_PER_DAY) & (late <= 0)
        fading = np.where(late > 0, np.exp(-np.maximum(late, 0.0) / FADING), 0.0)
        gained = np.maximum(gained, np.where(inside, 1.0, fading))
    return DATE_SHARE * gained
