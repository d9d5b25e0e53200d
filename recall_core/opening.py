"""What a class of an adapter is given first: the path of a memory, an open one, or a view of one."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .errors import InvalidInputError
from .filters import Filter
from .forks import Lock
from .memory import Memory
from .models import Record
from .store import MEMORY_PATH
from .view import View

Source = str | Path | Memory | View

PAGE = 1000  # records read at once


class Opened:
    """A scope of a memory: of one that was opened here and is closed with it, or of one that stays its owner's.

    What was opened here is opened anew in a forked child, when that first asks for the view, and for each copy of this,
    pickled ones included. What is kept only in RAM is its parent's; a copy of it, or of what has an owner, shares it.
    `arguments` are those of `Memory.open`. Raises InvalidInputError for anything that is no source.
    """

    def __init__(self, source: Source, scope: str = "", **arguments: Any) -> None:
        find_path(source)
        self._scope, self._arguments = scope, arguments
        self._own: Memory | None = None
        self._closed = False
        self._opening = Lock()
        if isinstance(source, View):
            self._view = source.scoped(scope) if scope else source
        else:
            self._open(source)

    @property
    def view(self) -> View:
        """What is to be used; ask for it each time. Raises StoreError if a forked child can't open the file."""
        if self._is_inherited():
            with self._opening:
                if self.file is not None and self._is_inherited():
                    self._open(self.file)
        return self._view

    @property
    def file(self) -> str | None:
        """The file that was opened here, None for a memory that lies in RAM or has an owner."""
        path = None if self._own is None else self._own._engine.store.path
        return None if path == MEMORY_PATH else path

    def close(self) -> None:
        """Close the memory if it was opened here."""
        self._closed = True
        if self._own is not None:
            self._own.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if self.file is not None and not self._closed:
            return type(self)(self.file, self._scope, **self._arguments)
        shared = type(self).__new__(type(self))
        shared.__dict__.update(self.__dict__, _own=None)
        return shared

    def __reduce__(self) -> tuple[Any, ...]:
        if self.file is None:
            raise TypeError("only what was given the path of a file can be pickled; this has an open memory")
        return functools.partial(type(self), **self._arguments), (self.file, self._scope)

    def _is_inherited(self) -> bool:
        """Tell whether a file is to be opened anew, since this is a child of the process that opened it."""
        return not self._closed and self.file is not None and self._process != os.getpid()

    def _open(self, path: str | Path) -> None:
        own = Memory.open(path, **self._arguments)
        try:
            self._view = own.scoped(self._scope) if self._scope else own
        except BaseException:
            own.close()
            raise
        self._own, self._process = own, os.getpid()


class Closing:
    """Gives a class `close` and makes it a context manager; `_opened` is what it closes.

    A copy has what the original was given, such as a model, and closes what it itself has opened.
    """

    _opened: Opened

    @property
    def _view(self) -> View:
        return self._opened.view

    def close(self) -> None:
        """Close the file if it was opened here; a memory that was given stays open."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        twin = copy.copy(self)
        twin._opened = copy.deepcopy(self._opened, memo)
        return twin


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
