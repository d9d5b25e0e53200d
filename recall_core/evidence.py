"""What both legs say of the rows of a frame, and the scores that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .blocks import Flags, Floats, Rows
from .frame import Frame, KeywordScores
from .fusion import Scores, blend_questions, fuse_reciprocal, fuse_weighted
from .meaning import FrameVectors
from .models import Fusion, Mode
from .relevance import Background, Texts
from .whitening import Statistics, compare, direct, measure_lengths

if TYPE_CHECKING:
    from .models import Vectors


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the vectors say: `cosines`, shape (queries, rows), are whitened; `compared` tells for which rows. The first
    query is the whole one.
    """

    vectors: FrameVectors
    statistics: Statistics
    lengths: Floats
    queries: Vectors
    cosines: Vectors
    compared: Flags

    def similarity(self, rows: Rows) -> Floats:
        """Return the raw cosines of rows with the query."""
        return np.asarray(np.vecdot(self.vectors.pick(rows), self.queries[0]), dtype=np.float32)

    def measure_distance(self, rows: Flags) -> float:
        """Return how far the query lies from the mean of the stored vectors, in mean distances of some rows from it."""
        length = measure_lengths(self.statistics, self.queries[:1])[0]
        return float(length / self.lengths[rows].mean()) if rows.any() else 1.0

    def compare_passages(self, some: Rows, others: Rows, *, plain: bool = False) -> Vectors:
        """Return the whitened cosines of rows with others, or the `plain` ones, shape (some, others); 0 where there is
        no vector.
        """
        if plain:
            return np.asarray(self.vectors.pick(some) @ self.vectors.pick(others).T)
        directions = direct(self.statistics, self.vectors.pick(some))
        cosines = compare(directions, self.vectors.pick(others), self.lengths[others])
        return cosines * np.outer(self.vectors.present[some], self.vectors.present[others])


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of a frame's rows: keyword scores by query, the first of them the whole query's; what the
    vectors say, if they ran; which rows may be seen; how many chunks were searched; the time in microseconds.
    """

    frame: Frame
    keyword: Sequence[KeywordScores]
    meaning: Meaning | None
    mode: Mode
    visible: Flags
    size: int
    now: int

    @property
    def matched(self) -> Flags:
        """The visible rows that hold a term of the query."""
        return np.asarray(self.visible & (self.keyword[0].bm25 > 0))

    @property
    def compared(self) -> Flags:
        """The visible rows that have a vector to compare."""
        return np.zeros(len(self.frame), dtype=bool) if self.meaning is None else self.visible & self.meaning.compared

    @property
    def found(self) -> Flags:
        """The rows that a leg of the mode has found."""
        matched = np.logical_or.reduce([leg.bm25 > 0 for leg in self.keyword]) & self.visible
        legs = {"hybrid": matched | self.compared, "keyword": matched, "semantic": self.compared}
        return np.asarray(legs[self.mode])

    def describe_texts(self, rows: Rows, evidence: Scores) -> Texts:
        """Return what the relevance of some rows depends on, given the evidence for them."""
        keyword, held = self.keyword[0], np.zeros(len(self.frame))
        for term in keyword.terms:
            held[term.rows] += 1.0
        # Where only function words were looked for, they are a part of the query.
        part = sum(term.idf for term in keyword.terms) / max(keyword.highest, 1e-9)
        return Texts(evidence, part * held[rows] / max(len(keyword.terms), 1), self.frame.tokens[rows])

    def describe_background(self) -> Background:
        """Return how well the visible rows know what the query is about, and how many were searched."""
        keyword = self.keyword[0]
        known = sum(term.idf for term in keyword.terms if self.visible[term.rows].any())
        distance = 1.0 if self.meaning is None else self.meaning.measure_distance(self.compared)
        return Background(known / max(keyword.highest, 1e-9), distance, self.size)

    def fuse_default(self, weight: Scores | float) -> Scores:
        """Keyword coverage and whitened cosine, weighted by the keywords' `weight`; questions inside the query count
        half.
        """
        whole, *parts = self.score_texts(weight)
        return blend_questions(whole, parts)

    def score_texts(self, weight: Scores | float) -> list[Scores]:
        """The same for the whole query and for each question in it apart."""
        weight = self.weigh(weight)
        return [
            fuse_weighted(leg.coverage.astype(np.float64), self.cosines(place), weight)
            for place, leg in enumerate(self.keyword)
        ]

    def weigh(self, weight: Scores | float) -> Scores:
        """Return the keywords' share in each row's score, if it is `weight` where both legs run. A row that has no
        vector yet, beside others that have, is known by its words alone.
        """
        shares: dict[Mode, Scores | float] = {"hybrid": weight, "keyword": 1.0, "semantic": 0.0}
        known = np.broadcast_to(np.asarray(shares[self.mode], dtype=np.float64), (len(self.frame),))
        if self.meaning is None or self.mode != "hybrid":
            return known
        return np.where(self.meaning.vectors.present, known, 1.0)

    def best_covered(self) -> int:
        """Return the visible row with the best keyword coverage."""
        return int(np.argmax(np.where(self.visible, self.keyword[0].coverage, -1.0)))

    def fuse(self, fusion: Fusion, alpha: float, rrf_k: float, depth: int) -> tuple[Scores, Flags]:
        """Return the scores of another fusion than the default, and the rows that it has found."""
        if fusion == "plain":
            return self._fuse_plain(alpha)
        legs = [(self.keyword[0].bm25.astype(np.float64), self.matched)]
        if self.mode == "semantic":
            legs = []
        if self.meaning is not None and self.mode != "keyword":
            legs.append((self.cosines(0), self.compared))
        return fuse_reciprocal(legs, rrf_k, depth)

    def _fuse_plain(self, alpha: float) -> tuple[Scores, Flags]:
        """What hosts expect of a plain store: the raw cosine at alpha 1, bm25 at alpha 0, in between a weighted sum of
        the raw cosine and bm25 as a share of the possible.
        """
        if self.meaning is None or self.mode == "keyword" or (self.mode == "hybrid" and alpha == 0):
            return self.keyword[0].bm25.astype(np.float64), self.matched
        similarity = self.meaning.vectors.cosines(self.meaning.queries[0]).astype(np.float64)
        if self.mode == "semantic" or alpha == 1:
            return similarity, self.compared
        similarity = np.where(self.compared, similarity, 0.0)
        return fuse_weighted(
            self.keyword[0].coverage.astype(np.float64), similarity, 1.0 - alpha
        ), self.matched | self.compared

    def cosines(self, place: int) -> Scores:
        """Return the whitened cosines of a query's text with all rows, 0 where there is none."""
        if self.meaning is None:
            return np.zeros(len(self.frame))
        cosines = self.meaning.cosines[min(place, len(self.meaning.cosines) - 1)]
        return np.where(self.meaning.compared, cosines, 0.0).astype(np.float64)
