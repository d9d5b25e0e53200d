"""What all that a memory offers in one scope is based on: the scope that it can't leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, Self

from .engine import Engine
from .filters import Filter, Selection, make_selection
from .models import Json
from .scopes import check_scope, join_scopes
from .times import Time, from_micros

Where = Mapping[str, Json] | Filter


class Scoped:
    """One scope of an open memory, and what lies below it."""

    def __init__(self, engine: Engine, base: str) -> None:
        self._engine = engine
        self._base = check_scope(base)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # who copies what has a memory goes on with the same one

    def __reduce__(self) -> NoReturn:
        raise TypeError("an open memory can't be pickled; open the file again where it is needed")

    @property
    def scope(self) -> str:
        """The scope that this view can't leave, "" for a whole memory."""
        return self._base

    def _select(
        self,
        scope: str = "",
        where: Where | None = None,
        session: str | None = None,
        *,
        roles: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        ignores_expiry: bool = False,
    ) -> Selection:
        """Return which records a read or write may see, in `scope` below the own one."""
        selection = make_selection(
            now=from_micros(self._engine.now()), scope=join_scopes(self._base, scope), where=where, session=session,
            roles=roles, tags=tags, since=since, until=until,
        )  # fmt: skip
        return replace(selection, ignores_expiry=ignores_expiry)
