"""The two legs of a search: what the keywords say and what the vectors say, each a score of at most 1 per chunk."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .bm25 import highest_score, keep_rarest, score_columns
from .embedding import check_vectors, normalize
from .errors import EmbeddingError, RecallError
from .filters import Selection
from .models import Embedder, LanguageMeans
from .store import Space, SqliteStore
from .text import MAX_CHARACTERS, Query
from .whitening import Statistics, compare, direct, lean_on, measure

if TYPE_CHECKING:
    from .models import Vectors

logger = logging.getLogger("recall_core")

MOST_TERMS = 64  # of a query; of a longer one the rarest are looked for
MOST_SCOPES = 32  # whose statistics are remembered; each takes 0.6 MB with 384 dimensions
SAMPLE = 4_000  # records that the statistics of a large scope are made from
STALE_FROM = 2_000  # records; statistics of scopes this large are kept until the scope has grown by half


@dataclass(frozen=True, slots=True)
class KeywordLeg:
    """bm25 of each chunk that holds a term of the query, and its share of the most that the query could reach.

    `size` is the number of chunks in the index.
    """

    bm25: dict[int, float]
    coverage: dict[int, float]
    size: int = 0


@dataclass(slots=True)
class VectorLeg:
    """Scores chunks against the query's vectors; the first query vector is the whole query's."""

    store: SqliteStore
    space: Space
    statistics: Statistics
    queries: Vectors
    found: list[int]
    size: int  # the number of chunks that were compared with the query
    meaning: list[dict[int, float]] = field(default_factory=list)  # one mapping for each query vector
    similarity: dict[int, float] = field(default_factory=dict)
    floor: float = -2.0  # raw cosines below it are no evidence

    @property
    def is_cut(self) -> bool:
        """Whether the index left out selected chunks."""
        return self.size > len(self.found)

    def score(self, keys: Sequence[int]) -> None:
        """Score chunks that the index did not bring."""
        missing = [key for key in keys if key not in self.similarity]
        if missing:
            self.take(*self.store.vectors.load(self.space, missing))

    def take(self, keys: Sequence[int], vectors: Vectors) -> None:
        """Score chunks by their vectors, shape (n, dimensions)."""
        units = normalize(vectors)
        for place, row in enumerate(compare(self.statistics, self.queries, units)):
            if place == len(self.meaning):
                self.meaning.append({})
            self.meaning[place].update(zip(keys, map(float, row), strict=True))
        self.similarity.update(zip(keys, map(float, units @ self.queries[0]), strict=True))
        if self.floor > -1:
            self.drop_below(self.floor)

    def nearest(self) -> dict[int, float]:
        """Return the whitened cosines of the chunks that the index found."""
        whole = self.meaning[0]
        return {key: whole[key] for key in self.found if key in whole}

    def drop_below(self, similarity: float) -> None:
        """Forget what the vectors said of chunks whose raw cosine is below `similarity`."""
        self.floor = similarity
        for key in [key for key, value in self.similarity.items() if value < similarity]:
            for meaning in self.meaning:
                meaning.pop(key, None)

    def compare_passages(self, vectors: Vectors) -> Vectors:
        """Return the whitened cosines, shape (n, n), of stored vectors, shape (n, dimensions)."""
        units = normalize(vectors)
        return compare(self.statistics, units, units)


@dataclass(frozen=True, slots=True)
class _Measured:
    """The statistics of a scope, and the state of the file that they were made from."""

    version: tuple[int, int]
    records: int
    waiting: int  # chunks of the file that had no vector yet
    statistics: Statistics


class Legs:
    """Runs both legs over one store; remembers the statistics of the scopes it has searched."""

    def __init__(self, store: SqliteStore, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder
        self._measured: OrderedDict[tuple[int, str], _Measured] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def embeds(self) -> bool:
        """Whether there is an embedder."""
        return self._embedder is not None

    def check_model(self, space: Space) -> None:
        """Raise EmbeddingError if the vectors of a space come from another model than the queries'."""
        if self._embedder is not None and self._embedder.model_id != space.model:
            raise EmbeddingError(f"the vectors were made by {space.model}, not by {self._embedder.model_id}")

    def run_keyword(self, queries: Sequence[Query], selection: Selection, limit: int) -> list[KeywordLeg]:
        """Score the selected chunks that hold a term, for each query; at most `limit` chunks a query."""
        return [self._score_query(query, selection, limit) for query in queries]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the query vectors, shape (texts, dimensions). Raises EmbeddingError, whatever the embedder raised."""
        if self._embedder is None:
            raise EmbeddingError("this memory was opened without an embedder")
        try:
            cut = [text[:MAX_CHARACTERS] for text in texts]  # as the keyword leg does
            return check_vectors(self._embedder.embed_queries(cut), len(cut), self._embedder.dimensions)
        except RecallError:
            raise
        except Exception as error:
            raise EmbeddingError(f"the embedder failed on the query: {type(error).__name__}: {error}") from error

    def run_vector(
        self, space: Space, queries: Vectors, selection: Selection, *, language: str, limit: int, raw: bool
    ) -> VectorLeg:
        """Score the selected chunks: all of them if they are few, else the `limit` nearest to the first query vector,
        by the raw cosine or nearly by the whitened one.
        """
        units = normalize(queries)
        statistics = lean_on(self._prior(space, language), self._measure_scope(space, selection))
        direction = units[0] if raw else direct(statistics, units[0])
        near = self._store.index.nearest(space, direction, selection, limit)
        leg = VectorLeg(self._store, space, statistics, units, near.keys, near.compared)
        leg.take(near.keys, near.vectors)
        return leg

    def _score_query(self, query: Query, selection: Selection, limit: int) -> KeywordLeg:
        """Score by the query's terms. If they find nothing, its Chinese function words are looked for: any pair of
        characters may be part of a name. That proves little, so the score stays a share of the whole query's.
        """
        leg = self._score_terms(query.terms, query.terms, selection, limit)
        weak = [term for term in query.weak if not term.isascii()]
        return leg if leg.bm25 or not weak else self._score_terms(weak, [*query.terms, *weak], selection, limit)

    def _score_terms(self, terms: Sequence[str], whole: Sequence[str], selection: Selection, limit: int) -> KeywordLeg:
        corpus = self._store.keyword.describe(whole)
        if len(terms) > MOST_TERMS:
            terms = whole = keep_rarest(terms, corpus, MOST_TERMS)
        found = self._store.keyword.search(terms, selection, limit)
        highest = highest_score(whole, corpus)
        scores = {key: score_columns(columns, terms, corpus) for key, columns in found.items()}
        matched = {key: score for key, score in scores.items() if score > 0}
        return KeywordLeg(matched, {key: score / highest for key, score in matched.items()}, corpus.chunks)

    def _measure_scope(self, space: Space, selection: Selection) -> Statistics:
        """Return the statistics of the searched scope, whatever else the selection asks for."""
        place = (space.id, selection.scope)
        version = self._store.database.version()
        with self._lock:
            known = self._measured.get(place)
            if known is not None:
                self._measured.move_to_end(place)
        if known is not None and known.version == version:
            return known.statistics
        records, waiting = self._store.vectors.count_records(selection), self._store.vectors.count_pending()
        if known is not None and known.waiting == waiting and _still_holds(known, records):
            return known.statistics
        # Expired records count, too, so that the statistics do not depend on when they were made.
        scope = Selection(scope=selection.scope, now=selection.now, ignores_expiry=True)
        _, sample = self._store.vectors.sample(space, scope, max(1, records // SAMPLE))
        statistics = measure(normalize(sample))
        with self._lock:
            self._measured[place] = _Measured(version, records, waiting, statistics)
            while len(self._measured) > MOST_SCOPES:
                self._measured.popitem(last=False)
        return statistics

    def _prior(self, space: Space, language: str) -> Vectors | None:
        """Return the typical vector of a language by the model of the space, None if it can't tell."""
        embedder = self._embedder
        if not isinstance(embedder, LanguageMeans) or embedder.model_id != space.model:
            return None
        try:
            return check_vectors([embedder.language_mean(language, "passage")], 1, space.dimensions)[0]
        except Exception as error:  # an embedder is foreign code, and a search does without
            logger.warning("the embedder's mean of %s texts can't be used: %s", language, error)
            return None


def _still_holds(known: _Measured, records: int) -> bool:
    """Tell whether statistics serve a scope that has so many records now."""
    return known.records == records or STALE_FROM <= known.records <= records < known.records * 1.5
