"""Cuts words, numbers and identifiers into index terms, in all scripts but the Chinese, Japanese and Korean."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from ..patterns import compile_late
from .characters import MARK_BLOCKS, word_marks
from .normalise import fold
from .porter import stem as porter_stem

MAX_TERM = 64
Part = tuple[str, str]  # a term, and the characters that it stands for

_DIGEST = 16
_LONGEST_STEMMED = 40
_SIGILS = "-.@#$~/"
_MARK_BLOCKS = compile_late(f"[{MARK_BLOCKS}]")
_CLITIC = compile_late(r"'(?:s|d|m|ll|re|ve)$", re.IGNORECASE)

# A plain word is no getUserById, HTTPServer or utf8; the last letter of IDs is no hump.
_PLAIN = compile_late(r"[A-Z]?[^A-Z\d]+|[A-Z]+s?|\d+")
_HUMPS = compile_late(r"[A-Z]+(?=[A-Z][^A-Z\d])|[A-Z]?[^A-Z\d]+|[A-Z]+|\d+")


def find_compounds(text: str) -> Iterator[re.Match[str]]:
    """Return the matches of words, identifiers and single other characters (symbols, marks) in a text without CJK."""
    return _patterns(_may_have_marks(text)).compound.finditer(text)


def compound_terms(compound: str) -> tuple[str, ...]:
    """Return the distinct terms of a word or identifier: whole, then by parts, each folded and stemmed."""
    return _cached_terms(compound) if len(compound) <= MAX_TERM else tuple(term for term, _ in _parts(compound))


def compound_parts(compound: str) -> tuple[Part, ...]:
    """Return the distinct terms of a word or identifier, each with the characters that it stands for."""
    return _cached_parts(compound) if len(compound) <= MAX_TERM else _parts(compound)


def limit(term: str) -> str:
    """Return `term`, or if it is longer than 64 characters its first 47, a "~" and 16 hex digits of its BLAKE2b.

    So a long URL or hash is still found as a whole, and the index holds no megabyte in one term.
    """
    if len(term) <= MAX_TERM:
        return term
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=_DIGEST // 2).hexdigest()
    return f"{term[: MAX_TERM - _DIGEST - 1]}~{digest}"


def stem(word: str) -> str:
    """Return the stem of a folded word of ASCII letters; any other word as it is, at most 64 characters of it."""
    if len(word) <= _LONGEST_STEMMED and word.isascii() and word.isalpha():
        return porter_stem(word)
    return limit(word)


@dataclass(frozen=True, slots=True)
class _Patterns:
    compound: re.Pattern[str]
    levels: tuple[re.Pattern[str], ...]  # what is kept whole inside a compound: paths, dotted names, kebab names
    atom: re.Pattern[str]  # a word with what belongs to it: don't, O'Brien, 1,000, C++, C#, 18+


@cache
def _patterns(marks: bool) -> _Patterns:
    run = rf"\w+(?:[{word_marks()}]+\w*)*" if marks else r"\w+"
    word = rf"(?:\d{{1,3}}(?:,\d{{3}})+(?!\d)|{run})"
    atom = rf"(?:{word}(?:'(?=[^\W\d_]){word})*(?:\+\+|[+#](?!\w))?)"

    def joined(joiner: str) -> str:
        return f"{atom}(?:{joiner}?{atom})*"  # no joiner is needed after C++ alone: a word ends where no \w follows

    # What leads an identifier in: --force, -v, .net, @me, #12, $PATH, /etc, ~/bin
    lead = r"(?<!\w)(?:(?<![-.])(?:--?|\.)(?=[^\W\d_])|[@#$](?=\w)|~?/(?=[\w.])\.?)"
    whole = joined(r"(?:://|::|->|[-./\\:@&+#=%?~])")
    return _Patterns(
        compound=compile_late(rf"(?:{lead})?{whole}|[^\w\s\x00-\x7f\u2000-\u206f\u3001-\u3011]"),
        levels=(compile_late(joined("[-.+]")), compile_late(joined("-"))),
        atom=compile_late(atom),
    )


def _may_have_marks(text: str) -> bool:
    return not text.isascii() and _MARK_BLOCKS.search(text) is not None


@lru_cache(maxsize=32_768)
def _cached_terms(compound: str) -> tuple[str, ...]:
    return tuple(term for term, _ in _parts(compound))


@lru_cache(maxsize=8192)
def _cached_parts(compound: str) -> tuple[Part, ...]:
    return _parts(compound)


def _parts(compound: str) -> tuple[Part, ...]:
    found: dict[str, str] = {}
    if compound.isalpha() and _PLAIN.fullmatch(compound):
        _add(found, compound)
        return tuple(found.items())
    patterns = _patterns(_may_have_marks(compound))
    bare = compound.lstrip(_SIGILS)
    _add(found, compound)
    _add(found, bare)
    for pattern in patterns.levels:
        for piece in dict.fromkeys(pattern.findall(bare)):
            _add(found, piece)
    for atom in dict.fromkeys(patterns.atom.findall(bare)):
        _add_words(found, atom)
    return tuple(found.items())


def _add(found: dict[str, str], piece: str) -> None:
    """Add a piece as one term: no clitic, no apostrophe, no thousands separator, folded, stemmed if it is one word."""
    word = fold(_CLITIC.sub("", piece).replace("'", "").replace(",", ""))
    if word.strip("_"):
        found.setdefault(stem(word), piece)


def _add_words(found: dict[str, str], atom: str) -> None:
    base = atom.rstrip("+#").replace(",", "")
    _add(found, atom)
    if len(base) == 1 and base.isalpha() and base != atom:
        return  # C++ and C# are not C
    for name in filter(None, base.split("_")):
        _add(found, name)
        words = _CLITIC.sub("", name).split("'")
        if len(words) == 1 or len(words[-1]) > 2:  # O'Brien has two words, don't has one
            for word in filter(None, words):
                _add_humps(found, word)


def _add_humps(found: dict[str, str], word: str) -> None:
    _add(found, word)
    if _PLAIN.fullmatch(word):
        return
    humps = _HUMPS.findall(word)
    numbers = sum(map(str.isdigit, humps))
    # Hashes and base64 would fall into crumbs of one or two characters, which match everything.
    if len(humps) <= 4 or (numbers <= 3 and len(word) >= 2.5 * len(humps)):
        for hump in humps:
            _add(found, hump)
