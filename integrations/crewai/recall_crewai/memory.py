"""CrewAI's `Memory` on a memory file: asks both words and vectors, and no language model unless it is given one."""

from __future__ import annotations

import logging
import os
import time
import weakref
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Literal, Self

from crewai.events.event_bus import crewai_event_bus
from crewai.events.types.memory_events import (
    MemoryQueryCompletedEvent,
    MemoryQueryFailedEvent,
    MemoryQueryStartedEvent,
)
from crewai.memory.analyze import analyze_query
from crewai.memory.types import MemoryMatch, MemoryRecord, compute_composite_score
from crewai.memory.unified_memory import Memory
from crewai.memory.utils import join_scope_paths, sanitize_scope_name
from pydantic import Field

from recall_core import DEFAULT, And, Filter, Settings, strip_context
from recall_core.errors import RecallError, StoreError
from recall_core.opening import Source

from .analysis import NO_ANALYSIS, extract_memories
from .matches import RecallMatch, add_note, to_match
from .paths import is_within, name_segment, to_scope
from .records import find_where, to_memory_record, to_new_record, visible_to
from .reporting import report, reporting
from .storage import MOST, RecallStorage

QUERIES = 3  # that a language model may make of a long one
SAVING = {"_save_pool", "_pending_saves", "_pending_lock", "_reset_lock"}  # what CrewAI saves in the background with
SOURCE = "unified_memory"  # what CrewAI's events of its memory say

logger = logging.getLogger("recall_crewai")


class RecallMemory(Memory):
    """A `Memory` for `Crew(memory=...)` and `Agent(memory=...)`; `recall_memory` makes one.

    Recalling searches the scope and all that lies below it by words and vectors; a match's score is its relevance from
    0 to 1, and what is less relevant than `min_relevance` is left out. Give `recency_weight` or `importance_weight` to
    have CrewAI's weighted scores instead. Nothing asks a language model unless `llm` is given: it then extracts,
    places and joins memories as CrewAI does, and reads long queries.

    `reset_all`, and so `Crew.reset_memories`, stays within `root_scope` and the storage's scope. Copies are the same
    memory.
    """

    reports_itself: ClassVar[bool] = True

    storage: Any
    llm: Any = NO_ANALYSIS
    semantic_weight: float = 1.0
    recency_weight: float = 0.0
    importance_weight: float = 0.0
    min_relevance: float = Field(
        default=Settings().context_relevance, ge=0.0, le=1.0, description="What is less relevant is not recalled."
    )

    def model_post_init(self, context: Any, /) -> None:
        """Open the storage if it is a path, and embed with its model."""
        if not isinstance(self.storage, RecallStorage):
            self.storage = RecallStorage(self.storage, space=None, embedder=DEFAULT)
        if self.embedder is None:
            self.embedder = partial(embed, self.storage)
        super().model_post_init(context)
        _alive[id(self)] = self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return this memory, or with an `update`, such as {"read_only": True}, another one on the same storage."""
        if not update:
            return self
        return type(self)(**{**{name: getattr(self, name) for name in type(self).model_fields}, **update})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def extract_memories(self, content: str) -> list[str]:
        """Return what is to be remembered of an agent's work; stores nothing."""
        return super().extract_memories(content) if self._asks_model else extract_memories(content)

    def remember_many(
        self,
        contents: list[str],
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        """Store texts in the background; a role keeps the letters of its language in the path of its memories."""
        if agent_role and root_scope and root_scope.endswith(f"/agent/{sanitize_scope_name(agent_role)}"):
            root_scope = f"{root_scope.rpartition('/')[0]}/{name_segment(agent_role)}"
        return super().remember_many(
            contents, scope, categories, metadata, importance, source, private, agent_role, root_scope
        )

    def recall(
        self,
        query: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        limit: int = 10,
        depth: Literal["shallow", "deep"] = "deep",
        source: str | None = None,
        include_private: bool = False,
    ) -> list[MemoryMatch]:
        """Return what is remembered on a query in a scope and below, the best first.

        Private memories are those of `source` alone, unless `include_private`; others never take their place. `depth`
        only says whether the language model, if there is one, may read a long query.
        """
        self.drain_writes()
        path = join_scope_paths(self.root_scope, scope) if self.root_scope else scope
        about: dict[str, Any] = {"query": query, "limit": limit, "score_threshold": None, "source_type": SOURCE}
        start = time.perf_counter()
        try:
            crewai_event_bus.emit(self, MemoryQueryStartedEvent(**about))
            where = find_where(categories or None) + ([] if include_private else [visible_to(source)])
            queries, since = self._ask(query, path, depth)
            found = self._search(queries, path, where, since, limit)
            add_note(found, query)
            if found and not self.read_only:
                self._touch(found)
        except Exception as error:
            logger.error("the memory %r could not be asked: %s", self.storage, error)
            crewai_event_bus.emit(self, MemoryQueryFailedEvent(**about, error=str(error)))
            raise
        taken = (time.perf_counter() - start) * 1000
        crewai_event_bus.emit(self, MemoryQueryCompletedEvent(**about, results=found, query_time_ms=taken))
        return list(found)

    def update(
        self,
        record_id: str,
        content: str | None = None,
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
    ) -> MemoryRecord:
        """Change a record below `root_scope`, and return it; its source and privacy stay.

        Raises ValueError if there is none with this id.
        """
        before = self._storage.get_record(record_id)
        if before is None or not is_within(before.scope, self.root_scope):
            raise ValueError(f"Record not found: {record_id}")
        path = scope if scope is None or not self.root_scope else join_scope_paths(self.root_scope, scope)
        return super().update(record_id, content, path, categories, metadata, importance)

    def reset_all(self) -> None:
        """Delete all memories below `root_scope`, as `reset` does: those of other crews stay."""
        self.reset()

    def _begin_child(self) -> None:
        """In a forked child, save with a thread of its own: it has none of its parent's, whose saves never end here."""
        for name in SAVING & self.__private_attributes__.keys():
            setattr(self, name, self.__private_attributes__[name].get_default())

    @property
    def _asks_model(self) -> bool:
        return self.llm is not NO_ANALYSIS

    def _encode_batch(
        self,
        contents: list[str],
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        """Store texts; CrewAI calls this for all that is remembered, and has the events about it."""
        texts = [text for text in map(strip_context, contents) if text.strip()]
        with reporting(self.storage, len(texts)):
            if self._asks_model:
                return super()._encode_batch(
                    texts, scope, categories, metadata, importance, source, private, root_scope
                )
            path = join_scope_paths(root_scope, scope)
            weight = self.default_importance if importance is None else importance
            return self._store(
                MemoryRecord(
                    content=text, scope=path, categories=categories or [], metadata=metadata or {}, importance=weight,
                    source=source, private=private,
                )
                for text in texts
            )  # fmt: skip

    def _store(self, records: Any) -> list[MemoryRecord]:
        """Store records. One that never can be stored keeps no other out; what it raised is raised at the end."""
        stored: list[MemoryRecord] = []
        refused: RecallError | None = None
        for record in records:
            try:
                stored.append(self._store_once(record))
            except StoreError:
                raise
            except RecallError as error:
                report(self.storage, 1, error)
                refused = error
        if refused is not None:
            raise refused
        return stored

    def _store_once(self, record: MemoryRecord) -> MemoryRecord:
        """Store a record; if it says what a stored one of the same scope, source and privacy says, it is that one."""
        view, redact = self.storage.view, self.storage.redact
        new = to_new_record(record, None, redact=redact, on_duplicate="touch")
        (found,) = view.change([new])
        if (found.kind, found.source) != (new.kind, new.source):
            (found,) = view.change([to_new_record(record, None, redact=redact)])
        return to_memory_record(found, view.scope)

    def _ask(self, query: str, path: str | None, depth: str) -> tuple[list[str], datetime | None]:
        """Return the queries to search for, and since when: the one given, or what a language model makes of a long
        one.
        """
        if not self._asks_model or depth != "deep" or len(query) < self.query_analysis_threshold:
            return [query], None
        analysis = analyze_query(query, self._storage.list_scopes(path or "/"), None, self._llm)
        queries = [asked for asked in analysis.recall_queries if asked.strip()][:QUERIES]
        return queries or [query], _read_time(analysis.time_filter)

    def _search(
        self, queries: list[str], path: str | None, where: list[Filter], since: datetime | None, limit: int
    ) -> list[RecallMatch]:
        view = self.storage.view
        weighted = self.recency_weight > 0 or self.importance_weight > 0
        best: dict[str, RecallMatch] = {}
        for query in queries:
            hits = view.search(
                query, scope=to_scope(path), where=And(where), limit=min(limit * (1 + weighted), MOST),
                since=since, min_relevance=self.min_relevance,
            )  # fmt: skip
            for hit in hits:
                match = to_match(hit, view.scope)
                if weighted:
                    match.score = compute_composite_score(match.record, match.score, self._config)[0]
                if hit.record.id not in best or best[hit.record.id].score < match.score:
                    best[hit.record.id] = match
        return sorted(best.values(), key=lambda match: -match.score)[:limit]

    def _touch(self, found: list[RecallMatch]) -> None:
        try:
            self.storage.touch_records([match.record.id for match in found])
        except Exception as error:  # what was found is found
            logger.warning("that memories were recalled could not be noted: %s", error)


_alive: weakref.WeakValueDictionary[int, RecallMemory] = weakref.WeakValueDictionary()


def _begin_child() -> None:
    for memory in list(_alive.values()):
        memory._begin_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


def _read_time(said: str | None) -> datetime | None:
    """Return the time that a language model said, None if it is none."""
    try:
        return datetime.fromisoformat(said) if said else None
    except ValueError:
        return None


def embed(storage: RecallStorage, texts: list[str]) -> list[list[float]]:
    """Return the vectors that a storage's own model gives texts."""
    return [vector.tolist() for vector in storage.view.embed(texts)]


def recall_memory(
    source: Source,
    *,
    scope: str = "crewai",
    llm: Any = None,
    embedder: Any = DEFAULT,
    redact: bool = True,
    **fields: Any,
) -> RecallMemory:
    """Return the memory for a crew or an agent: `Crew(agents=..., tasks=..., memory=recall_memory("memory.db"))`.

    `source` is the path of a file, made if missing, an open `recall_core.Memory` or a `View`. CrewAI's "/" is `scope`,
    which bounds all that is read, changed and deleted: give each user or tenant one of their own. `embedder` is what
    `recall_core.Memory.open` takes, by default the model that ships with it. `llm` opts into CrewAI's analysis.
    `redact` takes keys and passwords out of what is stored. `fields` are those of `RecallMemory`, such as `root_scope`,
    `read_only` and `min_relevance`.
    """
    storage = RecallStorage(source, scope=scope, space=None, embedder=embedder, redact=redact)
    return RecallMemory(storage=storage, llm=NO_ANALYSIS if llm is None else llm, **fields)
