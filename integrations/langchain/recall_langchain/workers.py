"""The threads that a memory works in while an agent waits, or no longer waits, for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

THREADS = 4  # more only get into the way of the event loop

P = ParamSpec("P")
Result = TypeVar("Result")


class Workers:
    """A few threads, begun when there is work. A forked child has none of its parent's, so it gets its own."""

    def __init__(self) -> None:
        self._begin()

    def __reduce__(self) -> tuple[type[Workers], tuple[()]]:
        return Workers, ()  # a copy has threads of its own

    def submit(self, work: Callable[P, Result], *arguments: P.args, **named: P.kwargs) -> Future[Result]:
        """Do something in one of the threads. Raises RuntimeError once they are closed."""
        if self._process != os.getpid():
            self._begin()
        return self._pool.submit(work, *arguments, **named)

    def close(self) -> None:
        """Take no more work, and wait for what is being done."""
        self._pool.shutdown(wait=self._process == os.getpid())

    def _begin(self) -> None:
        self._process, self._pool = os.getpid(), ThreadPoolExecutor(THREADS, thread_name_prefix="recall")
