"""The scopes that a process searches, held in memory and kept in step with the file.

A scope of up to 16,384 chunks is read once and then scored as a whole: nothing is missed, and statistics are its own. A
write, by whichever process, is noted in the file's change log, and only the changed records are read again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .blocks import Block, Flags, Floats, build_block
from .candidates import Compared, Prior
from .forks import Lock
from .frame import Frame, make_frame
from .meaning import FrameVectors, lay_out, measure_frame, measure_rows, spread_firsts
from .store import Space, SqliteStore
from .whitening import Statistics, lean_on

if TYPE_CHECKING:
    from .models import Vectors

MOST_CHUNKS = 16_384  # of a scope that is held in memory
MARGIN = 2_048  # chunks above that, within which a scope is counted again after every change
HELD_CHUNKS = 65_536  # of all scopes together; with 384 dimensions they take about 150 MB
FOLLOWED = 512  # changed records that are kept beside the block of all others, at most, …
FOLLOWED_SHARE = 8  # … and at most one in so many; then the scope is read anew, and its statistics with it


@dataclass(slots=True)
class _Whitened:
    """A frame's vectors and statistics, and by language what depends on the typical vector that they lean on."""

    space: Space
    vectors: FrameVectors
    statistics: Statistics
    by_language: dict[str, tuple[Statistics, Floats]] = field(default_factory=dict)


@dataclass(slots=True)
class Scope:
    """A scope as it is at one change of the file. Its vectors are read when a search first wants them."""

    name: str
    seq: int
    frame: Frame
    changed: frozenset[int]
    spaces: dict[int, _Whitened] = field(default_factory=dict)


class ScopeCache:
    """Holds the scopes that were searched last."""

    def __init__(self, store: SqliteStore, *, most_chunks: int = MOST_CHUNKS) -> None:
        self._store = store
        self._most = most_chunks
        self._scopes: OrderedDict[str, Scope] = OrderedDict()
        self._large: dict[str, int] = {}  # scopes too large to be held, and up to which change that is certain
        self._lock = Lock()

    def open(self, name: str) -> Scope | None:
        """Return a scope as it now is, None if it is too large to be held."""
        with self._lock, self._store.database.read():
            known = self._scopes.pop(name, None)
            scope = self._follow(known) if known is not None else None
            if scope is None:
                seq = self._store.blocks.last_change()
                if self._is_large(name, seq):
                    return None
                scope = self._read(name, seq)
            if scope.frame.chunks > self._most:
                return None
            if not self._store.database.is_writing():  # what may be rolled back is not kept
                self._keep(scope)
            return scope

    def vectors(self, scope: Scope, space: Space, prior: Prior) -> Compared:
        """Return a scope's vectors in a space, with statistics that lean on the prior's typical vector."""
        with self._lock:
            whitened = scope.spaces.get(space.id)
            if whitened is None:
                for known in [one for one in scope.spaces.values() if one.space.name == space.name]:
                    del scope.spaces[known.space.id]  # the vectors of the model that the file has moved from
                whitened = scope.spaces[space.id] = self._whiten(scope, space)
            if prior.language not in whitened.by_language:
                leaning = lean_on(prior.vector(), whitened.statistics)
                whitened.by_language[prior.language] = leaning, measure_rows(leaning, whitened.vectors.blocks)
            return Compared(whitened.vectors, *whitened.by_language[prior.language])

    def forget(self) -> None:
        """Let go of everything, so that statistics are made anew."""
        with self._lock:
            self._scopes.clear()
            self._large.clear()

    def _is_large(self, name: str, seq: int) -> bool:
        if self._large.get(name, -1) >= seq:
            return True
        counted = self._store.blocks.count_chunks(name, self._most + MARGIN)
        self._large.pop(name, None)
        if counted > self._most:
            # One change takes at most one record away, which is hardly ever more than one chunk.
            self._large[name] = seq + counted - self._most - 1
        return counted > self._most

    def _read(self, name: str, seq: int) -> Scope:
        return Scope(name, seq, make_frame([build_block(self._store.blocks.of_scope(name))]), frozenset())

    def _follow(self, known: Scope) -> Scope | None:
        """Return a known scope with what has changed in it, None if it has to be read anew."""
        seq, changed = self._store.blocks.changed_since(known.seq)
        if not changed:
            return known if changed is not None else None
        block = known.frame.blocks[0]
        inside = set(np.intersect1d(block.record_keys, np.array(list(changed), dtype=np.int64)).tolist())
        inside |= changed & known.changed  # they may have been in the scope, and are deleted or moved now
        inside |= {row.record_key for row in self._store.blocks.of_records(changed, known.name)}
        if not inside:
            known.seq = seq
            return known
        every = known.changed | inside
        if len(every) > min(len(block) // FOLLOWED_SHARE, FOLLOWED):
            return None
        beside = build_block(self._store.blocks.of_records(every, known.name))
        frame = make_frame([block, beside], np.array(sorted(every), dtype=np.int64))
        scope = Scope(known.name, seq, frame, frozenset(every))
        for whitened in known.spaces.values():
            scope.spaces[whitened.space.id] = self._follow_vectors(scope, whitened, beside)
        return scope

    def _whiten(self, scope: Scope, space: Space) -> _Whitened:
        first, *others = scope.frame.blocks
        blocks = [lay_out(first, space.dimensions, *self._store.blocks.vectors_of_scope(space, scope.name))]
        for block in others:
            found = self._store.blocks.vectors_of_records(space, scope.changed, scope.name)
            blocks.append(lay_out(block, space.dimensions, *found))
        statistics = measure_frame(scope.frame, _join(blocks))  # a long record counts once
        if space.is_brought:
            for block, laid in zip(scope.frame.blocks, blocks, strict=True):
                spread_firsts(block, *laid)
        return _Whitened(space, _join(blocks), statistics)

    def _follow_vectors(self, scope: Scope, known: _Whitened, beside: Block) -> _Whitened:
        """Return the vectors of a scope that has changed: those of the first block, and its statistics, stay."""
        found = self._store.blocks.vectors_of_records(known.space, scope.changed, scope.name)
        added, present = lay_out(beside, known.space.dimensions, *found)
        if known.space.is_brought:
            spread_firsts(beside, added, present)
        first = len(scope.frame.blocks[0])
        vectors = FrameVectors(
            (known.vectors.blocks[0], added), np.concatenate([known.vectors.present[:first], present])
        )
        by_language = {
            language: (statistics, np.concatenate([lengths[:first], measure_rows(statistics, [added])]))
            for language, (statistics, lengths) in known.by_language.items()
        }
        return _Whitened(known.space, vectors, known.statistics, by_language)

    def _keep(self, scope: Scope) -> None:
        self._scopes[scope.name] = scope
        held = sum(len(one.frame) for one in self._scopes.values())
        while held > HELD_CHUNKS and len(self._scopes) > 1:
            _, dropped = self._scopes.popitem(last=False)
            held -= len(dropped.frame)


def _join(blocks: list[tuple[Vectors, Flags]]) -> FrameVectors:
    return FrameVectors(tuple(vectors for vectors, _ in blocks), np.concatenate([present for _, present in blocks]))
