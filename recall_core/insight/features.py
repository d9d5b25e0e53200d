"""Texts as unit vectors of what they mean and which words they use, so that both count when they are clustered."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..text.lexicon import is_function_gram, is_function_word
from ..vectors import normalize

if TYPE_CHECKING:
    from ..models import Vectors

MEANING_SHARE = 0.6  # of a similarity, where there are vectors; the rest is that of the words
HASHED = 1_024  # dimensions that words are hashed into
COMMON = 0.1  # of the texts hold a word that tells nothing apart
FEW = 20  # texts that may hold a word in any case


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """In how many of `texts` each term occurs."""

    texts: int
    counts: Mapping[str, int]

    def weigh(self, term: str) -> float:
        """Return what a term tells (idf), 0 for one of grammar, or that occurs once or nearly everywhere."""
        count = self.counts.get(term, 0)
        if not 2 <= count <= max(COMMON * self.texts, FEW) or is_function_word(term) or is_function_gram(term):
            return 0.0
        return math.log(self.texts / count) + 1.0


def count_terms(texts: Sequence[Sequence[str]]) -> Vocabulary:
    """Return the vocabulary of texts, each given by its terms."""
    return Vocabulary(len(texts), Counter(term for terms in texts for term in set(terms)))


def make_features(texts: Sequence[Sequence[str]], vocabulary: Vocabulary, vectors: Vectors | None) -> Vectors:
    """Return vectors whose dot products are similarities from -1 to 1, shape (texts, dimensions): of the whitened
    `vectors`, shape (texts, n), with a share of 0.6, and of the words; of the words alone without vectors.
    """
    words = np.zeros((len(texts), HASHED), dtype=np.float32)
    for row, terms in zip(words, texts, strict=True):
        for term, count in Counter(terms).items():
            number = zlib.crc32(term.encode("utf-8", "surrogatepass"))
            weight = vocabulary.weigh(term) * (1.0 + math.log(count))
            row[number % HASHED] += weight if number & 0x8000_0000 else -weight
    words = normalize(words)
    if vectors is None:
        return words
    shares = math.sqrt(MEANING_SHARE), math.sqrt(1.0 - MEANING_SHARE)
    return np.concatenate([shares[0] * vectors, shares[1] * words], axis=1).astype(np.float32)
