"""What adapters ask of a memory: a host's changes as one, and where its records lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from . import drafting
from .engine import change_records
from .errors import InvalidInputError
from .filters import Filter, make_selection
from .models import Json, NewRecord, Record
from .scopes import join_scopes
from .times import from_micros

if TYPE_CHECKING:
    from .engine import Engine


class Hosting:
    """The part of a view that serves the stores of agent frameworks."""

    _engine: Engine
    _base: str

    def change(
        self,
        add: Iterable[NewRecord | Mapping[str, Json]] = (),
        delete: str | Iterable[str] = (),
        *,
        if_taken: Literal["raise", "skip"] = "raise",
    ) -> list[Record]:
        """Delete records for good and store others, all in one transaction: all of it happens, or nothing. Return what
        was stored, in its order.

        With `if_taken="skip"` what has the id of a stored record is passed over and not returned, so that the same call
        can be made again. Ids to delete that are not in this scope are passed over.

        Raises InvalidInputError, RecordExistsError if an id is taken (unless on_duplicate is "replace"), StoreError.
        """
        if if_taken not in ("raise", "skip"):
            raise InvalidInputError(f"if_taken is {if_taken!r}; choose raise or skip")
        ids = drafting.check_ids(delete)
        return change_records(self._engine, self._base, add, ids, skips_taken=if_taken == "skip")

    def scopes(self, scope: str = "", where: Mapping[str, Json] | Filter | None = None) -> list[str]:
        """Return the scopes, `scope` and below, that hold records, sorted, as paths below the view's own."""
        selection = make_selection(
            now=from_micros(self._engine.now()), scope=join_scopes(self._base, scope), where=where
        )
        found = self._engine.store.records.scopes(selection)
        return [path[len(self._base) :].removeprefix("/") for path in found]
