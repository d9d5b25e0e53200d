"""A vector store of LlamaIndex in a memory file: its own vectors, beside the keyword index of recall_core."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)

from recall_core import Condition, Filter, Hits, View, derive_name
from recall_core.errors import VectorError
from recall_core.opening import Closing, Opened, Source, find_path, read_all

from .arguments import check_names
from .filters import among, join_filters, restricts, to_filter
from .nodes import NODE, record_id, to_nodes, to_record

logger = logging.getLogger("recall_llamaindex")

NODES = Condition("@kind", "eq", NODE)
MMR_THRESHOLD = 0.5


class RecallVectorStore(Closing, BasePydanticVectorStore):
    """The nodes of one scope of a memory file, with the vectors of one embedding model.

    The first argument is the path of the file, made if missing, or an open `Memory` or `View`, which stays open when
    the store is closed. Stores of different `scope` don't see each other's nodes, but one sees those of scopes below
    its own. `space` names the vectors: two embedding models need two spaces.

    Similarities are cosines where vectors alone decide (mode default and mmr, alpha 1); elsewhere they are relevances
    from 0 to 1. All methods may be called from any thread; the async ones do their work in worker threads.
    """

    stores_text: bool = True
    is_embedding_query: bool = True
    flat_metadata: bool = False
    path: str | None = None
    scope: str = "llamaindex"
    space: str = "llamaindex"

    _opened: Opened = PrivateAttr()

    def __init__(self, path: Source, *, scope: str = "llamaindex", space: str = "llamaindex", **fields: Any) -> None:
        check_names(type(self), fields, type(self).model_fields)
        super().__init__(**{**fields, "path": find_path(path), "scope": scope, "space": space})
        self._opened = Opened(path, scope, embedder=None)

    def __getstate__(self) -> dict[str, Any]:
        self._opened.__reduce__()  # raises where LlamaIndex would leave it out with a warning
        return super().__getstate__()

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex serialises the store by."""
        return "RecallVectorStore"

    @classmethod
    def from_params(cls, path: Source, *, scope: str = "llamaindex", space: str = "llamaindex") -> RecallVectorStore:
        """Return the store; the same as the constructor."""
        return cls(path, scope=scope, space=space)

    @property
    def client(self) -> View:
        """The view of the memory that the nodes lie in."""
        return self._opened.view

    def add(self, nodes: Sequence[BaseNode], **_kwargs: Any) -> list[str]:
        """Store nodes, in the place of those with the same ids, and return their ids.

        Raises ValueError for a node without an embedding, or with one of another size than those stored.
        """
        with self._naming_the_space():
            self.client.add_many([to_record(node, self.client.scope, self.space) for node in nodes])
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **_kwargs: Any) -> None:
        """Delete all nodes of a document."""
        self._forget(join_filters(NODES, Condition("@source", "eq", derive_name(ref_doc_id))))

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **_kwargs: Any
    ) -> None:
        """Delete the nodes with these ids that pass the filters. Raises ValueError if neither is given: see `clear`."""
        if node_ids is None and not restricts(filters):
            raise ValueError("delete_nodes needs node_ids or filters; clear() deletes all nodes")
        self._forget(self._select(node_ids, filters))

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Return the nodes with these ids (None: all) that pass the filters, in the order they were added."""
        records = read_all(self.client, self._select(node_ids, filters))
        return to_nodes(sorted(records, key=lambda record: record.created_at), self.client.scope)

    def clear(self) -> None:
        """Delete all nodes of the store."""
        self._forget(NODES)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the nodes that answer a query best. Raises ValueError for a mode that is not supported."""
        if query.mode not in _MODES:
            known = ", ".join(mode.value for mode in _MODES)
            raise ValueError(f"query mode {query.mode.value!r} is not supported; use one of {known}")
        # LlamaIndex passes an empty list of node_ids for an index that keeps no list of its own.
        where = join_filters(self._select(query.node_ids or None, query.filters), _find_documents(query.doc_ids))
        with self._naming_the_space():
            return _MODES[query.mode](self, query, where, kwargs)

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Do what `add` does."""
        return await asyncio.to_thread(self.add, nodes, **kwargs)

    async def adelete(self, ref_doc_id: str, **kwargs: Any) -> None:
        """Do what `delete` does."""
        await asyncio.to_thread(self.delete, ref_doc_id, **kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **kwargs: Any
    ) -> None:
        """Do what `delete_nodes` does."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters, **kwargs)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Do what `get_nodes` does."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def aclear(self) -> None:
        """Do what `clear` does."""
        await asyncio.to_thread(self.clear)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Do what `query` does."""
        return await asyncio.to_thread(self.query, query, **kwargs)

    def _forget(self, where: Filter | None) -> None:
        self.client.forget(where=where, hard=True)  # LlamaIndex has no trash

    @contextmanager
    def _naming_the_space(self) -> Iterator[None]:
        try:
            yield
        except VectorError as error:
            raise ValueError(
                f"{error}; the space {self.space!r} holds the vectors of one embedding model, "
                "give the store another space= for another model"
            ) from error

    def _select(self, node_ids: list[str] | None, filters: MetadataFilters | None) -> Filter | None:
        """Return the filter for these nodes, which may be called by their own ids, or by those of their records."""
        own = None if node_ids is None else [record_id(self.client.scope, node_id) for node_id in node_ids]
        ids = None if own is None else [*own, *(node_ids or ())]
        return join_filters(NODES, among("@id", ids), to_filter(filters))

    def _search_vectors(
        self, query: VectorStoreQuery, where: Filter | None, diversify: float | None = None
    ) -> VectorStoreQueryResult:
        hits = self.client.search(
            query.query_str or "",
            mode="semantic", fusion="plain", limit=query.similarity_top_k, where=where, diversify=diversify,
            vector=_get_vector(query), space=self.space,
        )  # fmt: skip
        if hits.mode != "semantic":
            logger.warning("%s: no vectors could be searched: %s", self.path, hits.degraded)
            return self._present(hits, [])
        return self._present(hits, [hit.why.similarity or 0.0 for hit in hits])

    def _search_by_vectors(self, query: VectorStoreQuery, where: Filter | None, _: Any) -> VectorStoreQueryResult:
        return self._search_vectors(query, where)

    def _search_diverse(
        self, query: VectorStoreQuery, where: Filter | None, kwargs: dict[str, Any]
    ) -> VectorStoreQueryResult:
        given = kwargs.get("mmr_threshold")
        threshold = query.mmr_threshold if given is None else given
        threshold = MMR_THRESHOLD if threshold is None else threshold
        if not 0 <= threshold <= 1:
            raise ValueError(f"mmr_threshold is a number from 0 to 1, where 1 is relevance alone, not {threshold!r}")
        return self._search_vectors(query, where, 1.0 - threshold)

    def _search_keywords(self, query: VectorStoreQuery, where: Filter | None, limit: int) -> VectorStoreQueryResult:
        hits = self.client.search(_get_text(query), mode="keyword", fusion="plain", limit=limit, where=where)
        return self._present(hits, [hit.relevance for hit in hits])

    def _search_text(self, query: VectorStoreQuery, where: Filter | None, _: Any) -> VectorStoreQueryResult:
        return self._search_keywords(query, where, query.similarity_top_k)

    def _search_sparse(self, query: VectorStoreQuery, where: Filter | None, _: Any) -> VectorStoreQueryResult:
        return self._search_keywords(query, where, _first(query.sparse_top_k, query.similarity_top_k))

    def _search_hybrid(self, query: VectorStoreQuery, where: Filter | None, _: Any) -> VectorStoreQueryResult:
        limit = _first(query.hybrid_top_k, query.similarity_top_k)
        if query.alpha == 0:
            return self._search_keywords(query, where, min(limit, _first(query.sparse_top_k, limit)))
        if query.alpha == 1:
            return self._search_vectors(query, where)
        if query.sparse_top_k is not None:
            where = join_filters(where, self._find_candidates(query, where, query.sparse_top_k))
        hits = self.client.search(
            _get_text(query), limit=limit, where=where, alpha=query.alpha, vector=_get_vector(query), space=self.space
        )
        if hits.mode != "hybrid" and len(hits):
            logger.warning("%s: %s", self.path, hits.degraded)
        return self._present(hits, [hit.relevance for hit in hits])

    def _present(self, hits: Hits, similarities: list[float]) -> VectorStoreQueryResult:
        nodes = to_nodes((hit.record for hit in hits[: len(similarities)]), self.client.scope)
        return VectorStoreQueryResult(nodes=nodes, similarities=similarities, ids=[node.node_id for node in nodes])

    def _find_candidates(self, query: VectorStoreQuery, where: Filter | None, sparse_top_k: int) -> Filter | None:
        """Return the filter for what the legs bring: so many nodes by keywords, and similarity_top_k by vectors."""
        legs = (
            self.client.search(_get_text(query), mode="keyword", fusion="plain", limit=sparse_top_k, where=where),
            self.client.search(
                "", mode="semantic", fusion="plain", limit=query.similarity_top_k, where=where,
                vector=_get_vector(query), space=self.space,
            ),
        )  # fmt: skip
        return among("@id", [hit.record.id for hits in legs for hit in hits])


_Search = Callable[[RecallVectorStore, VectorStoreQuery, Filter | None, dict[str, Any]], VectorStoreQueryResult]
_MODES: dict[VectorStoreQueryMode, _Search] = {
    VectorStoreQueryMode.DEFAULT: RecallVectorStore._search_by_vectors,
    VectorStoreQueryMode.TEXT_SEARCH: RecallVectorStore._search_text,
    VectorStoreQueryMode.SPARSE: RecallVectorStore._search_sparse,
    VectorStoreQueryMode.HYBRID: RecallVectorStore._search_hybrid,
    VectorStoreQueryMode.SEMANTIC_HYBRID: RecallVectorStore._search_hybrid,
    VectorStoreQueryMode.MMR: RecallVectorStore._search_diverse,
}


def _find_documents(doc_ids: list[str] | None) -> Filter | None:
    """Return the filter for the nodes of some documents; an empty list admits none."""
    return among("@source", None if doc_ids is None else [derive_name(doc_id) for doc_id in doc_ids])


def _get_vector(query: VectorStoreQuery) -> list[float]:
    if query.query_embedding is None:
        raise ValueError(f"mode {query.mode.value} needs query_embedding")
    return query.query_embedding


def _get_text(query: VectorStoreQuery) -> str:
    if query.query_str is None:
        raise ValueError(f"mode {query.mode.value} needs query_str")
    return query.query_str


def _first(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given
