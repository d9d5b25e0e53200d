"""Recalling within a budget of time: by words, which is fast, then by meaning too if the model is at hand and time is
left.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from recall_core import Condition, Filter, Not, View
from recall_core.models import Mode

from .config import Config
from .files import OpenFile

BUDGET = 0.3  # seconds that the host's turn waits at most
SLACK = 0.04  # for handing over
MOST_UNWANTED = 500  # records that a search leaves out

_pool = ThreadPoolExecutor(4, thread_name_prefix="recall")


def _begin_child() -> None:
    global _pool  # a forked child has the pool of its parent, and none of its threads
    _pool = ThreadPoolExecutor(4, thread_name_prefix="recall")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A block of recalled memories, how it was found ("hybrid", "keyword", "late": not in time) and in what time."""

    block: str
    mode: str
    seconds: float

    @property
    def count(self) -> int:
        """The number of memories in the block."""
        return sum(line.startswith("[") for line in self.block.splitlines())


class Recaller:
    """Recalls from one file; one search at a time by meaning, so that slow ones don't pile up."""

    def __init__(self, file: OpenFile, view: View, config: Config) -> None:
        self._file = file
        self._view = view
        self._config = config
        self._slow: Future[str] | None = None

    def recall(self, query: str, unwanted: Collection[str] = ()) -> Recalled:
        """Return what is remembered on a query, but the records with `unwanted` ids, as a block; "" if nothing is."""
        began = time.monotonic()
        where = Not(Condition("@id", "in", tuple(unwanted)[-MOST_UNWANTED:])) if unwanted else None
        words = _wait(_pool.submit(self._search, query, "keyword", where), self._left(began))
        block, mode = words or "", "late" if words is None else "keyword"
        if self._file.warm and words is not None and (self._slow is None or self._slow.done()):
            self._slow = _pool.submit(self._search, query, "hybrid", where)
            both = _wait(self._slow, self._left(began))
            if both is not None:
                block, mode = both, "hybrid"
        return Recalled(block, mode, time.monotonic() - began)

    def _left(self, began: float) -> float:
        return max(0.0, BUDGET - SLACK - (time.monotonic() - began))

    def _search(self, query: str, mode: Mode, where: Filter | None) -> str:
        config = self._config
        return self._view.context(
            query, nothing="", mode=mode, where=where, limit=config.limit, max_chars=config.max_chars,
            min_relevance=config.min_relevance,
        )  # fmt: skip


def _wait(future: Future[str], seconds: float) -> str | None:
    """Return the result of a search, None if it is not there in time. Raises what the search raised."""
    try:
        return future.result(seconds)
    except TimeoutError:
        future.cancel()
        return None
