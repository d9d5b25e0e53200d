"""A LangGraph store in a memory file: sync and async in one object, found by meaning and by keyword."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    validate_op_namespace,
)

from recall_core import And, Condition, Filter, Hits, Not, Record
from recall_core.models import Mode
from recall_core.opening import Closing, Opened, Source

from .embeddings import name_space
from .items import (
    ALL,
    Namespace,
    check_namespace,
    find_texts,
    find_where,
    matches,
    record_id,
    to_item,
    to_namespace,
    to_record,
    to_scope,
    to_search_item,
)

MOST_HITS = 10_000  # of a query; those behind come in the order of their last change

logger = logging.getLogger("recall_core")

Vector = list[float]


@dataclass(frozen=True, slots=True)
class Batch:
    """The operations of a batch, and the vectors that they need: those of each query, and of each text of each put."""

    ops: Sequence[Op]
    puts: Mapping[tuple[Namespace, str], PutOp]  # the last one for each key
    texts: Mapping[tuple[Namespace, str], list[str]]
    queries: Sequence[str]
    query_vectors: dict[str, Vector] = field(default_factory=dict)
    text_vectors: list[Vector] = field(default_factory=list)

    @property
    def all_texts(self) -> list[str]:
        """The texts of all puts, in order."""
        return [text for texts in self.texts.values() for text in texts]


class RecallStore(Closing, BaseStore):
    """A long-term store of agents and graphs, in a scope of a memory; namespaces are scopes below it.

    `memory` is the path of a file, made if missing, an open `Memory` or a `View`. Searches go by the memory's own model
    and by keywords; `index` names a model of LangChain instead, whose vectors have a space of their own, and the paths
    of a value that are found. Items that a query does not find follow those that it does, with no score. Scores are
    relevances from 0 to 1. `ttl` is as in LangGraph; an expired item is not seen again, whether swept or not.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Source,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        scope: str = "store",
    ) -> None:
        embed = None if index is None else index.get("embed")
        self._embeddings = None if embed is None else ensure_embeddings(embed)
        self._opened = Opened(memory, scope) if embed is None else Opened(memory, scope, embedder=None)
        self._space = None if self._embeddings is None else name_space(self._embeddings, "langgraph")
        self._fields = list((index or {}).get("fields") or ["$"])
        self.ttl_config = ttl
        self._swept = time.monotonic()
        self.degraded: str | None = None
        """What the last search could not use the vectors for, None if it could."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer and do all operations: reads see the state before, writes happen all or not at all."""
        batch = self._plan(ops)
        if self._embeddings is not None:
            if batch.all_texts:
                batch.text_vectors.extend(self._embeddings.embed_documents(batch.all_texts))
            for query in batch.queries:
                try:
                    batch.query_vectors[query] = self._embeddings.embed_query(query)
                except Exception as error:
                    self._note(error)
        return self._run(batch)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer and do all operations as `batch` does, in a worker thread."""
        batch = self._plan(ops)
        if self._embeddings is not None:
            if batch.all_texts:
                batch.text_vectors.extend(await self._embeddings.aembed_documents(batch.all_texts))
            for query in batch.queries:
                try:
                    batch.query_vectors[query] = await self._embeddings.aembed_query(query)
                except Exception as error:
                    self._note(error)
        return await asyncio.to_thread(self._run, batch)

    def sweep_ttl(self) -> int:
        """Delete what has expired for good and return how many items that were; none of them is seen before, either."""
        expired = Condition("@expires_at", "lte", datetime.now(UTC))
        return self._view.forget(where=And([ALL, expired]), hard=True).count

    def _sweep(self) -> None:
        """Sweep with a write if the last time is as long ago as the configuration says."""
        minutes = (self.ttl_config or {}).get("sweep_interval_minutes")
        if minutes is not None and time.monotonic() - self._swept >= minutes * 60:
            self._swept = time.monotonic()
            self.sweep_ttl()

    def _plan(self, ops: Iterable[Op]) -> Batch:
        listed = list(ops)
        for op in listed:
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                check_namespace(op.namespace)
        puts = {(op.namespace, op.key): op for op in listed if isinstance(op, PutOp)}
        texts = {name: find_texts(op, self._fields) for name, op in puts.items()}
        queries = dict.fromkeys(op.query for op in listed if isinstance(op, SearchOp) and op.query and op.query.strip())
        return Batch(listed, puts, texts, list(queries))

    def _run(self, batch: Batch) -> list[Result]:
        results = [self._read(op, batch) for op in batch.ops]
        if batch.puts:
            vectors = iter(batch.text_vectors)
            add = []
            for name, op in batch.puts.items():
                own = [next(vectors) for _ in batch.texts[name]] if batch.text_vectors else None
                if op.value is not None:
                    add.append(to_record(self._view, op, batch.texts[name], own, self._space))
            # What is replaced keeps the time that it was made at; so it is not deleted first.
            gone = [record_id(self._view, *name) for name, op in batch.puts.items() if op.value is None]
            self._view.change(add, gone)
            self._sweep()
        return results

    def _read(self, op: Op, batch: Batch) -> Result:
        match op:
            case GetOp():
                return self._get(op)
            case SearchOp():
                return self._search(op, batch.query_vectors.get(op.query or ""))
            case ListNamespacesOp():
                return self._list(op)
        return None

    def _get(self, op: GetOp) -> Item | None:
        records = self._view.get(record_id(self._view, op.namespace, op.key))
        self._refresh(records, op.refresh_ttl)
        return to_item(self._view, records[0]) if records else None

    def _search(self, op: SearchOp, vector: Vector | None) -> list[SearchItem]:
        where, scope = find_where(op.filter), to_scope(op.namespace_prefix)
        stop = op.offset + op.limit
        hits = self._find(op.query, scope, where, min(stop, MOST_HITS), vector) if op.query else ()
        found = [(hit.record, hit.relevance) for hit in hits][op.offset : stop]
        missing = op.limit - len(found)
        rest: list[Record] = []
        if missing > 0:
            others = And([where, Not(Condition("@id", "in", [hit.record.id for hit in hits]))]) if hits else where
            skipped = max(0, op.offset - len(hits))
            rest = self._view.records(scope=scope, where=others, limit=missing, newest_first=True, offset=skipped)
        self._refresh([record for record, _ in found] + rest, op.refresh_ttl)
        items = [to_search_item(self._view, record, score) for record, score in found]
        return items + [to_search_item(self._view, record, None) for record in rest]

    def _find(self, query: str, scope: str, where: Filter, limit: int, vector: Vector | None) -> Hits:
        mode: Mode = "keyword" if self._embeddings is not None and vector is None else "hybrid"
        hits = self._view.search(
            query, scope=scope, where=where, limit=limit, mode=mode, vector=vector, space=self._space
        )
        if mode == "hybrid":
            self.degraded = hits.degraded
        return hits

    def _note(self, error: Exception) -> None:
        self.degraded = f"found by keywords only: the embeddings failed: {type(error).__name__}: {error}"
        logger.warning("%s", self.degraded)

    def _refresh(self, records: Sequence[Record], wanted: bool) -> None:
        """Let items live as long again as they were given to live."""
        for record in records:
            if wanted and record.payload["ttl"] is not None:
                self._view.touch(record.id, ttl=record.payload["ttl"] * 60)

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        namespaces = map(to_namespace, self._view.scopes(where=ALL))
        wanted = [name for name in namespaces if all(matches(name, found) for found in op.match_conditions or ())]
        cut = sorted({name[: op.max_depth] for name in wanted})
        return cut[op.offset : op.offset + op.limit]
