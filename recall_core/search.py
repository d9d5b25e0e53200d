"""The way of a query: both legs, fused, seen in their context, put in order, looked up."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from .blocks import Rows
from .causes import Cause
from .conversation import Own, cover_window, find_speakers, gate_context, spread_context, weigh_turns
from .dates import find_times, weigh_dates
from .errors import RecallError, RerankError
from .evidence import Evidence
from .filters import selects
from .frame import Frame
from .fusion import Flags, Scores, blend_questions, find_ranks
from .legs import KEYWORDS_ONLY, Asked, Legs
from .models import Hit, Hits, Why
from .ranking import blend_recency, decay, diversify, level_ties, select_best, sort_places
from .relevance import CONTEXT_SHARE, KEYWORD_WEIGHT, judge, level
from .request import Request
from .rerank import order_reranked, rerank
from .settings import Settings
from .speakers import describe_speaker
from .store import OWN_SPACE, SqliteStore
from .surroundings import Surroundings
from .text import Query, analyse_query
from .times import MICROS_PER_DAY
from .words import LiveDictionary

NOT_RERANKED = "not reranked"
LEAST_WEIGHT, WELL_COVERED = 0.6, 0.3  # of the keywords' weight; the coverage from which on they have all of it
FOLLOWED, FOLLOWING = 5, 2_000  # so many of the best are followed, and so many may follow them
FOLLOWED_SHARE = 0.8  # of the score of what is followed, to a record that says the same
ATTENTION = 0.05  # what lies so far behind the best is followed less by a factor of e


@dataclass(frozen=True, slots=True)
class Ranked:
    """Records on their way to the result, as arrays with an entry for each record of the frame: the row of the best
    chunk, the score, and which are in the result. The parts of the score: what the record says itself, with the share
    that keywords have in it, and what was added for its context, for what it is, and for its likeness to the best.
    """

    rows: Rows
    scores: Scores
    own: Scores
    weight: Scores
    context: Scores
    prior: Scores
    hop: Scores
    found: Flags


class Searcher:
    """Answers requests from one store."""

    def __init__(
        self, store: SqliteStore, legs: Legs, settings: Settings, dictionary: LiveDictionary, trouble: Cause
    ) -> None:
        self._store = store
        self._trouble = trouble
        self._legs = legs
        self._settings = settings
        self._dictionary = dictionary

    def refresh(self) -> None:
        """Let go of statistics, so that they are made anew."""
        self._legs.forget()

    def prepare(self, scope: str) -> None:
        """Load what searches of a scope by meaning need. Raises EmbeddingError."""
        self._legs.prepare(scope)

    def run(self, request: Request) -> Hits:
        """Return the hits of a request, best first."""
        words = self._dictionary.follow().words
        query = analyse_query(request.text, words)
        if request.limit == 0 or not (query.text.strip() or request.vector is not None) or self._is_empty(request):
            return Hits((), request.mode)
        parts = query.questions if request.fusion == "default" else ()
        queries = [query, *(analyse_query(question, words) for question in parts)]
        asked = self._ask(request, queries)
        while (seen := self._legs.look(request, queries, asked)) is None:
            request = replace(request, space=self._store.vectors.find_space(request.space_name))
            asked = self._ask(request, queries, moved=True)
        self._note_trouble(request, seen.degraded)
        if not len(seen.evidence.frame):
            return Hits((), seen.evidence.mode, seen.degraded)
        ranked = self._rank(request, query, seen.evidence, seen.around)
        return self._present(request, seen.evidence, ranked, seen.degraded)

    def _is_empty(self, request: Request) -> bool:
        """Tell whether nothing is stored yet: there is no vector, and no chunk waits for one."""
        vectors = self._store.vectors
        return request.space is None and not vectors.spaces() and vectors.count_pending() == 0

    def _note_trouble(self, request: Request, degraded: str | None) -> None:
        """Note what kept the memory's own vectors from being used, or that they were."""
        own = request.space_name == OWN_SPACE and request.vector is None and self._legs.embeds
        if not own or request.mode == "keyword":
            return
        if degraded is not None and degraded.startswith(KEYWORDS_ONLY):
            self._trouble.note(degraded, "%s: %s", self._store.path, degraded)
        else:
            self._trouble.clear(f"{self._store.path}: memories are found by meaning again")

    def _ask(self, request: Request, queries: Sequence[Query], *, moved: bool = False) -> Asked:
        """Return the vectors of the queries, or why there are none. `moved` says that the file went over to another
        model since the search began, so that a given vector is one of the old model.
        """
        if request.mode == "keyword":
            return Asked(None, None)
        name = request.space_name
        try:
            if name == OWN_SPACE and request.space is not None:
                self._legs.check_model(request.space)
            if request.vector is not None:
                if moved:
                    raise RecallError("the file moved to another model during this search; embed the query anew")
                vectors = request.vector.reshape(1, -1)
            elif name == OWN_SPACE:
                vectors = self._legs.embed([query.text for query in queries])
            elif request.space is not None:
                raise RecallError(f"the space {name!r} has vectors of another model; pass one of the query as vector=")
            if request.space is None:
                raise RecallError(f"no memory has a vector in the space {name!r} yet")
        except RecallError as error:
            return Asked(None, f"{KEYWORDS_ONLY}: {error}")
        return Asked(vectors, None)

    def _rank(self, request: Request, query: Query, evidence: Evidence, around: Surroundings) -> Ranked:
        """Return the records with their scores: the best chunk speaks for its record, then the conversation for it."""
        frame = evidence.frame
        if request.fusion != "default":
            depth = max(request.candidates, request.limit)
            alpha = 0.5 if request.alpha is None else request.alpha
            scores, found = evidence.fuse(request.fusion, alpha, self._settings.rrf_k, depth)
            rows, best = _collapse(evidence, np.where(found, scores, -np.inf))
            nothing = np.zeros(len(rows))
            return Ranked(rows, best, best, nothing + 1.0 - alpha, nothing, nothing, nothing, np.isfinite(best))
        visible, found = evidence.visible[frame.starts], evidence.found
        window = cover_window(frame, evidence.keyword[0], visible, around)
        weight = self._weigh_keywords(request, evidence)
        texts = evidence.score_texts(weight)
        rows, best = _collapse(evidence, np.where(found, blend_questions(texts[0], texts[1:]), -np.inf))
        known = np.isfinite(best)
        own = Own(
            coverage=evidence.keyword[0].coverage[rows].astype(np.float64),
            meaning=evidence.cosines(0)[rows],
            evidence=np.where(known, best, 0.0),
            tokens=frame.tokens[rows],
        )
        share = evidence.weigh(weight)[rows]
        context = spread_context(frame, evidence.keyword[0], own, window, visible, around, share)
        # A turn beside a match is in the list although it holds no word of the query.
        beside = visible & np.any((around.beside >= 0) & np.append(known, False)[around.beside], axis=0)
        speakers = find_speakers(frame.roles, self._find_speaker(query, frame, visible))
        times = find_times(query.text, evidence.now, frame.created[visible])
        prior = weigh_turns(frame, own.tokens, speakers) + weigh_dates(frame.created, times)
        listed = known | (beside & (context > 0))
        total = own.evidence + context + prior
        follows = (share < 1.0).any()  # by likeness, which keywords alone know nothing of
        hop = np.zeros(len(rows))
        if follows:  # for the whole query and for each question in it
            added = context + prior
            hops = [text[rows] + _follow(text[rows] + added, rows, evidence, listed) for text in texts]
            hop = np.where(listed, blend_questions(hops[0], hops[1:]) - own.evidence, 0.0)
        return Ranked(rows, total + hop, own.evidence, share, context, prior, hop, listed)

    def _weigh_keywords(self, request: Request, evidence: Evidence) -> Scores:
        """Return the keywords' share in each row's score: less if even the best row holds little of what was asked for.
        In a conversation the words of the turns around confirm a match.
        """
        frame, full = evidence.frame, self._settings.keyword_weight
        if request.alpha is not None:
            return np.full(len(frame), 1.0 - request.alpha)
        best = evidence.best_covered()
        covered = min(1.0, max(LEAST_WEIGHT, float(evidence.keyword[0].coverage[best]) / WELL_COVERED))
        gate = float(gate_context(frame.tokens[best])) ** 2  # of a long text no question covers much
        return np.where(frame.sessions[frame.records] >= 0, full, full * (1.0 - gate * (1.0 - covered)))

    def _find_speaker(self, query: Query, frame: Frame, visible: Flags) -> str | None:
        """Return the one speaker of the visible records whom the query names, None if it names none or several."""
        if not len(frame.order):
            return None
        asked, text = {*query.terms, *query.weak}, query.text.casefold()
        named = []
        for role in set(compress(frame.roles, visible.tolist())):
            if role is None or role.casefold() not in text or not describe_speaker(role):
                continue
            name = analyse_query(role, self._dictionary.held.words)
            if asked.issuperset([*name.terms, *name.weak]):
                named.append(role)
        return named[0] if len(named) == 1 else None

    def _present(self, request: Request, evidence: Evidence, ranked: Ranked, degraded: str | None) -> Hits:
        frame = evidence.frame
        pool = max(request.candidates, request.pool if request.diversity > 0 else request.limit)
        order = sort_places(
            select_best(ranked.scores, ranked.found, pool), ranked.scores, frame.created, frame.record_ids
        )
        scores = level_ties(ranked.scores, order)
        relevance = _judge(evidence, ranked, order)
        items = _Items(np.array(order, dtype=np.int32), scores, relevance, np.full(len(order), np.nan))
        items = self._blend_recency(request, evidence, items)
        if request.min_relevance is not None:
            items = items.take(np.flatnonzero(items.relevance >= request.min_relevance))
        items, failed = self._rerank(request, evidence, ranked, items)
        degraded = "; ".join(filter(None, [degraded, failed])) or None
        if request.diversity > 0 and evidence.meaning is not None:
            items = items.take(np.arange(min(len(items.places), request.pool)))
            placed = ranked.rows[items.places]
            similarity = evidence.meaning.compare_passages(placed, placed, plain=request.fusion == "plain")
            items = items.take(
                np.array(diversify(items.scores, similarity, request.diversity, request.limit), dtype=int)
            )
        return self._look_up(
            request, evidence, ranked, items.take(np.arange(min(len(items.places), request.limit))), degraded
        )

    def _blend_recency(self, request: Request, evidence: Evidence, items: _Items) -> _Items:
        if request.recency <= 0:
            return items
        frame = evidence.frame
        half_life = self._settings.recency_half_life_days * MICROS_PER_DAY
        decays = decay(frame.created[items.places], request.selection.now, half_life)
        blended = blend_recency(items.scores, decays, request.recency)
        ids = [frame.record_ids[place] for place in items.places.tolist()]
        order = sort_places(np.arange(len(blended), dtype=np.int32), blended, frame.created[items.places], ids)
        leveled = level_ties(blended, order)
        return replace(items.take(np.array(order, dtype=int)), scores=leveled)

    def _rerank(self, request: Request, evidence: Evidence, ranked: Ranked, items: _Items) -> tuple[_Items, str | None]:
        """Let the reranker say who stands where among the first records, or say why it could not. The scores stay with
        the places.
        """
        reranker, count = self._settings.reranker, self._settings.rerank_candidates
        if reranker is None or request.fusion != "default" or not request.text.strip():
            return items, None
        keys = evidence.frame.chunk_keys[ranked.rows[items.places[:count]]].tolist()
        stored = self._store.candidates.hydrate(keys)
        first = [place for place, key in enumerate(keys) if key in stored]  # one may have been deleted meanwhile
        texts = [
            describe_speaker(record.role) + chunk.text for record, chunk in (stored[keys[place]] for place in first)
        ]
        try:
            scores = rerank(request.text, texts, reranker, budget=self._settings.rerank_budget, clock=time.monotonic)
        except RerankError as error:
            return items, f"{NOT_RERANKED}: {error}"
        said = np.full(len(items.places), np.nan)
        said[first] = [np.nan if score is None else score for score in scores]
        order = [*order_reranked(first, scores), *sorted(set(range(len(said))) - set(first))]
        return replace(items.take(np.array(order, dtype=int)), scores=items.scores, reranked=said[order]), None

    def _look_up(
        self, request: Request, evidence: Evidence, ranked: Ranked, items: _Items, degraded: str | None
    ) -> Hits:
        frame = evidence.frame
        rows = ranked.rows[items.places]
        keys = frame.chunk_keys[rows].tolist()
        stored = self._store.candidates.hydrate(keys)
        half_life = self._settings.recency_half_life_days * MICROS_PER_DAY
        decays = decay(frame.created[items.places], evidence.now, half_life).tolist()
        explained = _explain(evidence, ranked, items.places, decays)
        reranked = [None if math.isnan(score) else score for score in items.reranked.tolist()]
        hits: list[Hit] = []
        for place, key in enumerate(keys):
            if key not in stored or not selects(request.selection, stored[key][0]):
                continue  # it was deleted, or moved, meanwhile
            record, chunk = stored[key]
            hits.append(
                Hit(
                    record=record,
                    chunk=chunk,
                    relevance=float(items.relevance[place]),
                    score=float(items.scores[place]),
                    why=replace(explained[place], rank=len(hits) + 1, rerank=reranked[place]),
                )
            )
        return Hits(tuple(hits), evidence.mode, degraded)


@dataclass(frozen=True, slots=True)
class _Items:
    """Records in an order: their places in the frame, scores and relevances."""

    places: Rows
    scores: Scores
    relevance: Scores
    reranked: Scores  # what the reranker said, NaN where it was not asked

    def take(self, chosen: NDArray[np.int64]) -> _Items:
        """Return some of them."""
        return _Items(self.places[chosen], self.scores[chosen], self.relevance[chosen], self.reranked[chosen])


def _collapse(evidence: Evidence, scores: Scores) -> tuple[Rows, Scores]:
    """Return the row of each record's best chunk, and its score."""
    frame = evidence.frame
    if len(frame.starts) == len(frame):  # one chunk each
        return frame.starts, scores
    best = np.maximum.reduceat(scores, frame.starts)
    ahead = np.flatnonzero(scores == best[frame.records])
    return ahead[np.searchsorted(frame.records[ahead], np.arange(len(best)))].astype(np.int32), best


def _follow(scores: Scores, rows: Rows, evidence: Evidence, listed: Flags) -> Scores:
    """Return what records gain by their likeness to the best: a second hop, from the question to what answers it best,
    and from there to what belongs to that.
    """
    gained, frame = np.zeros(len(scores)), evidence.frame
    able = listed & evidence.compared[rows]
    if evidence.meaning is None or not able.any():
        return gained
    best = sort_places(select_best(scores, able, FOLLOWED), scores, frame.created, frame.record_ids)[:FOLLOWED]
    pool = select_best(scores, able, FOLLOWING)
    alike = np.maximum(evidence.meaning.compare_passages(rows[best], rows[pool]), 0.0)
    attention = np.exp((scores[best] - scores[best[0]]) / ATTENTION)
    attention /= attention.sum()
    share = FOLLOWED_SHARE * float(
        attention @ gate_context(frame.tokens[rows[best]])
    )  # long texts speak of many things
    gained[pool] = share * (attention * np.maximum(scores[best], 0.0)) @ alike
    return gained


def _judge(evidence: Evidence, ranked: Ranked, order: Sequence[int]) -> Scores:
    """Return the relevance of records in their order."""
    places = np.array(order, dtype=np.int32)
    rows = ranked.rows[places]
    shown = evidence.fuse_default(evidence.weigh(KEYWORD_WEIGHT))[rows] + CONTEXT_SHARE * ranked.context[places]
    judged = judge(evidence.mode, evidence.describe_texts(rows, shown), evidence.describe_background())
    return np.array(level(judged.tolist()))


def _explain(evidence: Evidence, ranked: Ranked, places: Rows, decays: Sequence[float]) -> list[Why]:
    """Return what each part of the ranking said of some records."""
    rows, keyword, meaning = ranked.rows[places], evidence.keyword[0], evidence.meaning
    parts = (ranked.weight, ranked.context, ranked.prior, ranked.hop)
    weight, context, prior, hop = (part[places].tolist() for part in parts)
    keyword_ranks = find_ranks(keyword.bm25.astype(np.float64), evidence.matched, rows)
    vector_ranks: list[int | None] = [None] * len(rows)
    similarity = cosines = [0.0] * len(rows)
    if meaning is not None:
        vector_ranks = find_ranks(meaning.cosines[0].astype(np.float64), evidence.compared, rows)
        similarity, cosines = meaning.similarity(rows).tolist(), meaning.cosines[0][rows].tolist()
    bm25, coverage = keyword.bm25[rows].tolist(), keyword.coverage[rows].tolist()
    return [
        Why(
            rank=0,
            keyword_rank=keyword_ranks[place],
            bm25=bm25[place] if keyword_ranks[place] else None,
            coverage=coverage[place] if keyword_ranks[place] else None,
            vector_rank=vector_ranks[place],
            similarity=similarity[place] if vector_ranks[place] else None,
            meaning=cosines[place] if vector_ranks[place] else None,
            keyword_weight=weight[place],
            context=context[place],
            prior=prior[place],
            hop=hop[place],
            decay=decays[place],
        )
        for place in range(len(rows))
    ]
