"""Scopes that are too large to be held in memory: the indexes bring candidates, which are scored like any others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from .blocks import build_block
from .bm25 import Corpus, keep_rarest
from .candidates import Candidates, Compared, Prior
from .chunk_rows import ChunkRow
from .filters import Selection
from .forks import Lock
from .frame import Frame, make_frame
from .fusion import TIE
from .meaning import FrameVectors, lay_out, measure_rows, spread
from .request import Request
from .store import Space, SqliteStore
from .surroundings import OFFSETS, Surroundings
from .text import Query
from .vectors import normalize
from .whitening import Statistics, compare, direct, lean_on, measure, measure_lengths

if TYPE_CHECKING:
    from .models import Vectors

MOST_TERMS = 64  # of a query; of a longer one the rarest are looked for
MOST_CANDIDATES = 4096
MOST_SCOPES = 32  # whose statistics are remembered; each takes 0.6 MB with 384 dimensions
SAMPLE = 4_096  # texts that the statistics are made from
COPIED = 10  # of the nearest texts, all copies come in
LEAST_CHUNKS = 16_384  # that a large scope has

Describe = Callable[[tuple[str, ...]], Corpus]


@dataclass(frozen=True, slots=True)
class _Measured:
    """The statistics of a scope, how many chunks it had, and the last change that they know of."""

    seq: int
    chunks: int
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class _Compared:
    """What the query vectors, shape (queries, dimensions), are compared with, and by which statistics; the vectors that
    were read already, by chunk key.
    """

    space: Space
    queries: Vectors
    statistics: Statistics
    known: dict[int, Vectors] = field(default_factory=dict)


class LargeScopes:
    """Finds candidates; remembers the statistics of the scopes it has searched."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._measured: OrderedDict[tuple[int, str], _Measured] = OrderedDict()
        self._lock = Lock()

    def forget(self) -> None:
        """Let go of the statistics."""
        with self._lock:
            self._measured.clear()

    def gather(
        self, request: Request, queries: Sequence[Query], space: Space | None, units: Vectors | None, prior: Prior
    ) -> Candidates:
        """Return the best candidates of both legs, and the records beside them in their sessions."""
        selection, most = request.selection, request.candidates
        describe = cache(lambda terms: self._store.keyword.describe(terms))
        compared = None
        if space is not None and units is not None:
            compared = _Compared(space, units, lean_on(prior.vector(), self.measure(space, selection.scope)))
        while True:
            keys, full = set[int](), False
            if compared is not None:
                keys, full = self._find_by_vectors(compared, selection, most, raw=request.fusion == "plain")
            if request.mode != "semantic" or not keys:  # without vectors keywords answer
                matching = self._find_by_keywords(queries, describe, selection, most)
                keys, full = keys | matching, full or len(matching) >= most
            rows = self._store.blocks.of_chunks(keys)
            if len({row.record_key for row in rows}) >= request.limit or not full or most >= MOST_CANDIDATES:
                break
            most = min(4 * most, MOST_CANDIDATES)  # few records with many chunks took all the places
        return self._complete(rows, queries, describe, selection, compared)

    def _complete(
        self,
        rows: list[ChunkRow],
        queries: Sequence[Query],
        describe: Describe,
        selection: Selection,
        compared: _Compared | None,
    ) -> Candidates:
        inside = sorted({row.record_key for row in rows if row.session is not None})
        beside = self._store.candidates.neighbours(inside, selection) if inside else {}
        strangers = {key for keys in beside.values() for key in keys if key is not None}
        strangers -= {row.record_key for row in rows}
        if strangers:
            rows = [*rows, *self._store.blocks.of_records(strangers, selection.scope)]
            rows.sort(key=lambda row: (row.record_key, row.chunk_key))
        terms = frozenset(term for query in queries for term in (*query.terms, *query.weak))
        frame = make_frame([build_block(rows, terms)])
        return Candidates(
            frame=frame,
            visible=np.ones(len(frame), dtype=bool),
            around=self._find_surroundings(frame, beside, selection),
            describe=lambda terms: describe(tuple(terms)),
            most_terms=MOST_TERMS,
            vectors=None if compared is None else self._compare(frame, compared),
            size=LEAST_CHUNKS,
            compared=LEAST_CHUNKS,
        )

    def _find_by_keywords(
        self, queries: Sequence[Query], describe: Describe, selection: Selection, most: int
    ) -> set[int]:
        keys: set[int] = set()
        for query in queries:
            found = self._search(query.terms, describe, selection, most)
            weak = [term for term in query.weak if not term.isascii()]
            keys |= found or (self._search(weak, describe, selection, most) if weak else set())
        return keys

    def _search(self, terms: Sequence[str], describe: Describe, selection: Selection, most: int) -> set[int]:
        if not terms:
            return set()
        corpus = describe(tuple(terms))
        return set(self._store.keyword.search(keep_rarest(terms, corpus, MOST_TERMS), corpus, selection, most))

    def find_nearest(
        self, space: Space, query: Vectors, statistics: Statistics, selection: Selection, most: int
    ) -> set[int]:
        """Return the keys of about the `most` selected chunks nearest to a unit query vector, shape (1, dimensions)."""
        return self._find_by_vectors(_Compared(space, query, statistics), selection, most, raw=False)[0]

    def _find_by_vectors(
        self, compared: _Compared, selection: Selection, most: int, *, raw: bool
    ) -> tuple[set[int], bool]:
        """Return the keys of the chunks nearest to the first query, by raw or by whitened cosines, and whether there
        are others.
        """
        directions = direct(compared.statistics, compared.queries[:1])
        direction = compared.queries[0] if raw else directions.vectors[0]
        near = self._store.index.nearest(compared.space, direction, selection, 2 * most)
        keys, vectors = self._load(compared, near.keys)
        if raw:
            scores = vectors @ direction
        else:
            scores = compare(directions, vectors, measure_lengths(compared.statistics, vectors))[0]
        order = np.argsort(-scores, kind="stable")
        different = order[np.diff(scores[order], prepend=np.inf) < -TIE][:COPIED]
        copies = self._store.vectors.copies([keys[place] for place in different.tolist()], selection, most)
        return {*(keys[place] for place in order[:most].tolist()), *copies}, near.compared > most

    def _load(self, compared: _Compared, keys: Sequence[int]) -> tuple[list[int], Vectors]:
        """Return the keys that have a vector, and these, of length 1; what was read before is not read again."""
        missing = [key for key in keys if key not in compared.known]
        if missing:
            found, vectors = self._store.vectors.load(compared.space, missing)
            compared.known.update(zip(found, normalize(vectors), strict=True))
        present = [key for key in keys if key in compared.known]
        stacked = [compared.known[key] for key in present]
        return present, np.array(stacked, dtype=np.float32).reshape(len(present), compared.space.dimensions)

    def _compare(self, frame: Frame, compared: _Compared) -> Compared:
        keys, vectors = self._load(compared, frame.chunk_keys.tolist())
        units, present = lay_out(frame.blocks[0], compared.space.dimensions, keys, vectors)
        if compared.space.is_brought:
            records = frame.record_keys[np.unique(frame.records[~present])].tolist()
            whole, of_records = self._store.vectors.of_firsts(compared.space, records)
            spread(frame.blocks[0], units, present, np.array(whole, dtype=np.int64), normalize(of_records))
        lengths = measure_rows(compared.statistics, [units])
        return Compared(FrameVectors((units,), present), compared.statistics, lengths)

    def measure(self, space: Space, scope: str, *, apart: bool = False) -> Statistics:
        """Return the statistics of a scope. They hold until about half of what the scope had has changed. Making them
        takes long; `apart` lets other threads read meanwhile.
        """
        place = (space.id, scope)
        seq = self._store.blocks.last_change()
        with self._lock:
            known = self._measured.get(place)
            if known is not None and known.seq <= seq <= known.seq + known.chunks:
                self._measured.move_to_end(place)
                return known.statistics
        chunks, sample = self._store.vectors.sample(space, scope, SAMPLE, apart=apart)
        measured = _Measured(seq, chunks, measure(normalize(sample)))
        with self._lock:
            self._measured[place] = measured
            while len(self._measured) > MOST_SCOPES:
                self._measured.popitem(last=False)
        return measured.statistics

    def _find_surroundings(
        self, frame: Frame, beside: Mapping[int, Sequence[int | None]], selection: Selection
    ) -> Surroundings:
        links = np.full((len(OFFSETS), len(frame.record_keys)), -1, dtype=np.int32)
        if not len(frame.order):
            return Surroundings(links, frame.sessions, np.zeros(len(frame.record_keys), dtype=np.int32))
        places = {key: place for place, key in enumerate(frame.record_keys.tolist())}
        for key, others in beside.items():
            for row, other in enumerate(others):
                if other in places and key in places:
                    links[row, places[key]] = places[other]
                    links[len(OFFSETS) - 1 - row, places[other]] = places[key]
        sessions = frame.blocks[0].sessions
        sizes = self._store.candidates.session_sizes(sorted({one for one in sessions if one}), selection)
        counted = np.array([sizes.get(one, 0) if one else 0 for one in sessions], dtype=np.int32)
        return Surroundings(links, frame.sessions, counted)
