"""Makes a file as small as what it holds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .engine import Engine
from .reports import Vacuumed

Progress = Callable[[int, int], object]


def vacuum(engine: Engine, progress: Progress | None = None) -> Vacuumed:
    """Let go of what the indexes keep of deleted records, then write the file anew without its free pages."""
    store = engine.store
    before = store.upkeep.size()
    store.upkeep.check_room()
    steps: list[Callable[[], object]] = [partial(store.index.compact, space) for space in store.vectors.spaces()]
    steps.append(partial(store.remains.clear_terms, merges=True))
    for number, step in enumerate(steps):
        step()
        if progress is not None:
            progress(number + 1, len(steps) + 1)
    settled = store.upkeep.shrink()
    if progress is not None:
        progress(len(steps) + 1, len(steps) + 1)
    return Vacuumed(bytes_before=before, bytes_after=store.upkeep.size(), settled=settled)
