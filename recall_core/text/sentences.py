"""Finds where sentences end and which language a text is in, for Chinese and English."""

from __future__ import annotations

import re
from typing import Literal

from recall_core.models import Span

from ..patterns import compile_late
from .characters import CJK

Language = Literal["zh", "en"]

_CHINESE_SHARE = 0.3
_LANGUAGE_SAMPLE = 10_000

_LINE_END = "[\n\r\x0b\x0c\x85\u2028\u2029]"
_BLANK = "[^\\S\n\r\x0b\x0c\x85\u2028\u2029]"
_BREAK = f"{_LINE_END}+(?:{_BLANK}+{_LINE_END}+)*"
_CLOSERS = "\"'”’»」』）)】》〉〕\\]}"
_CHINESE_MARKS = "。！？；｡"
_END = compile_late(
    f"(?P<mark>[{_CHINESE_MARKS}…!?.]+)(?P<close>[{_CLOSERS}]*){_BLANK}*(?P<break>{_BREAK})?|(?P<line>{_BREAK})"
)
_CJK = compile_late(f"[{CJK}]+")
_LAST_WORD = compile_late(r"[\w.]+\Z")
_DOTTED = compile_late(r"(?:[a-z]\.)+[a-z]")  # e.g, i.e, U.S, a.m
_LONGEST_ABBREVIATION = 16

# A full stop after these ends no sentence: titles, and what introduces more.
_TITLES = ("mr", "mrs", "ms", "dr", "prof", "st", "mt", "gen", "col", "sgt", "capt", "lt", "rev", "hon")
_ALWAYS_OPEN = frozenset((*_TITLES, "vs", "viz", "cf", "approx", "al", "eg", "ie"))
# After these it ends none if a number follows.
_OPEN_BEFORE_NUMBERS = frozenset(
    ("no", "nos", "fig", "figs", "vol", "vols", "pp", "p", "sec", "ch", "eq", "art", "ver", "v")
)


def split_sentences(text: str) -> list[Span]:
    """Return the spans of the sentences of `text`, without gaps: white space belongs to the sentence before it.

    A sentence ends at 。！？；… and at . ! ? before white space, and with each line. Full stops inside numbers,
    versions, domain names and after abbreviations end none. Closing quotes and brackets stay with their sentence.
    """
    ends = [match.end() for match in _END.finditer(text) if _ends_sentence(text, match)]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    spans: list[Span] = []
    start = 0
    for end in ends:
        if end < len(text) and text[start:end].isspace():
            continue  # goes to the sentence after it, there being none before
        if spans and text[start:end].isspace():
            spans[-1] = (spans[-1][0], end)
        elif start < end:
            spans.append((start, end))
        start = end
    return spans


def detect_language(text: str) -> Language:
    """Return "zh" if at least 30 % of the letters among the first 10,000 characters are CJK, else "en"."""
    sample = text[:_LANGUAGE_SAMPLE]
    cjk = sum(map(len, _CJK.findall(sample)))
    letters = sum(map(str.isalpha, sample))
    return "zh" if cjk and cjk >= _CHINESE_SHARE * max(letters, cjk) else "en"


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    mark, end = match["mark"], match.end()
    if match["line"] or match["break"] or end == len(text) or mark[-1] in _CHINESE_MARKS:
        return True
    following = text[end]
    if not text[end - 1].isspace():  # nothing but Chinese goes on without a space
        return _CJK.match(following) is not None and not (
            mark == "." and text[match.start() - 1 : match.start()].isdigit()
        )
    if following.islower() and (match["close"] or mark[-1] in ".…"):
        return False
    return mark != "." or not _is_abbreviation(text, match.start(), following)


def _is_abbreviation(text: str, stop: int, following: str) -> bool:
    """Tell whether the word before the full stop at `stop` is cut short by it, or is the number of a list item."""
    before = text[max(0, stop - _LONGEST_ABBREVIATION) : stop]
    last = _LAST_WORD.search(before)
    if last is None:
        return False
    word = last.group().lower()
    if word.isdigit():
        return not before[: last.start()].strip(" \t") or before[: last.start()].rstrip(" \t")[-1:] in "\n\r"
    if len(word) == 1 and word.isalpha():
        return last.group() not in ("i", "I")
    if word in _OPEN_BEFORE_NUMBERS:
        return following.isdigit()
    return word in _ALWAYS_OPEN or _DOTTED.fullmatch(word) is not None
