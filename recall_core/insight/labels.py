"""Names for groups of texts: the words that are frequent in one group and rare in all others, as they are written.

Source: c-TF-IDF of BERTopic (Grootendorst 2022), with the share of a group's texts as the frequency.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from ..patterns import compile_late
from ..text.characters import CJK
from ..text.latin import compound_parts
from ..text.lexicon import is_function_gram, is_function_word
from ..text.normalise import fold, prepare
from ..text.segment import JOINER, Kind, find_pieces
from .features import Vocabulary

TERMS = 4  # of a label
CANDIDATES = 24  # terms that are looked up in the texts
READ = 64  # texts of a group that are read for how a term is written
WHOLE = 0.7  # of the texts with a word also have a longer one that it is part of: then only that is named
FILLERS = frozenset(["wow", "hey", "yeah", "yep", "haha", "lol", "oh", "whats", "im", "ive", "id", "thats"])
CHINESE = compile_late(f"[{CJK}]")


def find_terms(texts: Sequence[str], terms: Sequence[Sequence[str]], vocabulary: Vocabulary) -> dict[str, str]:
    """Return the terms that tell a group of texts from all others, and how they are written, the most telling first.

    `terms` are the texts' own, of which `vocabulary` knows how many texts hold each.
    """
    counts = Counter(term for own in terms for term in set(own))
    least = min(2, len(texts))
    scores = {
        term: count / len(texts) * math.log(1.0 + vocabulary.texts / vocabulary.counts[term])
        for term, count in counts.items()
        if count >= least and _can_stand(term)
    }
    best = sorted(scores, key=lambda term: (-scores[term], -len(term), term))[:CANDIDATES]
    written = write_terms(best, texts[:READ])
    named: dict[str, str] = {}
    for term in best:
        word = written.get(term)
        said = word in named.values() or _is_said(term, named)
        if word is not None and not said and not any(_is_longer(other, term, counts) for other in best):
            named[term] = word
        if len(named) == TERMS:
            break
    return named


def write_terms(terms: Collection[str], texts: Iterable[str]) -> dict[str, str]:
    """Return how terms are written in texts: Chinese words as they are, stems in their most frequent form. Words of
    grammar and terms that do not occur are left out.
    """
    wanted = {term for term in terms if not _is_chinese(term)}
    forms: dict[str, Counter[str]] = {term: Counter() for term in wanted}
    for text in texts:
        for kind, piece, _ in find_pieces(prepare(text)):
            for term, surface in compound_parts(piece) if kind is Kind.LATIN else ():
                if term in wanted:
                    forms[term][surface] += 1
    written = {term: term.replace(JOINER, " ") for term in terms if _is_chinese(term)}
    for term, found in forms.items():
        if found:
            surface = min(found, key=lambda form: (-found[form], form.isupper(), form))
            if not _says_nothing(fold(surface).replace("'", "")):
                written[term] = surface
    return written


def _says_nothing(word: str) -> bool:
    return word in FILLERS or is_function_word(word)


def _can_stand(term: str) -> bool:
    """Tell whether a term may be a name: a word of two characters or more, no number, no word of grammar."""
    if len(term) < 2 or not any(map(str.isalpha, term)):
        return False
    return not (_is_chinese(term) and is_function_gram(term))


def _is_chinese(term: str) -> bool:
    return CHINESE.search(term) is not None


def _is_longer(other: str, term: str, counts: Counter[str]) -> bool:
    """Tell whether a term is hardly ever said but as part of the longer `other`."""
    return other != term and term in other and counts[other] >= WHOLE * counts[term]


def _is_said(term: str, named: Iterable[str]) -> bool:
    """Tell whether a term is part of one that is named already, or the other way round."""
    return any(term in other or other in term for other in named)
