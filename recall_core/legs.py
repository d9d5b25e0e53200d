"""The two legs of a search: what the keywords say and what the vectors say, each a score of at most 1 per chunk."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .bm25 import highest_score, score_columns
from .errors import EmbeddingError, RecallError
from .filters import Selection
from .models import Embedder, LanguageMeans
from .store import Space, SqliteStore
from .text import Query
from .whitening import Statistics, compare, direct, lean_on, measure

if TYPE_CHECKING:
    from .models import Vectors

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

    def score(self, keys: Sequence[int]) -> None:
        """Score chunks that the index did not bring."""
        missing = [key for key in keys if key not in self.similarity]
        if missing:
            self.take(*self.store.vectors.load(self.space, missing))

    def take(self, keys: Sequence[int], vectors: Vectors) -> None:
        """Score chunks by their vectors, shape (n, dimensions)."""
        units = to_units(vectors)
        for place, row in enumerate(compare(self.statistics, self.queries, units)):
            if place == len(self.meaning):
                self.meaning.append({})
            self.meaning[place].update(zip(keys, map(float, row), strict=True))
        self.similarity.update(zip(keys, map(float, units @ self.queries[0]), strict=True))
        if self.floor > -1:
            self.drop_below(self.floor)

    def nearest(self, limit: int | None) -> dict[int, float]:
        """Return the whitened cosines of the chunks that the index found, the best `limit` of them."""
        whole = self.meaning[0]
        kept = [key for key in self.found if key in whole]
        if limit is not None:
            kept = sorted(kept, key=lambda key: (-whole[key], key))[:limit]
        return {key: whole[key] for key in kept}

    def drop_below(self, similarity: float) -> None:
        """Forget what the vectors said of chunks whose raw cosine is below `similarity`."""
        self.floor = similarity
        for key in [key for key, value in self.similarity.items() if value < similarity]:
            for meaning in self.meaning:
                meaning.pop(key, None)

    def compare_passages(self, vectors: Vectors) -> Vectors:
        """Return the whitened cosines, shape (n, n), of stored vectors, shape (n, dimensions)."""
        units = to_units(vectors)
        return compare(self.statistics, units, units)


@dataclass(frozen=True, slots=True)
class _Measured:
    """The statistics of a scope, and the state of the file that they were made from."""

    version: tuple[int, int]
    records: int
    statistics: Statistics


class Legs:
    """Runs both legs over one store; remembers the statistics of the scopes it has searched."""

    def __init__(self, store: SqliteStore, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder
        self._measured: dict[tuple[int, str], _Measured] = {}
        self._lock = threading.Lock()

    def run_keyword(self, queries: Sequence[Query], selection: Selection, limit: int) -> list[KeywordLeg]:
        """Score the selected chunks that hold a term, for each query; at most `limit` chunks a query."""
        return [self._score_terms(query.terms, selection, limit) for query in queries]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the query vectors, shape (texts, dimensions). Raises EmbeddingError, whatever the embedder raised."""
        from .embedding import check_vectors

        if self._embedder is None:
            raise EmbeddingError("this memory was opened without an embedder")
        try:
            return check_vectors(self._embedder.embed_queries(texts), len(texts), self._embedder.dimensions)
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
        units = to_units(queries)
        statistics = lean_on(self._prior(space, language), self._measure_scope(space, selection))
        direction = units[0] if raw else direct(statistics, units[0])
        near = self._store.index.nearest(space, direction, selection, limit)
        leg = VectorLeg(self._store, space, statistics, units, near.keys, near.compared)
        leg.take(near.keys, near.vectors)
        return leg

    def _score_terms(self, terms: Sequence[str], selection: Selection, limit: int) -> KeywordLeg:
        found = self._store.keyword.search(terms, selection, limit)
        if not found:
            return KeywordLeg({}, {})
        corpus = self._store.keyword.describe(terms)
        highest = highest_score(terms, corpus)
        scores = {key: score_columns(columns, terms, corpus) for key, columns in found.items()}
        matched = {key: score for key, score in scores.items() if score > 0}
        return KeywordLeg(matched, {key: score / highest for key, score in matched.items()}, corpus.chunks)

    def _measure_scope(self, space: Space, selection: Selection) -> Statistics:
        """Return the statistics of the searched scope, whatever else the selection asks for."""
        place = (space.id, selection.scope)
        version = self._store.database.version()
        with self._lock:
            known = self._measured.get(place)
        if known is not None and known.version == version:
            return known.statistics
        records = self._store.vectors.count_records(selection)
        if known is not None and records >= STALE_FROM and known.records <= records < known.records * 1.5:
            return known.statistics
        # Expired records count, too, so that the statistics do not depend on when they were made.
        scope = Selection(scope=selection.scope, now=selection.now, ignores_expiry=True)
        _, sample = self._store.vectors.sample(space, scope, max(1, records // SAMPLE))
        statistics = measure(to_units(sample))
        with self._lock:
            self._measured[place] = _Measured(version, records, statistics)
        return statistics

    def _prior(self, space: Space, language: str) -> Vectors | None:
        embedder = self._embedder
        if not isinstance(embedder, LanguageMeans) or not isinstance(embedder, Embedder):
            return None
        if embedder.model_id != space.model:
            return None
        return embedder.language_mean(language, "passage")


def to_units(vectors: Vectors) -> Vectors:
    """Return the vectors with length 1, shape (n, dimensions)."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
