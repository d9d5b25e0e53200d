"""What a forked child must not inherit as it is: locks that threads of its parent held, and that nobody gives back."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class Lock:
    """A lock that is free in a forked child. What it guards may then be half changed: for caches and counters only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()  # a copy, here or in another process, is a lock of its own

    def renew(self) -> None:
        """Forget who holds it."""
        self._lock = threading.Lock()


class lazy(Generic[Value]):  # noqa: N801  # a decorator, as functools.cached_property
    """A property that is computed once an object. Unlike functools.cached_property before Python 3.12 it holds no lock
    of the whole class meanwhile: two threads that come first at once both compute, and the first result serves.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> Self | Value:
        if instance is None:
            return self
        value: Value = instance.__dict__.setdefault(self._compute.__name__, self._compute(instance))
        return value


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _renew_locks() -> None:
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
