"""Cuts long text into chunks that fit a model, at paragraphs and sentences where possible, and loses nothing."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

from .errors import InvalidInputError
from .models import Span
from .patterns import compile_late
from .text.characters import CJK
from .text.sentences import split_sentences

TokenSpans = Callable[[str], list[Span]]

_TOKEN = compile_late(f"[{CJK}]|[^\\W{CJK}]{{1,4}}|[^\\w\\s]")
_FENCE = compile_late(r"^ {0,3}(?P<fence>```+|~~~+)(?P<rest>.*)", re.MULTILINE)
_BLANK_LINES = compile_late(r"\n(?:[^\S\n]*\n)+")
_LIST_ITEM = compile_late(
    r"^[^\S\n]*(?:[-*+•·]\s|\d{1,4}[.)、．]|[(（]?[一二三四五六七八九十\d]{1,3}[)）、．])", re.MULTILINE
)
_CLAUSE_END = compile_late(r"[，；：、]|[,;:](?=\s)")
_WORD_START = compile_late(rf"(?<=\s)\S|[{CJK}]{{1,8}}")  # each eighth CJK character, as any of them could begin one
_WORD = compile_late(r"\w")
PAGE_BREAK = "\f"
_PIECES = 8  # into how many pieces per chunk text without any boundary is cut, so that an overlap can be made of them


def estimate_tokens(text: str) -> list[Span]:
    """Return spans like those of a model's tokens, for use without a model.

    One CJK character or one other mark is a token; a word of another script is one for each four characters begun.
    """
    return [match.span() for match in _TOKEN.finditer(text)]


@dataclass(frozen=True, slots=True)
class TextChunker:
    """Cuts text into chunks of at most `size`; a `Chunker`.

    Text that fits is one chunk. Other text is packed from whole paragraphs, fenced code blocks and lists, where these
    don't fit from list items, then sentences, clauses, words, and only then from anything. A chunk begins with the last
    sentences of the one before it, at most `overlap`, or with its last words if that sentence is longer.
    """

    size: int = 256
    overlap: int = 32
    unit: Literal["tokens", "characters"] = "tokens"
    token_spans: TokenSpans | None = None
    """The model's tokens of a text, in order; without it tokens are estimated."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InvalidInputError(f"the chunk size is {self.size!r}; it must be at least 1")
        if not 0 <= self.overlap < self.size:
            raise InvalidInputError(f"the overlap is {self.overlap!r}; it must be less than the size, {self.size}")
        if self.unit not in ("tokens", "characters"):
            raise InvalidInputError(f"the unit is {self.unit!r}; it must be 'tokens' or 'characters'")

    def chunk(self, text: str) -> list[Span]:
        """Return the chunks' offsets, starts ascending; between them lies nothing but white space.

        Blank or empty text is one chunk of all of it. One character that is more than `size` tokens is a chunk too.
        """
        ruler = self._make_ruler(text)
        if ruler.measure(0, len(text)) <= self.size or not text.strip():
            return [(0, len(text))]
        return self._pack(text, ruler, self._divide(text, ruler, 0, len(text), 0))

    def _make_ruler(self, text: str) -> _Ruler:
        if self.unit == "characters":
            return _CharacterRuler()
        spans = (self.token_spans or estimate_tokens)(text)
        return _TokenRuler([start for start, _ in spans], [end for _, end in spans])

    def _divide(self, text: str, ruler: _Ruler, start: int, end: int, level: int) -> Iterator[Span]:
        """Yield pieces of text[start:end] without gaps, each within the size and as large as its kind allows."""
        if ruler.measure(start, end) <= self.size:
            yield start, end
        elif level < len(_LEVELS):
            cuts = [cut for cut in _LEVELS[level](text, start, end) if start < cut < end]
            for first, last in pairwise([start, *cuts, end]):
                yield from self._divide(text, ruler, first, last, level + 1)
        else:
            while start < end:
                stop = ruler.find_end(start, end, max(1, self.size // _PIECES))
                yield start, stop
                start = stop

    def _pack(self, text: str, ruler: _Ruler, pieces: Iterable[Span]) -> list[Span]:
        chunks: list[Span] = []
        start = end = 0
        for piece_start, piece_end in pieces:
            stop = _trim(text, piece_start, piece_end)[1]  # white space at the end of a chunk takes no room
            if start < end and ruler.measure(start, stop) > self.size:
                chunk = _trim(text, start, end)
                _append(chunks, chunk)
                room = min(self.overlap, self.size - ruler.measure(piece_start, stop))
                start = _find_overlap(text, ruler, chunk, piece_start, room)
            end = piece_end
        _append(chunks, _trim(text, start, end))
        return chunks


def split_pages(text: str) -> list[tuple[int, str]]:
    """Return the parts of a text between form feeds with their offsets; blank ones are left out unless all are."""
    pages, start = [], 0
    for page in text.split(PAGE_BREAK):
        if page.strip():
            pages.append((start, page))
        start += len(page) + 1
    return pages or [(0, text)]


def fit_spans(text: str, spans: Sequence[Span], window: int, token_spans: TokenSpans) -> list[Span]:
    """Return anybody's chunks of `text` so that a model with a window of `window` tokens loses nothing of it.

    Text that is in no chunk becomes chunks of its own, and chunks larger than the window are cut. Raises
    InvalidInputError if `spans` are not (start, end) pairs of integers within the text, in the order of their starts.
    """
    if window < 1:
        raise InvalidInputError(f"the window is {window!r} tokens; it must be at least 1")
    if not text.strip():
        return [(0, len(text))]
    _check_spans(text, spans)
    filled = [span for span in _fill_gaps(text, spans) if text[span[0] : span[1]].strip()]
    return sorted({part for span in filled for part in _fit(text, span, window, token_spans, window)})


class _Ruler(Protocol):
    """Measures parts of a text in the unit of the chunk size."""

    def measure(self, start: int, end: int) -> int:
        """Return how many units lie in text[start:end], those that its edges cut included."""
        ...

    def find_end(self, start: int, end: int, amount: int) -> int:
        """Return the largest stop, after `start` and up to `end`, for which text[start:stop] measures `amount`."""
        ...

    def find_start(self, end: int, amount: int) -> int:
        """Return the smallest start for which text[start:end] measures at most `amount`."""
        ...


class _CharacterRuler:
    def measure(self, start: int, end: int) -> int:
        return end - start

    def find_end(self, start: int, end: int, amount: int) -> int:
        return min(end, start + amount)

    def find_start(self, end: int, amount: int) -> int:
        return max(0, end - amount)


@dataclass(frozen=True, slots=True)
class _TokenRuler:
    starts: Sequence[int]  # of the tokens, ascending; several tokens may share one character
    ends: Sequence[int]

    def measure(self, start: int, end: int) -> int:
        return max(0, bisect_left(self.starts, end) - bisect_right(self.ends, start))

    def find_end(self, start: int, end: int, amount: int) -> int:
        beyond = bisect_right(self.ends, start) + amount
        return min(end, max(start + 1, self.starts[beyond])) if beyond < len(self.starts) else end

    def find_start(self, end: int, amount: int) -> int:
        first = bisect_left(self.starts, end) - amount
        return min(end, self.ends[first - 1]) if first > 0 else 0


def _find_overlap(text: str, ruler: _Ruler, chunk: Span, end: int, room: int) -> int:
    """Return where the chunk after `chunk`, whose new text begins at `end`, starts to repeat it."""
    earliest = max(chunk[0] + 1, ruler.find_start(end, room))
    if earliest >= chunk[1]:
        return end
    for start, stop in split_sentences(text[chunk[0] : end]):
        if chunk[0] + start >= earliest and _WORD.search(text, chunk[0] + start, chunk[0] + stop):
            return chunk[0] + start
    word = _WORD_START.search(text, earliest, chunk[1])
    if word is not None:
        return word.start()
    # No word begins here: repeat the end of a long run of letters, but no mere punctuation.
    return earliest if text[earliest:end].isalnum() else end


def _append(chunks: list[Span], chunk: Span) -> None:
    """Append a chunk unless it is blank or only repeats the one before it."""
    if chunk[0] < chunk[1] and (not chunks or chunk[1] > chunks[-1][1]):
        chunks.append(chunk)


def _trim(text: str, start: int, end: int) -> Span:
    """Return the span without the white space around it; of white space alone, an empty span at its start."""
    part = text[start:end].rstrip()
    return start + len(part) - len(part.lstrip()), start + len(part)


def _find_paragraphs(text: str, start: int, end: int) -> list[int]:
    blocks = list(_find_code_blocks(text, start, end))
    opening = [block[0] for block in blocks]
    cuts = {edge for block in blocks for edge in block}
    for blank in _BLANK_LINES.finditer(text, start, end):
        block = bisect_right(opening, blank.end()) - 1
        if block < 0 or blank.end() >= blocks[block][1]:
            cuts.add(blank.end())
    return sorted(cuts)


def _find_code_blocks(text: str, start: int, end: int) -> Iterator[Span]:
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text, start, end):
        if opened is None:
            opened = line
        elif line["fence"].startswith(opened["fence"]) and not line["rest"].strip():
            yield opened.start(), min(end, line.end() + 1)
            opened = None
    if opened is not None:
        yield opened.start(), end


def _find_list_items(text: str, start: int, end: int) -> list[int]:
    return [item.start() for item in _LIST_ITEM.finditer(text, start, end)]


def _find_sentences(text: str, start: int, end: int) -> list[int]:
    return [start + offset for offset, _ in split_sentences(text[start:end])]


def _find_clauses(text: str, start: int, end: int) -> list[int]:
    return [mark.end() for mark in _CLAUSE_END.finditer(text, start, end)]


def _find_words(text: str, start: int, end: int) -> list[int]:
    return [word.start() for word in _WORD_START.finditer(text, start, end)]


_LEVELS = (_find_paragraphs, _find_list_items, _find_sentences, _find_clauses, _find_words)


def _check_spans(text: str, spans: Sequence[Span]) -> None:
    last = 0
    for index, span in enumerate(spans):
        if not (isinstance(span, Sequence) and len(span) == 2 and all(type(offset) is int for offset in span)):
            raise InvalidInputError(f"the chunker's chunk {index} is {span!r}; it must be a (start, end) pair of ints")
        start, end = span
        if not 0 <= start < end <= len(text):
            raise InvalidInputError(
                f"the chunker's chunk {index} is ({start}, {end}); it must have 0 <= start < end <= {len(text)}, "
                "the length of the text"
            )
        if start < last:
            raise InvalidInputError(
                f"the chunker's chunk {index} starts at {start}, the one ahead of it at {last}; sort them by start"
            )
        last = start


def _fill_gaps(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    covered = 0
    for start, end in spans:
        if start > covered:
            yield _trim(text, covered, start)
        yield start, end
        covered = max(covered, end)
    yield _trim(text, covered, len(text))


def _fit(text: str, span: Span, window: int, token_spans: TokenSpans, size: int) -> list[Span]:
    """Cut text[start:end] until each part by itself, as the model will see it, has at most `window` tokens."""
    start, end = span
    part = text[start:end]
    if size < 1 or len(part) == 1 or len(token_spans(part)) <= window:
        return [(start, end)]
    smaller = size * 7 // 8  # a part may have a token more by itself than it has inside the text
    cuts = TextChunker(size, 0, "tokens", token_spans).chunk(part)
    return [
        found
        for first, last in cuts
        for found in _fit(text, (start + first, start + last), window, token_spans, smaller)
    ]
