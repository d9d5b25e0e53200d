"""Scopes that are too large to be held in memory: the indexes bring candidates, which are scored like any others."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .blocks import build_block
from .bm25 import keep_rarest
from .candidates import Candidates, Compared, Prior
from .chunk_rows import ChunkRow
from .embedding import normalize
from .filters import Selection
from .frame import Frame, make_frame
from .meaning import FrameVectors, lay_out, measure_rows
from .request import Request
from .store import Space, SqliteStore
from .surroundings import OFFSETS, Surroundings
from .text import Query
from .whitening import Statistics, direct, lean_on, measure

if TYPE_CHECKING:
    from .models import Vectors

MOST_TERMS = 64  # of a query; of a longer one the rarest are looked for
MOST_CANDIDATES = 4096
MOST_SCOPES = 32  # whose statistics are remembered; each takes 0.6 MB with 384 dimensions
SAMPLE = 4_096  # texts that the statistics are made from
LEAST_CHUNKS = 16_384  # that a large scope has


@dataclass(frozen=True, slots=True)
class _Measured:
    """The statistics of a scope, how many chunks it had, and the last change that they know of."""

    seq: int
    chunks: int
    statistics: Statistics


class LargeScopes:
    """Finds candidates; remembers the statistics of the scopes it has searched."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._measured: OrderedDict[tuple[int, str], _Measured] = OrderedDict()
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Let go of the statistics."""
        with self._lock:
            self._measured.clear()

    def gather(
        self, request: Request, queries: Sequence[Query], space: Space | None, units: Vectors | None, prior: Prior
    ) -> Candidates:
        """Return the best candidates of both legs, and the records beside them in their sessions."""
        selection, most = request.selection, request.candidates
        statistics = None
        if space is not None and units is not None:
            statistics = lean_on(prior.vector(), self._measure(space, selection))
        while True:
            keys = self._find_by_keywords(queries, selection, most) if request.mode != "semantic" else set()
            full = len(keys) >= most
            if statistics is not None and space is not None and units is not None:
                raw = request.fusion == "plain"
                direction = units[0] if raw else direct(statistics, units[:1]).vectors[0]
                near = self._store.index.nearest(space, direction, selection, most)
                keys |= set(near.keys)
                full = full or near.compared > len(near.keys)
            rows = self._store.blocks.of_chunks(keys)
            if len({row.record_key for row in rows}) >= request.limit or not full or most >= MOST_CANDIDATES:
                break
            most = min(4 * most, MOST_CANDIDATES)  # few records with many chunks took all the places
        return self._complete(rows, queries, selection, space, statistics)

    def _complete(
        self,
        rows: list[ChunkRow],
        queries: Sequence[Query],
        selection: Selection,
        space: Space | None,
        statistics: Statistics | None,
    ) -> Candidates:
        inside = sorted({row.record_key for row in rows if row.session is not None})
        beside = self._store.candidates.neighbours(inside, selection) if inside else {}
        strangers = {key for keys in beside.values() for key in keys if key is not None} - {
            row.record_key for row in rows
        }
        rows = sorted(
            [*rows, *self._store.blocks.of_records(strangers, selection.scope)], key=lambda row: (row[1], row[0])
        )
        terms = frozenset(term for query in queries for term in (*query.terms, *query.weak))
        frame = make_frame([build_block(rows, terms)])
        vectors = None
        if space is not None and statistics is not None:
            units, present = lay_out(
                frame.blocks[0], space.dimensions, *self._store.vectors.load(space, frame.chunk_keys.tolist())
            )
            vectors = Compared(FrameVectors((units,), present), statistics, measure_rows(statistics, [units]))
        return Candidates(
            frame=frame,
            visible=np.ones(len(frame), dtype=bool),
            around=self._find_surroundings(frame, beside, selection),
            describe=self._store.keyword.describe,
            most_terms=MOST_TERMS,
            vectors=vectors,
            size=LEAST_CHUNKS,
            compared=LEAST_CHUNKS,
        )

    def _find_by_keywords(self, queries: Sequence[Query], selection: Selection, most: int) -> set[int]:
        keys: set[int] = set()
        for query in queries:
            found = self._search(query.terms, selection, most)
            weak = [term for term in query.weak if not term.isascii()]
            keys |= found or (self._search(weak, selection, most) if weak else set())
        return keys

    def _search(self, terms: Sequence[str], selection: Selection, most: int) -> set[int]:
        if not terms:
            return set()
        corpus = self._store.keyword.describe(terms)
        return set(self._store.keyword.search(keep_rarest(terms, corpus, MOST_TERMS), selection, most))

    def _measure(self, space: Space, selection: Selection) -> Statistics:
        """Return the statistics of the searched scope, whatever else the selection asks for. They hold until about half
        of what the scope had has changed.
        """
        place = (space.id, selection.scope)
        seq = self._store.blocks.last_change()
        with self._lock:
            known = self._measured.get(place)
            if known is not None and known.seq <= seq <= known.seq + known.chunks:
                self._measured.move_to_end(place)
                return known.statistics
        chunks, sample = self._store.vectors.sample(space, selection.scope, SAMPLE)
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
