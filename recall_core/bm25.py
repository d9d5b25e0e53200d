"""How well a chunk's terms match a query: BM25 over weighted columns, as a share of what the query could reach.

FTS5 finds the candidates with its own bm25(); this module scores them again, because FTS5's idf is zero for terms in
half of the chunks (a young memory has no others) and because a share of the possible is comparable across queries.
Formula: Robertson and Zaragoza 2009, with Lucene's idf, which is never negative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

K1 = 1.2
B = 0.75
COLUMNS = ("latin", "grams", "words", "labels")


@dataclass(frozen=True, slots=True)
class Weights:
    """How much a term counts in each column.

    Latin words and CJK bigrams carry the text; dictionary words repeat what the bigrams say; tags and metadata are
    labels, not text. Chosen by measuring, see docs/ranking.md.
    """

    latin: float = 1.0
    grams: float = 1.0
    words: float = 0.3
    labels: float = 0.5


WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is known of all chunks: how many there are, their mean length, and how many hold each term of the query."""

    chunks: int
    mean_length: float
    counts: Mapping[str, int]

    def idf(self, term: str) -> float:
        """Return ln(1 + (N - n + 0.5) / (n + 0.5)); a term that occurs nowhere has the largest."""
        n = min(self.counts.get(term, 0), self.chunks)
        return math.log(1.0 + (self.chunks - n + 0.5) / (n + 0.5))


def keep_rarest(terms: Sequence[str], corpus: Corpus, most: int) -> Sequence[str]:
    """Return at most so many terms: the rarest that occur at all, in their order."""
    known = [term for term in terms if corpus.counts.get(term)]
    rarest = set(sorted(known, key=lambda term: corpus.counts[term])[:most])
    return [term for term in known if term in rarest]


def highest_score(terms: Sequence[str], corpus: Corpus) -> float:
    """Return what a chunk full of all the terms would score."""
    return sum(corpus.idf(term) for term in terms) * (K1 + 1.0)
