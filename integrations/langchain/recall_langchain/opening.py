"""What every class here is given first: a path, an open memory, or a view of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from recall_core import Filter, Memory, Record, View

Source = str | Path | Memory | View

PAGE = 1000  # records read at once


class Opened:
    """A scope of a memory: of one that was opened here and is closed with it, or of one that stays its owner's.

    `path` and `scope` are as they were given; `arguments` are those of `Memory.open`.
    """

    def __init__(self, source: Source, scope: str = "", **arguments: Any) -> None:
        if not isinstance(source, str | os.PathLike | View):
            raise ValueError(f"the memory is a path, an open Memory or a View, not {source!r}")
        self._own = None if isinstance(source, View) else Memory.open(source, **arguments)
        whole = source if isinstance(source, View) else self._own
        assert whole is not None
        try:
            self.view: View = whole.scoped(scope) if scope else whole
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the memory if it was opened here."""
        if self._own is not None:
            self._own.close()


class Closing:
    """Gives a class `close` and makes it a context manager; `_opened` is what it closes."""

    _opened: Opened

    def close(self) -> None:
        """Close the file if it was opened here; a memory that was given stays open."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_all(view: View, where: Filter) -> Iterator[Record]:
    """Yield all records that a filter admits, in the order of their ids."""
    after: str | None = None
    while page := view.records(where=where, limit=PAGE, after=after):
        yield from page
        after = page[-1].id
