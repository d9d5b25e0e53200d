"""The way of a query: both legs, fused, seen in their context, put in order, looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .errors import RecallError
from .filters import Selection
from .fusion import blend_questions, fuse_reciprocal, fuse_weighted, rank_keys
from .legs import KeywordLeg, Legs, VectorLeg
from .models import Fusion, Hit, Hits, Mode, Why
from .ranking import Ranked, blend_recency, diversify, penalise_questions, sort_ranked, spread_context
from .relevance import CONTEXT_SHARE, judge, level
from .settings import Settings
from .store import OWN_SPACE, Candidate, Space, SqliteStore
from .text import Query, analyse_query
from .times import MICROS_PER_DAY

if TYPE_CHECKING:
    from .models import Vectors

NEIGHBOUR_SEEDS = 100  # so many of the best candidates bring their neighbours in
NEIGHBOUR_DISTANCE = 2
NEAREST = 400  # candidates from the vectors of a large scope; the whitened score then orders them
MOST_CANDIDATES = 4096
KEYWORDS_ONLY = "found by keywords only"
MMR_POOL = 5  # diversify looks at so many times the limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a caller asks for, checked and complete."""

    text: str
    selection: Selection
    mode: Mode
    limit: int
    fusion: Fusion
    alpha: float
    recency: float
    candidates: int
    diversity: float
    min_relevance: float | None
    min_similarity: float | None
    vector: Vectors | None
    space_name: str
    space: Space | None  # None if there is no such space yet


@dataclass(frozen=True, slots=True)
class Asked:
    """The query vectors, shape (queries, dimensions), or why there are none (None if none are wanted)."""

    vectors: Vectors | None
    degraded: str | None


@dataclass(frozen=True, slots=True)
class Findings:
    """What the legs found: one keyword leg for each query text, the vector leg if it ran, and the mode that ran."""

    keyword: Sequence[KeywordLeg]
    vector: VectorLeg | None
    mode: Mode
    degraded: str | None

    @property
    def size(self) -> int:
        """The number of chunks that were searched, as far as it is known."""
        return self.vector.size if self.vector is not None else self.keyword[0].size


class Searcher:
    """Answers requests from one store."""

    def __init__(self, store: SqliteStore, legs: Legs, settings: Settings, words: frozenset[str]) -> None:
        self._store = store
        self._legs = legs
        self._settings = settings
        self._words = words

    def run(self, request: Request) -> Hits:
        """Return the hits of a request, best first."""
        query = analyse_query(request.text, self._words)
        if request.limit == 0 or not (query.text.strip() or request.vector is not None) or self._is_empty(request):
            return Hits((), request.mode)
        parts = query.questions if request.fusion == "default" else ()
        queries = [query, *(analyse_query(question, self._words) for question in parts)]
        asked = self._ask(request, queries)
        while True:
            found = self._find(request, queries, asked)
            scores = self._fuse(request, found)
            ranked = self._collapse(scores, rank_keys(scores)[: request.candidates])
            if len(ranked) >= request.limit or not _is_cut(request, found, scores):
                break
            # Few records with many chunks took all the places.
            request = replace(request, candidates=min(4 * request.candidates, MOST_CANDIDATES))
        if request.fusion == "default":
            ranked = penalise_questions(self._add_context(request, found, ranked))
        return self._present(request, found, sort_ranked(ranked))

    def _is_empty(self, request: Request) -> bool:
        """Tell whether nothing is stored yet: there is no vector, and no chunk waits for one."""
        vectors = self._store.vectors
        return request.space is None and not vectors.spaces() and vectors.count_pending() == 0

    def _ask(self, request: Request, queries: Sequence[Query]) -> Asked:
        """Return the vectors of the queries, or why there are none."""
        if request.mode == "keyword":
            return Asked(None, None)
        name = request.space_name
        try:
            if request.vector is not None:
                vectors = request.vector.reshape(1, -1)
            elif name == OWN_SPACE:
                if request.space is not None:
                    self._legs.check_model(request.space)
                vectors = self._legs.embed([query.text for query in queries])
            elif request.space is not None:
                raise RecallError(f"the space {name!r} has vectors of another model; pass one of the query as vector=")
            if request.space is None:
                raise RecallError(f"no memory has a vector in the space {name!r} yet")
        except RecallError as error:
            return Asked(None, f"{KEYWORDS_ONLY}: {error}")
        return Asked(vectors, None)

    def _find(self, request: Request, queries: Sequence[Query], asked: Asked) -> Findings:
        vector, degraded = None, asked.degraded
        if asked.vectors is not None and request.space is not None:
            vector = self._run_vector(request, request.space, asked.vectors, queries[0].language)
            degraded = self._find_waiting(request, vector)
            if degraded is not None and not vector.found:
                vector = None
        if request.mode == "semantic" and vector is not None:
            return Findings([KeywordLeg({}, {})] * len(queries), vector, "semantic", degraded)
        keyword = self._legs.run_keyword(queries, request.selection, max(request.candidates, request.limit))
        if vector is not None:
            vector.score([key for leg in keyword for key in leg.coverage])
        return Findings(keyword, vector, "keyword" if vector is None else request.mode, degraded)

    def _run_vector(self, request: Request, space: Space, vectors: Vectors, language: str) -> VectorLeg:
        limit = max(NEAREST, 2 * request.candidates)
        raw = request.fusion == "plain"
        leg = self._legs.run_vector(space, vectors, request.selection, language=language, limit=limit, raw=raw)
        if request.min_similarity is not None:
            leg.drop_below(request.min_similarity)
        return leg

    def _find_waiting(self, request: Request, vector: VectorLeg) -> str | None:
        """Say how many chunks can't be found by meaning yet, None if all can."""
        if request.space_name != OWN_SPACE or not self._legs.embeds:
            return None
        waiting = self._store.vectors.count_pending()
        if not waiting:
            return None
        chunks = f"{waiting} {'chunk waits' if waiting == 1 else 'chunks wait'} for a vector"
        return f"{KEYWORDS_ONLY}: {chunks}" if not vector.found else f"{chunks}, found by keywords only until then"

    def _fuse(self, request: Request, found: Findings) -> dict[int, float]:
        vector = found.vector
        if request.fusion == "rrf":
            legs = [found.keyword[0].bm25, {} if vector is None else vector.nearest()]
            cut = [{key: leg[key] for key in rank_keys(leg)[: request.candidates]} for leg in legs]
            return fuse_reciprocal(cut, self._settings.rrf_k)
        if request.fusion == "plain":
            return _fuse_plain(request, found)
        return _fuse_default(request, found, None)

    def _collapse(self, scores: Mapping[int, float], keys: Sequence[int]) -> list[Ranked]:
        """Turn chunks into records: the best chunk speaks for its record."""
        best: dict[int, tuple[float, Candidate]] = {}
        for candidate in self._store.candidates.describe(keys):
            score = scores.get(candidate.chunk_key, 0.0)
            if candidate.record_key not in best or score > best[candidate.record_key][0]:
                best[candidate.record_key] = (score, candidate)
        return [_start(candidate, score) for score, candidate in best.values()]

    def _add_context(self, request: Request, found: Findings, ranked: Sequence[Ranked]) -> list[Ranked]:
        items = {item.record_key: item for item in ranked}
        seeds = [item.record_key for item in sort_ranked(ranked) if item.session is not None][:NEIGHBOUR_SEEDS]
        if not seeds:
            return list(ranked)
        neighbours = self._store.candidates.neighbours(seeds, NEIGHBOUR_DISTANCE, request.selection)
        strangers = sorted({key for beside in neighbours.values() for key in beside.values()} - items.keys())
        for item in self._score_strangers(request, found, strangers):
            items[item.record_key] = item
        sessions = sorted({item.session for item in items.values() if item.session is not None})
        sizes = self._store.candidates.session_sizes(sessions, request.selection.now)
        return spread_context(items, _both_ways(neighbours), sizes)

    def _score_strangers(self, request: Request, found: Findings, keys: Sequence[int]) -> list[Ranked]:
        chunk_keys = self._store.candidates.chunks_of(keys)
        if found.vector is not None:
            found.vector.score(chunk_keys)
        return self._collapse(_fuse_default(request, found, chunk_keys), chunk_keys)

    def _present(self, request: Request, found: Findings, ranked: Sequence[Ranked]) -> Hits:
        if request.fusion == "default":
            evidence = [item.score - (1.0 - CONTEXT_SHARE) * item.context for item in ranked]
        else:
            scores = _fuse_default(request, found, [item.chunk_key for item in ranked])
            evidence = [scores.get(item.chunk_key, 0.0) for item in ranked]
        relevances = level([_judge(found, item, value) for item, value in zip(ranked, evidence, strict=True)])
        relevance = {item.record_key: value for item, value in zip(ranked, relevances, strict=True)}
        half_life = self._settings.recency_half_life_days * MICROS_PER_DAY
        ordered = sort_ranked(blend_recency(ranked, request.selection.now, half_life, request.recency))
        if request.min_relevance is not None:
            ordered = [item for item in ordered if relevance[item.record_key] >= request.min_relevance]
        if request.diversity > 0:
            ordered = self._diversify(request, found, ordered[: request.limit * MMR_POOL])
        return self._look_up(found, ordered[: request.limit], relevance)

    def _diversify(self, request: Request, found: Findings, ranked: Sequence[Ranked]) -> list[Ranked]:
        if found.vector is None:
            return list(ranked)
        keys, vectors = self._store.vectors.load(found.vector.space, [item.chunk_key for item in ranked])
        similar = found.vector.compare_passages(vectors)
        place = {key: row for row, key in enumerate(keys)}

        def similarity(one: int, other: int) -> float:
            return float(similar[place[one], place[other]]) if one in place and other in place else 0.0

        return diversify(ranked, similarity, request.diversity, request.limit)

    def _look_up(self, found: Findings, ranked: Sequence[Ranked], relevance: Mapping[int, float]) -> Hits:
        rows = self._store.candidates.hydrate([item.chunk_key for item in ranked])
        explain = _Explanations(found)
        present = [item for item in ranked if item.chunk_key in rows]  # one may have been deleted meanwhile
        hits = [
            Hit(
                record=rows[item.chunk_key][0],
                chunk=rows[item.chunk_key][1],
                relevance=relevance[item.record_key],
                score=item.score,
                why=explain.why(item, rank),
            )
            for rank, item in enumerate(present, start=1)
        ]
        return Hits(tuple(hits), found.mode, found.degraded)


class _Explanations:
    """Looks up what each leg said of a chunk."""

    def __init__(self, found: Findings) -> None:
        self._keyword = found.keyword[0]
        self._vector = found.vector
        self._keyword_ranks = _ranks(rank_keys(self._keyword.bm25))
        self._vector_ranks = {} if found.vector is None else _ranks(rank_keys(found.vector.nearest()))

    def why(self, item: Ranked, rank: int) -> Why:
        key = item.chunk_key
        vector = self._vector
        return Why(
            rank=rank,
            keyword_rank=self._keyword_ranks.get(key),
            bm25=self._keyword.bm25.get(key),
            coverage=self._keyword.coverage.get(key),
            vector_rank=self._vector_ranks.get(key),
            similarity=None if vector is None else vector.similarity.get(key),
            meaning=None if vector is None else vector.meaning[0].get(key),
            context=item.context,
            decay=item.decay,
        )


def _fuse_default(request: Request, found: Findings, keys: Sequence[int] | None) -> dict[int, float]:
    """The default: keyword coverage and whitened cosine, weighted; questions inside the query count half.

    With `keys` only these chunks are scored.
    """
    weight = {"hybrid": 1.0 - request.alpha, "keyword": 1.0, "semantic": 0.0}[found.mode]
    texts = []
    for place, leg in enumerate(found.keyword):
        meanings = [{}] if found.vector is None else found.vector.meaning
        meaning = meanings[min(place, len(meanings) - 1)]
        texts.append(fuse_weighted(_only(leg.coverage, keys), _only(meaning, keys), weight))
    return blend_questions(texts[0], texts[1:])


def _only(evidence: Mapping[int, float], keys: Sequence[int] | None) -> Mapping[int, float]:
    return evidence if keys is None else {key: evidence[key] for key in keys if key in evidence}


def _judge(found: Findings, item: Ranked, evidence: float) -> float:
    """Return the relevance of a record. One that shares no word with the query is judged by its meaning alone, too."""
    relevance = judge(found.mode, evidence, found.size)
    if found.mode != "hybrid" or found.vector is None or item.chunk_key in found.keyword[0].coverage:
        return relevance
    meaning = found.vector.meaning[0].get(item.chunk_key, 0.0)
    return max(relevance, judge("semantic", meaning, found.size))


def _is_cut(request: Request, found: Findings, scores: Mapping[int, float]) -> bool:
    """Tell whether more candidates would bring more chunks."""
    if request.candidates >= MOST_CANDIDATES:
        return False
    full = any(len(leg.bm25) >= request.candidates for leg in found.keyword)
    return full or len(scores) > request.candidates or (found.vector is not None and found.vector.is_cut)


def _fuse_plain(request: Request, found: Findings) -> dict[int, float]:
    """What hosts expect of a plain store: the raw cosine at alpha 1, bm25 at alpha 0, in between a weighted sum of the
    raw cosine and bm25 as a share of the possible.
    """
    similarity = {} if found.vector is None else found.vector.similarity
    if found.vector is not None:
        similarity = {key: value for key, value in similarity.items() if value >= found.vector.floor}
    if found.mode == "semantic" or (found.mode == "hybrid" and request.alpha == 1):
        return dict(similarity)
    if found.mode == "keyword" or request.alpha == 0:
        return dict(found.keyword[0].bm25)
    return fuse_weighted(found.keyword[0].coverage, similarity, 1.0 - request.alpha)


def _start(candidate: Candidate, score: float) -> Ranked:
    return Ranked(
        record_key=candidate.record_key,
        record_id=candidate.record_id,
        chunk_key=candidate.chunk_key,
        session=None if candidate.session is None else (candidate.scope, candidate.session),
        created_at=candidate.created_at,
        tokens=candidate.tokens,
        asks=candidate.asks,
        score=score,
    )


def _both_ways(neighbours: Mapping[int, Mapping[int, int]]) -> dict[int, dict[int, int]]:
    """Say of each neighbour, too, who stands beside it."""
    both: dict[int, dict[int, int]] = {}
    for key, beside in neighbours.items():
        for offset, other in beside.items():
            both.setdefault(key, {})[offset] = other
            both.setdefault(other, {})[-offset] = key
    return both


def _ranks(keys: Sequence[int]) -> dict[int, int]:
    return {key: rank for rank, key in enumerate(keys, start=1)}
