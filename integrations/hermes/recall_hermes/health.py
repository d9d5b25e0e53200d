"""What failed: told to the log, to the user once, and to other processes in a file, since the host passes it over."""

from __future__ import annotations

import functools
import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar, cast

from .config import write_atomically
from .names import failures_file

logger = logging.getLogger("recall_hermes")

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed last, when (seconds since 1970), where, and how many failures there have been."""

    at: float
    where: str
    error: str
    count: int


class Health:
    """Notes what fails in one provider."""

    def __init__(self) -> None:
        self.home: Path | None = None
        self.warn: Callable[[str], object] | None = None
        self.last: Failure | None = None
        self._warned = False

    def note(self, where: str, error: BaseException) -> None:
        """Note that something failed."""
        what = f"{type(error).__name__}: {error}"
        before = self.last or (None if self.home is None else read_failure(self.home))
        self.last = Failure(time.time(), where, what, 1 if before is None else before.count + 1)
        logger.warning("recall: %s failed: %s", where, what)
        if self.home is not None:
            try:
                write_atomically(failures_file(self.home), json.dumps(asdict(self.last), ensure_ascii=False))
            except OSError as also:  # the disk may be what fails
                logger.warning("recall: the failure can't be noted: %s", also)
        if self.warn is not None and not self._warned:
            self._warned = True
            try:
                self.warn(f"Memory (recall): {where} failed: {what}. `hermes recall status` says more.")
            except Exception as also:
                logger.warning("recall: the host can't be warned: %s", also)


def read_failure(home: Path) -> Failure | None:
    """Return what failed last in a home, in whichever process; None if nothing did."""
    try:
        return Failure(**json.loads(failures_file(home).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


class Watched(Protocol):
    """What has a health."""

    _health: Health


def watched(otherwise: Callable[[], T]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a method note what it raises, and return something else: an agent goes on without its memory."""

    def wrap(method: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(method)
        def call(*arguments: P.args, **named: P.kwargs) -> T:
            try:
                return method(*arguments, **named)
            except Exception as error:
                cast(Watched, arguments[0])._health.note(method.__name__, error)
                return otherwise()

        return call

    return wrap
