"""A vector store in a memory file: vectors of any LangChain model, or of the memory's own, and keywords beside them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from recall_core import And, Condition, Hits, NewRecord
from recall_core.filters import holds_always
from recall_core.models import Mode
from recall_core.opening import Closing, Opened, Source

from .documents import DocumentFilter, find_where, join_where, parse_filter, record_id, to_document, to_record
from .embeddings import name_space

BATCH = 256  # texts that are embedded and stored together

Scored = list[tuple[Document, float]]


class RecallVectorStore(Closing, VectorStore):
    """Documents in a scope of a memory, found by their vectors and by keywords.

    `memory` is the path of a file, made if missing, an open `Memory` or a `View`. `embedding` is any model of
    LangChain; its vectors have a space of their own, named after it or `space`. Without one the memory's own model
    embeds. The same file opened with its own model embeds the documents once more, so that its other searches find
    them, too.

    `mode` is "hybrid", "semantic" (vectors alone) or "keyword". Scores are relevances from 0 to 1. A `filter` is a
    mapping, such as `{"lang": "zh", "stars": {"$gte": 3}}`, a `recall_core.Filter`, or a function of a document; it
    holds before the best are taken. Other keyword arguments of a search are those of `recall_core.View.search`.
    """

    def __init__(
        self,
        memory: Source,
        embedding: Embeddings | None = None,
        *,
        scope: str = "documents",
        space: str | None = None,
        mode: Mode = "hybrid",
    ) -> None:
        self._opened = Opened(memory, scope) if embedding is None else Opened(memory, scope, embedder=None)
        self._embedding = embedding
        self._space = name_space(embedding, "langchain") if space is None and embedding is not None else space
        self._mode = mode

    @property
    def embeddings(self) -> Embeddings | None:
        """The model of LangChain that was given, None if the memory's own embeds."""
        return self._embedding

    # Writing

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store texts and return their ids; what has the id of a stored document takes its place.

        Raises ValueError if there are not as many metadatas or ids as texts.
        """
        listed, chosen = _check_lengths(texts, metadatas, ids)
        for start in range(0, len(listed), BATCH):
            part = slice(start, start + BATCH)
            vectors = None if self._embedding is None else self._embedding.embed_documents(listed[part])
            self._view.add_many(self._make(listed[part], metadatas and metadatas[part], chosen[part], vectors))
        return chosen

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store texts and return their ids, as `add_texts` does."""
        listed, chosen = _check_lengths(texts, metadatas, ids)
        for start in range(0, len(listed), BATCH):
            part = slice(start, start + BATCH)
            vectors = None if self._embedding is None else await self._embedding.aembed_documents(listed[part])
            records = self._make(listed[part], metadatas and metadatas[part], chosen[part], vectors)
            await asyncio.to_thread(self._view.add_many, records)
        return chosen

    def delete(
        self, ids: Sequence[str] | None = None, *, filter: DocumentFilter | None = None, **kwargs: Any
    ) -> bool | None:
        """Delete documents for good: those with these ids, those that a filter admits, or all if neither is given.

        Raises ValueError for a filter that has no condition in it.
        """
        if filter is not None and not callable(filter) and holds_always(parse_filter(filter)):
            raise ValueError("the filter has no condition in it; delete() without a filter deletes all documents")
        if ids is not None and filter is None:
            self._view.delete([record_id(self._view, id) for id in ids], hard=True)
            return True
        where = find_where(self._view, filter)
        if ids is not None:
            where = And([where, Condition("@id", "in", [record_id(self._view, id) for id in ids])])
        self._view.forget(where=where, hard=True)
        return True

    async def adelete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents as `delete` does."""
        return await asyncio.to_thread(self.delete, ids, **kwargs)

    # Reading

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, in their order; ids that are not there are passed over."""
        return [to_document(record) for record in self._view.get([record_id(self._view, id) for id in ids])]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return documents as `get_by_ids` does."""
        return await asyncio.to_thread(self.get_by_ids, ids)

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the documents that answer a query best."""
        return _documents(self._search(query, k, self._embed(query), **kwargs))

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the documents that answer a query best."""
        return _documents(await self._asearch(query, k, **kwargs))

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Scored:
        """Return the documents that answer a query best, each with its relevance from 0 to 1."""
        return _scored(self._search(query, k, self._embed(query), **kwargs))

    async def asimilarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Scored:
        """Return the documents that answer a query best, each with its relevance from 0 to 1."""
        return _scored(await self._asearch(query, k, **kwargs))

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the documents nearest to a vector."""
        return _documents(self._nearest(embedding, k, **kwargs))

    async def asimilarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the documents nearest to a vector."""
        return _documents(await asyncio.to_thread(self._nearest, embedding, k, **kwargs))

    def similarity_search_by_vector_with_score(self, embedding: list[float], k: int = 4, **kwargs: Any) -> Scored:
        """Return the documents nearest to a vector, each with its relevance from 0 to 1."""
        return _scored(self._nearest(embedding, k, **kwargs))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return, of the `fetch_k` best documents, `k` that differ: `lambda_mult` from 0, most diverse, to 1."""
        among = _diversely(fetch_k, lambda_mult)
        return _documents(self._search(query, k, self._embed(query), **among, **kwargs))

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return, of the `fetch_k` best documents, `k` that differ: `lambda_mult` from 0, most diverse, to 1."""
        return _documents(await self._asearch(query, k, **_diversely(fetch_k, lambda_mult), **kwargs))

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return, of the `fetch_k` documents nearest to a vector, `k` that differ."""
        return _documents(self._nearest(embedding, k, **_diversely(fetch_k, lambda_mult), **kwargs))

    async def amax_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return, of the `fetch_k` documents nearest to a vector, `k` that differ."""
        among = _diversely(fetch_k, lambda_mult)
        return _documents(await asyncio.to_thread(self._nearest, embedding, k, **among, **kwargs))

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        memory: Source = ":memory:",
        **kwargs: Any,
    ) -> Self:
        """Return a store in `memory` with these texts; further arguments are those of the class."""
        store = cls(memory, embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        memory: Source = ":memory:",
        **kwargs: Any,
    ) -> Self:
        """Return a store in `memory` with these texts; further arguments are those of the class."""
        store = await asyncio.to_thread(cls, memory, embedding, **kwargs)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    def _similarity_search_with_relevance_scores(self, query: str, k: int = 4, **kwargs: Any) -> Scored:
        return self.similarity_search_with_score(query, k, **kwargs)

    async def _asimilarity_search_with_relevance_scores(self, query: str, k: int = 4, **kwargs: Any) -> Scored:
        return await self.asimilarity_search_with_score(query, k, **kwargs)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return float  # scores are relevances already

    def _embed(self, query: str) -> list[float] | None:
        embedding = self._embedding if query.strip() else None
        return None if embedding is None else embedding.embed_query(query)

    async def _asearch(self, query: str, k: int, **arguments: Any) -> Hits:
        embedding = self._embedding if query.strip() else None
        vector = None if embedding is None else await embedding.aembed_query(query)
        return await asyncio.to_thread(self._search, query, k, vector, **arguments)

    def _search(
        self, query: str, k: int, vector: list[float] | None, filter: DocumentFilter | None = None, **arguments: Any
    ) -> Hits:
        where = join_where(find_where(self._view, filter), arguments.pop("where", None))
        arguments = {"mode": self._mode, **arguments, "where": where}
        return self._view.search(query, limit=k, vector=vector, space=self._space, **arguments)

    def _nearest(self, vector: list[float], k: int, **arguments: Any) -> Hits:
        return self._search("", k, vector, mode="semantic", fusion="plain", **arguments)

    def _make(
        self,
        texts: Sequence[str],
        metadatas: Sequence[dict[str, Any]] | None,
        ids: Sequence[str],
        vectors: Sequence[list[float]] | None,
    ) -> list[NewRecord]:
        return [
            to_record(
                self._view,
                id,
                text,
                metadatas[place] if metadatas else None,
                vectors[place] if vectors else None,
                self._space,
            )
            for place, (id, text) in enumerate(zip(ids, texts, strict=True))
        ]


def _check_lengths(
    texts: Iterable[str], metadatas: Sequence[dict[str, Any]] | None, ids: Sequence[str | None] | None
) -> tuple[list[str], list[str]]:
    """Return texts as a list, and an id for each."""
    listed = list(texts)
    for name, given in (("metadatas", metadatas), ("ids", ids)):
        if given and len(given) != len(listed):
            raise ValueError(f"there are {len(listed)} texts and {len(given)} {name}; give one for each text")
    chosen = cast("Sequence[str | None]", ids or [None] * len(listed))
    return listed, [str(uuid.uuid4()) if id is None else id for id in chosen]


def _diversely(fetch_k: int, lambda_mult: float) -> dict[str, Any]:
    return {"candidates": max(1, fetch_k), "diversify": 1.0 - lambda_mult}


def _documents(hits: Hits) -> list[Document]:
    return [to_document(hit.record) for hit in hits]


def _scored(hits: Hits) -> Scored:
    return [(to_document(hit.record), hit.relevance) for hit in hits]
