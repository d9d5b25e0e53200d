"""What there is in a store: the part of CrewAI's storage protocol that only reads, and needs no vector."""

from __future__ import annotations

from crewai.flow.flow_context import current_flow_method_name
from crewai.memory.types import MemoryRecord, ScopeInfo

from recall_core import Record, View
from recall_core.opening import Closing

from .paths import to_path, to_scope
from .records import to_memory_record

MOST = 10_000  # counts of one kind
# The step of CrewAI's deep recall that asks for scopes, and then searches the first 20 of them and not the one that it
# was given. Where there is none, it searches that one as a whole.
CHOOSING = "filter_and_chunk"


class Listing(Closing):
    """Lists the records, scopes and categories of a store. A path stands for itself and what lies below it."""

    @property
    def view(self) -> View:
        """The view of the memory that the records lie in; CrewAI's "/" is its scope."""
        return self._opened.view

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return the record with this id."""
        return next(iter(self._present(self.view.get(record_id))), None)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return records, the last made first."""
        scope = to_scope(scope_prefix)
        return self._present(self.view.records(scope=scope, limit=limit, newest_first="created_at", offset=offset))

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return what is known of a scope and what lies below it."""
        path = to_path(to_scope(scope))
        categories = self.list_categories(path)
        period = self.view.period(to_scope(scope))
        first, last = (None, None) if period is None else (time.replace(tzinfo=None) for time in period)
        return ScopeInfo(
            path=path,
            record_count=self.count(path),
            categories=sorted(categories),
            oldest_record=first,
            newest_record=last,
            child_scopes=self.list_scopes(path),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the paths right below one that hold records, or whose subtree does."""
        if current_flow_method_name.get() == CHOOSING:
            return []
        scope = to_scope(parent)
        depth = len(scope.split("/")) if scope else 0
        parts = [found.split("/") for found in self.view.scopes(scope) if found != scope]
        return sorted({to_path("/".join(part[: depth + 1])) for part in parts})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return how many records have which category."""
        counts = self.view.breakdown(scope=to_scope(scope_prefix), limit=MOST).tags
        return {count.name: count.records for count in counts if count.name is not None}

    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records."""
        return self.view.count(to_scope(scope_prefix))

    def _present(self, records: list[Record]) -> list[MemoryRecord]:
        """Return records as CrewAI has them, with the vectors that it brought."""
        space = self._space
        vectors = {} if space is None else self.view.vectors([record.id for record in records], space=space)
        return [to_memory_record(record, self.view.scope, vectors.get(record.id)) for record in records]

    _space: str | None
