"""What a class of an adapter is given first: the path of a memory, an open one, or a view of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .errors import InvalidInputError
from .filters import Filter
from .memory import Memory
from .models import Record
from .view import View

Source = str | Path | Memory | View

PAGE = 1000  # records read at once


class Opened:
    """A scope of a memory: of one that was opened here and is closed with it, or of one that stays its owner's.

    `arguments` are those of `Memory.open`. Raises InvalidInputError for anything that is no source.
    """

    def __init__(self, source: Source, scope: str = "", **arguments: Any) -> None:
        find_path(source)
        whole = source if isinstance(source, View) else Memory.open(source, **arguments)
        self._own = None if whole is source else whole
        try:
            self.view = whole.scoped(scope) if scope else whole
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the memory if it was opened here."""
        if isinstance(self._own, Memory):
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


def find_path(source: Source) -> str | None:
    """Return the path that a source is, None for a memory that is open already.

    Raises InvalidInputError for anything else.
    """
    if not isinstance(source, str | os.PathLike | View):
        raise InvalidInputError(f"the memory is the path of a file, an open Memory or a View, not {source!r}")
    return None if isinstance(source, View) else os.fspath(source)


def read_all(view: View, where: Filter | None = None, session: str | None = None) -> Iterator[Record]:
    """Yield all records that a filter admits, in the order of their ids."""
    after: str | None = None
    while page := view.records(where=where, session=session, limit=PAGE, after=after):
        yield from page
        after = page[-1].id
