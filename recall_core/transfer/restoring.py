"""Puts vectors of an export back where they belong: to the same slice of a text, in the space of the same model."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine import Engine
from ..errors import EmbeddingError
from ..store import OWN_SPACE, Draft, Space, Stored
from .entries import VectorEntry


class Restoring:
    """The vector spaces that an import has met."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._spaces: dict[tuple[str, str, int], Space | None] = {}
        self._used: set[Space] = set()

    def save(self, draft: Draft, stored: Stored, vectors: Sequence[VectorEntry]) -> int:
        """Store the vectors of a record that was just written, inside its transaction; return how many fit."""
        kept = 0
        for vector in vectors:
            space, key = self._find_space(vector), _find_chunk(draft, stored, vector)
            if space is not None and key is not None and _is_usable(vector):
                own = space.name == OWN_SPACE
                self._engine.store.vectors.save(space, {key: vector.data}, settles=own, given=vector.given)
                self._used.add(space)
                kept += 1
        return kept

    def refresh(self) -> None:
        """Have the index take up what was stored."""
        for space in self._used:
            self._engine.store.index.refresh(space)
        self._used.clear()

    def _find_space(self, vector: VectorEntry) -> Space | None:
        asked = (vector.space, vector.model, vector.dimensions)
        if asked not in self._spaces:
            self._spaces[asked] = self._open_space(vector)
        return self._spaces[asked]

    def _open_space(self, vector: VectorEntry) -> Space | None:
        """Return the space of the same name, model and dimensions, made if need be; None if another model has it."""
        engine = self._engine
        known = engine.store.vectors.find_space(vector.space)
        if known is not None:
            return known if (known.model, known.dimensions) == (vector.model, vector.dimensions) else None
        if vector.space == OWN_SPACE and engine.embedder is not None and engine.embedder.model_id != vector.model:
            return None
        try:
            if vector.space == OWN_SPACE and engine.embedder is not None:
                space = engine.indexer.open_space()
                return space if space.dimensions == vector.dimensions else None
            return engine.store.vectors.ensure_space(vector.space, vector.model, vector.dimensions)
        except EmbeddingError:
            return None


def _find_chunk(draft: Draft, stored: Stored, vector: VectorEntry) -> int | None:
    """Return the key of the chunk that a vector belongs to: that of the same slice of the text.

    One that a caller gave stands for a text, or a page of it, and lies with the chunk that begins there.
    """
    for key, chunk in zip(stored.chunk_keys, draft.chunks, strict=False):
        if chunk.start == vector.start and (vector.given or chunk.end == vector.end):
            return key
    return None


def _is_usable(vector: VectorEntry) -> bool:
    import numpy as np

    from ..vectors import check_vectors

    try:
        check_vectors(np.frombuffer(vector.data, dtype="<f4").reshape(1, -1), 1, vector.dimensions)
    except EmbeddingError:
        return False
    return True
