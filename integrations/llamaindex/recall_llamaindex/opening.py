"""What every class here is given first: a path, an open memory, or a view of one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from recall_core import And, Condition, Filter, Memory, Record, View

Source = str | Path | Memory | View

PAGE = 1000  # records read at once


class Opened:
    """A scope of a memory: of one that was opened for it and is closed with it, or of one that stays its owner's."""

    def __init__(self, source: Source, scope: str, **arguments: Any) -> None:
        if not isinstance(source, str | os.PathLike | View):
            raise ValueError(f"the first argument is the path of a memory, an open Memory or a View, not {source!r}")
        self._own = None if isinstance(source, View) else Memory.open(source, **arguments)
        whole = source if isinstance(source, View) else self._own
        assert whole is not None
        try:
            self.view = whole.scoped(scope) if scope else whole
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the memory if it was opened here."""
        if self._own is not None:
            self._own.close()


def path_of(source: Source) -> str | None:
    """Return the path to keep as a field, None for what is open already."""
    return None if isinstance(source, View) else os.fspath(source)


def join_filters(*parts: Filter | None) -> Filter | None:
    """Return the filter that holds where all of these do."""
    given = [part for part in parts if part is not None]
    return given[0] if len(given) == 1 else And(given) if given else None


def among(field: str, values: Sequence[str] | None) -> Filter | None:
    """Return the filter for a field that has one of these values; None restricts nothing."""
    return None if values is None else Condition(field, "in", list(values))


def read_all(view: View, where: Filter | None, session: str | None = None) -> Iterator[Record]:
    """Yield all records that a filter admits, in the order of their ids."""
    after: str | None = None
    while page := view.records(where=where, session=session, limit=PAGE, after=after):
        yield from page
        after = page[-1].id
