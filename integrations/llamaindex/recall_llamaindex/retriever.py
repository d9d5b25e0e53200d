"""A retriever of LlamaIndex straight on a memory, without an index and without a model of LlamaIndex."""

from __future__ import annotations

import asyncio
from typing import Any, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from recall_core import DEFAULT, derive_name
from recall_core.models import SearchArguments
from recall_core.opening import Closing, Opened, Source

from .filters import to_filter
from .nodes import to_scored


class RecallRetriever(Closing, BaseRetriever):
    """Finds memories as nodes, scored by their relevance from 0 to 1: by keywords and vectors unless `mode` says else.

    The first argument is the path of a memory, which is opened with `embedder` (the bundled model by default), or an
    open `Memory` or `View`, which stays open when the retriever is closed. `filters` are LlamaIndex's; all else that
    `Memory.search` takes may be given as well: `scope`, `mode`, `session`, `tags`, `since`, `recency`,
    `min_relevance`, `diversify`…

    What was no node comes as a TextNode with the record's id; when it was said and by whom stands in its metadata.
    """

    def __init__(
        self,
        path: Source,
        *,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        embedder: Any = DEFAULT,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
        **search: Unpack[SearchArguments],
    ) -> None:
        unknown = sorted(search.keys() - SearchArguments.__annotations__.keys())
        if unknown:
            raise TypeError(f"RecallRetriever takes no {unknown[0]!r}; see the arguments of Memory.search")
        if filters is not None and search.get("where") is not None:
            raise ValueError("filters and where were both given; give one of them")
        self._search = search
        self._search.setdefault("limit", similarity_top_k)
        if (session := search.get("session")) is not None:
            self._search["session"] = derive_name(session)
        if filters is not None:
            self._search["where"] = to_filter(filters)
        super().__init__(callback_manager=callback_manager, verbose=verbose)
        self._opened = Opened(path, embedder=embedder)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return to_scored(self._view.search(query_bundle.query_str, **self._search))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
