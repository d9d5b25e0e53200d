"""The two legs of a search: what the keywords say and what the vectors say of the chunks that it may see.

A scope that fits into memory is scored as a whole. Of a larger one the indexes bring candidates, which are then scored
in the same way.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .bm25 import keep_rarest
from .candidates import Candidates, Prior
from .errors import EmbeddingError, RecallError
from .evidence import Evidence, Meaning
from .filters import Selection, restricts_records
from .frame import KeywordScores, no_keywords, score_keywords
from .fusion import TIE
from .large import LargeScopes
from .meaning import score_meaning
from .models import Embedder, LanguageMeans
from .query_cache import QueryCache
from .request import Request
from .scope_cache import Scope, ScopeCache
from .store import OWN_SPACE, Space, SqliteStore
from .surroundings import Surroundings, find_surroundings
from .text import MAX_CHARACTERS, Query
from .vectors import check_vectors, normalize

if TYPE_CHECKING:
    from .models import Vectors

KEYWORDS_ONLY = "found by keywords only"

logger = logging.getLogger("recall_core")


@dataclass(frozen=True, slots=True)
class Asked:
    """The query vectors, shape (queries, dimensions), or why there are none (None if none are wanted)."""

    vectors: Vectors | None
    degraded: str | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What the legs said, and where the records stand in their sessions."""

    evidence: Evidence
    around: Surroundings
    degraded: str | None


class Legs:
    """Runs both legs over one store."""

    def __init__(self, store: SqliteStore, embedder: Embedder | None, recent: QueryCache, most_failures: int) -> None:
        self._store = store
        self._embedder = embedder
        self._recent = recent
        self._most_failures = most_failures
        self._cache = ScopeCache(store)
        self._large = LargeScopes(store)

    @property
    def embeds(self) -> bool:
        """Whether there is an embedder."""
        return self._embedder is not None

    def forget(self) -> None:
        """Let go of what is held in memory, statistics included."""
        self._cache.forget()
        self._large.forget()

    def check_model(self, space: Space) -> None:
        """Raise EmbeddingError if the vectors of a space come from another model than the queries'."""
        embedder = self._embedder
        if embedder is not None and (embedder.model_id, embedder.dimensions) != (space.model, space.dimensions):
            raise EmbeddingError(
                f"the vectors of the file are those of {space.model} now, not of {embedder.model_id}; "
                "open it again with that embedder"
            )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the query vectors, shape (texts, dimensions). Raises EmbeddingError, whatever the embedder raised."""
        embedder = self._embedder
        if embedder is None:
            raise EmbeddingError("this memory was opened without an embedder")
        try:
            cut = [text[:MAX_CHARACTERS] for text in texts]  # as the keyword leg does
            return self._recent.embed(
                f"{embedder.model_id} {embedder.dimensions}",
                cut,
                lambda new: check_vectors(embedder.embed_queries(new), len(new), embedder.dimensions),
            )
        except RecallError:
            raise
        except Exception as error:
            raise EmbeddingError(f"the embedder failed on the query: {type(error).__name__}: {error}") from error

    def prepare(self, scope: str) -> None:
        """Load the model, and make the statistics of a scope that is too large to be held, while others search."""
        self.embed([scope or "root"])
        space = self._store.vectors.find_space(OWN_SPACE)
        if space is not None and self._cache.open(scope) is None:
            self._large.measure(space, scope, apart=True)

    def look(self, request: Request, queries: Sequence[Query], asked: Asked) -> Seen | None:
        """Return what both legs say of the chunks that a request may see, all of them as of one moment; None if by then
        the file has moved to another model than the one that the queries were embedded for.
        """
        space = request.space if asked.vectors is not None else None
        units = None if asked.vectors is None else normalize(asked.vectors)
        prior = _Prior(self._embedder, space, queries[0].language)
        with self._store.database.read():
            if space is not None and self._store.vectors.find_space(space.name) != space:
                return None
            scope = self._cache.open(request.selection.scope)
            if scope is None:
                found = self._large.gather(request, queries, space, units, prior)
            else:
                found = self._hold(scope, request.selection, space, prior)
        meaning = _score_meaning(request, found, units)
        mode, degraded = request.mode, asked.degraded
        if meaning is not None:
            degraded = self._find_waiting(request, meaning, found)
        if meaning is None or (degraded is not None and not (meaning.compared & found.visible).any()):
            meaning, mode = None, "keyword"
        keyword = [no_keywords(found.frame)] * len(queries)
        if mode != "semantic":
            keyword = [_score_query(found, query) for query in queries]
        size = found.size if meaning is None else found.compared
        evidence = Evidence(found.frame, keyword, meaning, mode, found.visible, size, request.selection.now)
        return Seen(evidence, found.around, degraded)

    def _hold(self, scope: Scope, selection: Selection, space: Space | None, prior: Prior) -> Candidates:
        """Return a scope that is held in memory: all of its chunks are candidates."""
        frame = scope.frame
        unexpired = frame.alive[frame.starts] & (selection.ignores_expiry | (frame.expires > selection.now))
        visible = unexpired
        if restricts_records(selection):
            chosen = np.array(self._store.blocks.select_records(selection), dtype=np.int64)
            visible = unexpired & np.isin(frame.record_keys, chosen)
        vectors = None if space is None else self._cache.vectors(scope, space, prior)
        compared = 0 if vectors is None else int(np.count_nonzero(visible[frame.records] & vectors.vectors.present))
        return Candidates(
            frame=frame,
            visible=visible[frame.records],
            around=find_surroundings(frame.order, frame.sessions, visible, unexpired),
            describe=frame.describe,
            most_terms=None,
            vectors=vectors,
            size=frame.chunks,
            compared=compared,
        )

    def _find_waiting(self, request: Request, meaning: Meaning, found: Candidates) -> str | None:
        """Say how many chunks can't be found by meaning yet, None if all can."""
        if request.space_name != OWN_SPACE or self._embedder is None:
            return None
        compares = (meaning.compared & found.visible).any()
        # What rests is told by the statistics: a text that was refused once and for all degrades no other search.
        pending = self._store.pending
        waiting = pending.waiting(self._most_failures) if compares else self._store.vectors.count_pending()
        if not waiting:
            return None
        chunks = f"{waiting} {'chunk waits' if waiting == 1 else 'chunks wait'} for a vector"
        if compares:
            return f"{chunks}, found by keywords only until then"
        return f"{KEYWORDS_ONLY}: {chunks}"


class _Prior:
    """The typical vector of a query's language by the model of a space; looked up when it is first needed."""

    def __init__(self, embedder: Embedder | None, space: Space | None, language: str) -> None:
        self.language = language
        self._embedder = embedder
        self._space = space

    def vector(self) -> Vectors | None:
        """Return the vector, shape (dimensions,), None if the embedder can't tell."""
        embedder, space = self._embedder, self._space
        if space is None or not isinstance(embedder, LanguageMeans) or embedder.model_id != space.model:
            return None
        try:
            return check_vectors([embedder.language_mean(self.language, "passage")], 1, space.dimensions)[0]
        except Exception as error:  # an embedder is foreign code, and a search does without
            logger.warning("the embedder's mean of %s texts can't be used: %s", self.language, error)
            return None


def _score_meaning(request: Request, found: Candidates, units: Vectors | None) -> Meaning | None:
    """Compare the queries with the candidates; what the request calls too dissimilar is not compared."""
    if found.vectors is None or units is None:
        return None
    vectors, statistics, lengths = found.vectors
    compared = vectors.present
    if request.min_similarity is not None:
        compared = compared & (vectors.cosines(units[0]) >= request.min_similarity - TIE)
    return Meaning(vectors, statistics, lengths, units, score_meaning(statistics, units, vectors, lengths), compared)


def _score_query(found: Candidates, query: Query) -> KeywordScores:
    """Score by the query's terms. If they find nothing, its Chinese function words are looked for: any pair of
    characters may be part of a name. That proves little, so the score stays a share of the whole query's.
    """
    scores = _score_terms(found, query.terms, query.terms)
    weak = [term for term in query.weak if not term.isascii()]
    if not weak or (found.visible & (scores.bm25 > 0)).any():
        return scores
    return _score_terms(found, weak, [*query.terms, *weak])


def _score_terms(found: Candidates, terms: Sequence[str], whole: Sequence[str]) -> KeywordScores:
    if not terms:
        return no_keywords(found.frame)
    corpus = found.describe(whole)
    if found.most_terms is not None and len(terms) > found.most_terms:
        terms = whole = keep_rarest(terms, corpus, found.most_terms)
    return score_keywords(found.frame, terms, whole, corpus)
