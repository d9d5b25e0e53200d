"""A memory file as the storage of CrewAI's `Memory`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Self

from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord

from recall_core import And, Condition, Filter, Hit
from recall_core.opening import Opened, Source, find_path, read_all

from .listing import Listing
from .paths import to_scope
from .records import find_vector, find_where, is_nested, to_new_record, to_revision
from .reporting import report_failures, reporting

MOST = 10_000  # results of a search


class RecallStorage(Listing):
    """CrewAI's `StorageBackend` in a scope of a memory: `Memory(storage=RecallStorage("memory.db"), embedder=...)`.

    `source` is the path of a file, made if missing, an open `Memory` or a `View`, which stays open when the storage is
    closed. CrewAI's "/" is `scope`, which bounds all that is read, changed and deleted. `space` names the vectors that
    CrewAI's embedder makes: another embedder needs another one. With `space=None` the memory embeds by itself, with
    `embedder`, and vectors that CrewAI brings are used to ask, and not stored.

    `redact` takes keys and passwords out of what is stored. All methods may be called from any thread; several
    processes may have the file open.
    """

    def __init__(
        self,
        source: Source,
        *,
        scope: str = "crewai",
        space: str | None = "crewai",
        embedder: Any = None,
        redact: bool | None = None,
    ) -> None:
        self.path = find_path(source)
        self._arguments = {"scope": scope, "space": space, "embedder": embedder, "redact": redact}
        self._space, self.redact = space, redact
        self._opened = Opened(source, scope, embedder=embedder)
        self.reported: Exception | None = None  # the last failure that was logged
        report_failures()

    def __repr__(self) -> str:
        return f"RecallStorage({self.path or self.view!r}, scope={self._arguments['scope']!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self  # a copied crew has the same memory

    def __reduce__(self) -> tuple[Any, ...]:
        if self._opened.file is None:
            raise TypeError("a RecallStorage of an open memory or of RAM can't be pickled; make it with a path")
        return partial(RecallStorage, **self._arguments), (self._opened.file,)

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records, in the place of those with the same ids: all of them, or none.

        Raises EmbeddingDimensionMismatchError (a ValueError) if a vector has another length than those stored.
        """
        given = {record.id: record for record in records}
        with reporting(self, len(given)):
            self._check_dimensions(list(given.values()))
            self._put(given)

    def update(self, record: MemoryRecord) -> None:
        """Change the record with this id, or store it. Its source and its privacy stay, unless new ones are given: when
        CrewAI joins records, it forgets both.
        """
        before = self.get_record(record.id)
        if before is None:
            self.save([record])
            return
        kept = {"source": record.source or before.source, "private": record.private or before.private}
        with reporting(self, 1):
            self._check_dimensions([record])
            self._put({record.id: record.model_copy(update=kept)})

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records nearest to a vector and their similarities from 0 to 1, the highest first. All filters
        hold before the best are taken.
        """
        if not any(query_embedding) or limit < 1:
            return []
        self._check_length(len(query_embedding), self.view.dimensions(self._space))
        where = self._select(scope_prefix, find_where(categories or None, metadata=metadata_filter), metadata_filter)
        hits = self.view.search(
            "", mode="semantic", scope=to_scope(scope_prefix), limit=min(limit, MOST), where=where,
            fusion="default" if self._space is None else "plain", vector=query_embedding, space=self._space,
        )  # fmt: skip
        found = list(zip(self._present([hit.record for hit in hits]), map(self._score, hits), strict=True))
        found.sort(key=lambda pair: -pair[1])
        return [pair for pair in found if pair[1] >= min_score]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records for which all that is given holds, for good; return how many. Nothing given means all of
        the storage's scope; an empty list means none.
        """
        where = find_where(categories, record_ids, older_than, metadata_filter)
        chosen = self._select(scope_prefix, where, metadata_filter)
        return self.view.forget(scope=to_scope(scope_prefix), where=chosen, everything=True, hard=True).count

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all records of a path, by default of the storage's scope, for good."""
        self.delete(scope_prefix)

    def touch_records(self, record_ids: list[str]) -> None:
        """Note that records were accessed now."""
        self.view.touch(record_ids)

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Do what `save` does, in a worker thread."""
        await asyncio.to_thread(self.save, records)

    async def asearch(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Do what `search` does, in a worker thread."""
        return await asyncio.to_thread(
            self.search, query_embedding, scope_prefix, categories, metadata_filter, limit, min_score
        )

    async def adelete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Do what `delete` does, in a worker thread."""
        return await asyncio.to_thread(self.delete, scope_prefix, categories, record_ids, older_than, metadata_filter)

    def _put(self, given: Mapping[str, MemoryRecord]) -> None:
        """Store records by their ids. What others have written into those that are known, and CrewAI does not know,
        stays.
        """
        known = {record.id for record in self.view.get(given)}
        new = [one for id, one in given.items() if id not in known]
        self.view.change(
            [to_new_record(one, self._space, redact=self.redact, on_duplicate="replace") for one in new],
            update={id: to_revision(given[id], self._space, redact=self.redact) for id in known},
        )

    def _select(self, path: str | None, filters: Sequence[Filter], metadata: dict[str, Any] | None) -> Filter | None:
        """Return the filter that a host's arguments mean; lists and mappings in metadata are compared here."""
        nested = {key: value for key, value in (metadata or {}).items() if is_nested(value)}
        if nested:
            records = read_all(self.view.scoped(to_scope(path)) if to_scope(path) else self.view, And(filters))
            found = self._present(list(records))
            same = [one.id for one in found if all(one.metadata.get(key) == nested[key] for key in nested)]
            filters = [*filters, Condition("@id", "in", same)]
        return And(filters) if filters else None

    def _score(self, hit: Hit) -> float:
        """Return a similarity from 0 to 1. Cosines of the memory's own model lie close together: they are spread."""
        spread = hit.why.meaning if self._space is None else None
        return min(1.0, max(0.0, (hit.why.similarity or 0.0) if spread is None else spread))

    def _check_dimensions(self, records: Sequence[MemoryRecord]) -> None:
        if self._space is None:
            return
        known = self.view.dimensions(self._space)
        for record in records:
            if vector := find_vector(record):
                self._check_length(len(vector), known)
                known = len(vector)

    def _check_length(self, length: int, known: int | None) -> None:
        if known is not None and length != known:
            raise EmbeddingDimensionMismatchError(known, length)
