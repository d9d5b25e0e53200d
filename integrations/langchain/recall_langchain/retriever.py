"""What a memory holds on a query, as a retriever for chains and graphs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from pydantic import ConfigDict, PrivateAttr

from recall_core import And, derive_name
from recall_core.models import Mode
from recall_core.opening import Closing, Opened

from .documents import DocumentFilter, find_where, join_where, to_document, to_scored_document


class RecallRetriever(Closing, BaseRetriever):
    """Searches everything in a scope of a memory: what was added, said, stored as items or as documents.

    `memory` is the path of a file, made if missing, an open `Memory` or a `View`. The other fields hold for each call
    that does not say otherwise: `retriever.invoke(query, k=3, scope="user/42")`. A `scope` of a call lies below that of
    the retriever. `filter` is a mapping, a `recall_core.Filter`, or a function of a document. A document's metadata has
    its `relevance_score` from 0 to 1, and under `recall` what the memory knows of it, unless `add_score` is False.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memory: Any
    k: int = 4
    scope: str = ""
    mode: Mode = "hybrid"
    filter: Any = None
    min_relevance: float | None = None
    session: str | None = None
    roles: Sequence[str] | None = None
    diversify: float | None = None
    recency: float | None = None
    add_score: bool = True

    _opened: Opened = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Open the memory."""
        super().model_post_init(context)
        self._opened = Opened(self.memory, self.scope)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,
        k: int | None = None,
        scope: str = "",
        mode: Mode | None = None,
        filter: DocumentFilter | None = None,
        min_relevance: float | None = None,
        **arguments: Any,
    ) -> list[Document]:
        view = self._opened.view.scoped(scope) if scope else self._opened.view
        given = self.filter if filter is None else filter
        fields = {name: getattr(self, name) for name in ("session", "roles", "diversify", "recency")} | arguments
        if fields["session"] is not None:
            fields["session"] = derive_name(fields["session"])
        hits = view.search(
            query,
            limit=self.k if k is None else k,
            mode=self.mode if mode is None else mode,
            where=join_where(find_where(view, given, And([])), fields.pop("where", None)),
            min_relevance=self.min_relevance if min_relevance is None else min_relevance,
            **fields,
        )
        return [to_scored_document(hit) if self.add_score else to_document(hit.record) for hit in hits]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun | None = None, **arguments: Any
    ) -> list[Document]:
        return await asyncio.to_thread(self._get_relevant_documents, query, **arguments)

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        return LangSmithRetrieverParams(ls_retriever_name="recall", ls_vector_store_provider="recall_core")
