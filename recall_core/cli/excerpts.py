"""Cuts a text to the few lines around what was searched for."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from recall_core.models import Span

ELLIPSIS = "…"
BEFORE = 0.25  # the share of an excerpt that stands before the first found term


def cut_excerpt(text: str, spans: Sequence[Span], cells: int) -> tuple[str, list[Span]]:
    """Return at most `cells` columns of a text around the first of `spans`, and the spans that lie in them.

    Chinese characters take two columns. What is left out at either end is marked by an ellipsis.
    """
    if count_cells(text) <= cells:
        return text, list(spans)
    room = cells - 2  # an ellipsis at either end
    first = spans[0][0] if spans else 0
    start = first - _fit(text[:first][::-1], int(room * BEFORE))
    start = _next_word(text, min(start, len(text) - _fit(text[::-1], room)), first)
    end = start + _fit(text[start:], room)
    head = ELLIPSIS if start else ""
    tail = ELLIPSIS if end < len(text) else ""
    shift = len(head) - start
    inside = [(max(begin, start), min(stop, end)) for begin, stop in spans if begin < end and stop > start]
    return head + text[start:end] + tail, [(begin + shift, stop + shift) for begin, stop in inside]


def count_cells(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fit(text: str, cells: int) -> int:
    """Return how many characters of `text` fit into `cells` columns."""
    taken = 0
    for count, character in enumerate(text):
        taken += _width(character)
        if taken > cells:
            return count
    return len(text)


def _next_word(text: str, start: int, limit: int) -> int:
    """Return where the next word begins, if that is before `limit`: an excerpt does not begin inside one."""
    inside = start > 0 and text[start - 1 : start + 1].isascii() and text[start - 1] != " "
    space = text.find(" ", start, limit) if inside else -1
    return start if space < 0 else space + 1
