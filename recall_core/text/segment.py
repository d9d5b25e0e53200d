"""Cuts text into the terms of the keyword index: stems, identifiers, pairs of Chinese characters, dictionary words."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from ..patterns import compile_late
from .characters import CJK, is_symbol
from .latin import compound_terms, find_compounds, limit
from .normalise import fold, prepare
from .segmenter import cut_words

TOKEN_CHARACTERS = "".join(sorted(set(string.punctuation) - set("'\"")))
"""The ASCII punctuation that may stand inside a term: all but the quotes. Letters and digits need no mention."""

TOKENIZER = f"ascii tokenchars '{TOKEN_CHARACTERS}'"
"""The FTS5 tokenizer that reads terms joined by spaces as they were written."""

TERMS_VERSION = 1  # raise it whenever the same text gives other terms

JOINER = "_"  # stands for what a term can't hold, inside a word of the user dictionary

_CJK_RUN = compile_late(f"[{CJK}]+")
_UNSAFE = compile_late("[\\s\\x00-\\x1f\\x7f-\\x9f'\"\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a text for three index columns, in the order of its runs, repeated as often as they occur.

    A term is at most 64 characters long, folded, and holds no white space, control character or quote, so that the
    terms of a column can be joined by spaces and read back by `TOKENIZER`.
    """

    latin: tuple[str, ...]
    """Stemmed words, numbers, symbols, and identifiers whole and by parts."""
    grams: tuple[str, ...]
    """The characters of each run of Chinese, Japanese or Korean, then its overlapping pairs, so that phrases work."""
    words: tuple[str, ...]
    """Chinese dictionary words of two and more characters, and the words of the user dictionary."""

    @property
    def length(self) -> int:
        """How long the text is: its words in other scripts and its characters in those without spaces."""
        return len(self.latin) + sum(len(gram) == 1 for gram in self.grams)


class Kind(Enum):
    """What a piece of text is made of."""

    CJK = 1
    LATIN = 2
    SYMBOL = 3


Piece = tuple[Kind, str, int]  # and where it starts


def analyse(text: str, words: Collection[str] = ()) -> Terms:
    """Return the index terms of any text.

    `words` is the user dictionary: a word is a term of its own wherever it occurs, inside other words and across
    spaces too, but a word that begins or ends with a letter or digit of a script with spaces only where one begins or
    ends in the text. A space or quote inside a word becomes "_" in the term. A frozenset is fastest.
    """
    simple = prepare(text)
    latin: list[str] = []
    grams: list[str] = []
    for kind, piece, _ in find_pieces(simple):
        if kind is Kind.LATIN:
            latin += compound_terms(piece)
        elif kind is Kind.CJK:
            grams += _all_grams(piece)
        else:
            latin.append(piece)
    found = cut_words(simple) if grams else []
    if words:
        known = user_words(text, words)
        own = set(known)
        found = [word for word in found if word not in own] + known
    return Terms(tuple(latin), tuple(grams), tuple(found))


def segmenter_version() -> str:
    """Return the name of everything that decides which terms a text has. An index of another version needs rebuilding.

    The Rust and the Python segmenter share one name, as they cut alike.
    """
    return f"terms-{TERMS_VERSION} jieba porter2 t2s"


def find_pieces(text: str) -> Iterator[Piece]:
    """Yield the runs of CJK characters, the words and identifiers, and the symbols of a text, in order."""
    if text.isascii():
        yield from _find_latin(text, 0)
        return
    position = 0
    for run in _CJK_RUN.finditer(text):
        if run.start() > position:
            yield from _find_latin(text[position : run.start()], position)
        yield Kind.CJK, run.group(), run.start()
        position = run.end()
    yield from _find_latin(text[position:], position)


def user_words(text: str, words: Collection[str]) -> list[str]:
    """Return the terms of the user dictionary's words that occur in `text`, overlapping ones included."""
    return _matcher(words if isinstance(words, frozenset) else frozenset(words)).find(text)


def _find_latin(text: str, offset: int) -> Iterator[Piece]:
    for match in find_compounds(text):
        piece = match.group()
        if len(piece) > 1 or piece.isalnum():
            yield Kind.LATIN, piece, offset + match.start()
        elif is_symbol(piece):
            yield Kind.SYMBOL, piece, offset + match.start()


def _all_grams(run: str) -> list[str]:
    grams = list(run)
    grams += [run[start : start + 2] for start in range(len(run) - 1)]
    return grams


@dataclass(frozen=True, slots=True)
class _Matcher:
    """Finds the words of a user dictionary; the work grows with the text, hardly with the dictionary."""

    terms: dict[str, str]
    lengths: dict[str, tuple[int, ...]]  # by first character
    starts: re.Pattern[str] | None

    def find(self, text: str) -> list[str]:
        if self.starts is None:
            return []
        text = _fold_words(text)
        found = []
        for match in self.starts.finditer(text):
            start = match.start()
            for length in self.lengths[match.group()]:
                term = self.terms.get(text[start : start + length])
                if term is not None and _stands_alone(text, start, start + length):
                    found.append(term)
        return found


@lru_cache(maxsize=16)
def _matcher(words: frozenset[str]) -> _Matcher:
    terms = {folded: limit(_UNSAFE.sub(JOINER, folded)) for folded in map(_fold_words, words) if folded}
    lengths: dict[str, set[int]] = {}
    for word in terms:
        lengths.setdefault(word[0], set()).add(len(word))
    first = "".join(map(re.escape, sorted(lengths)))
    return _Matcher(
        terms,
        {character: tuple(sorted(sizes)) for character, sizes in lengths.items()},
        re.compile(f"[{first}]") if first else None,
    )


def _fold_words(text: str) -> str:
    return " ".join(fold(text).split())


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not (_continues(text, start) or _continues(text, end))


def _continues(text: str, position: int) -> bool:
    """Tell whether a word of a script with spaces goes on across `position`."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    return before.isalnum() and after.isalnum() and not _CJK_RUN.search(before + after)
