"""Reads a question: which terms to look for, which to leave out, which sentences of it ask something."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from recall_core.models import Span

from ..patterns import compile_late
from .characters import CJK
from .latin import compound_parts
from .lexicon import is_function_gram, is_function_word
from .normalise import fold, prepare
from .segment import JOINER, Kind, find_pieces, user_words
from .sentences import Language, detect_language, split_sentences

MAX_TERMS = 512
MAX_CHARACTERS = 20_000
MAX_QUESTIONS = 4

_CJK = compile_late(f"[{CJK}]+")
_QUESTION_END = compile_late(r"[?？][!！?？\"'”’»」』）)】\]}]*\s*\Z")


@dataclass(frozen=True, slots=True)
class Query:
    """What a question asks for, in terms that meet those of `analyse`: distinct, in the order of the text."""

    text: str
    """The question as it was given."""
    terms: tuple[str, ...]
    """What to look for, at most 512: words of the user dictionary first, then the others as they come."""
    weak: tuple[str, ...]
    """Function and question words that were left out. A question that has nothing else has them as its terms."""
    language: Language
    questions: tuple[str, ...]
    """The sentences that ask, if the text has several sentences: the last four."""


def analyse_query(text: str, words: Collection[str] = ()) -> Query:
    """Return the query that any string asks, however long: only its first 20,000 characters are looked at.

    Chinese counts by pairs of characters, one character only where it stands alone. Cutting the query into dictionary
    words, too, changed nothing in what is found (docs/ranking.md) and would cost loading the dictionary. `words` is the
    user dictionary that the index was made with.
    """
    looked_at = text[:MAX_CHARACTERS]
    terms: dict[str, None] = dict.fromkeys(user_words(looked_at, words)[:MAX_TERMS]) if words else {}
    weak: dict[str, None] = {}
    for term, is_weak in _find_terms(prepare(looked_at)):
        if len(terms) >= MAX_TERMS:
            break
        (weak if is_weak else terms)[term] = None
    left_out = [term for term in weak if term not in terms][:MAX_TERMS]
    if not terms:
        terms, left_out = dict.fromkeys(left_out), []
    return Query(text, tuple(terms), tuple(left_out), detect_language(looked_at), _find_questions(looked_at))


def match_expression(terms: Sequence[str]) -> str | None:
    """Return the FTS5 MATCH expression that finds any of `terms`, or None if there are none.

    Each term is a quoted string, so that nothing in it is read as syntax.
    """
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms) or None


def term_spans(text: str, query: Query) -> list[Span]:
    """Return where the terms of `query` stand in `text`, in order and without overlap, to highlight them.

    A best effort: stems, other widths, other cases and Traditional characters are found, rare foldings are not.
    """
    plain, offsets = _prepare_in_place(text)
    found = _find_exact(plain, query.terms)
    wanted = frozenset(query.terms)
    for kind, piece, start in find_pieces(plain):
        if kind is Kind.LATIN:
            found += [(start + begin, start + end) for begin, end in _find_parts(piece, wanted)]
        elif kind is Kind.SYMBOL and piece in wanted:
            found.append((start, start + 1))
    return _merge((offsets[start], offsets[end - 1] + 1) for start, end in found)


def _find_terms(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the terms of a prepared text, and whether each is weak."""
    shouted = not any(map(str.islower, text))
    for kind, piece, _ in find_pieces(text):
        if kind is Kind.LATIN:
            for term, surface in compound_parts(piece):
                yield term, _is_weak(surface, surface != piece, shouted)
        elif kind is Kind.CJK:
            yield from _find_grams(piece)
        else:
            yield piece, False


def _find_grams(run: str) -> Iterator[tuple[str, bool]]:
    if len(run) == 1:
        yield run, is_function_gram(run)
        return
    for start in range(len(run) - 1):
        gram = run[start : start + 2]
        asks_what = run[start + 1 : start + 3] == "什么"  # 在什 of 在什么, but not 喀什
        yield gram, asks_what or is_function_gram(gram)


def _is_weak(surface: str, is_part: bool, shouted: bool) -> bool:
    if len(surface) == 1 and is_part:
        return True  # the 1 of v1.2
    if len(surface) > 1 and surface.isupper() and not shouted:
        return False  # US, IT, WHO
    return is_function_word(fold(surface).replace("'s", "").replace("'", ""))


def _find_questions(text: str) -> tuple[str, ...]:
    sentences = [text[start:end].strip() for start, end in split_sentences(text)]
    if len(sentences) < 2:
        return ()
    return tuple(sentence for sentence in sentences if _QUESTION_END.search(sentence))[-MAX_QUESTIONS:]


def _prepare_in_place(text: str) -> tuple[str, Sequence[int]]:
    """Return the text prepared character by character, and for each character of the result where it came from."""
    if text.isascii():
        return text, range(len(text))
    prepared = [_prepare_character(character) for character in text]
    offsets = [offset for offset, characters in enumerate(prepared) for _ in characters]
    return "".join(prepared), offsets


@lru_cache(maxsize=8192)
def _prepare_character(character: str) -> str:
    return prepare("a" + character)[1:]  # after a Latin letter, so that a mark of its own is dropped


def _find_exact(text: str, terms: Iterable[str]) -> list[Span]:
    """Find the terms that are no words between spaces: Chinese ones, and those of the user dictionary with a joiner."""
    patterns = [re.escape(term).replace(JOINER, "[\\W_]") for term in terms if JOINER in term or _CJK.search(term)]
    if not patterns:
        return []
    anywhere = re.compile(f"(?=({'|'.join(sorted(patterns, key=len, reverse=True))}))", re.IGNORECASE)
    return [match.span(1) for match in anywhere.finditer(text)]


def _find_parts(compound: str, wanted: Collection[str]) -> Iterator[Span]:
    for term, surface in compound_parts(compound):
        start = compound.find(surface) if term in wanted else -1
        if start >= 0:
            yield start, start + len(surface)


def _merge(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
