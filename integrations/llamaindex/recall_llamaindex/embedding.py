"""An embedding model of recall_core as one of LlamaIndex: local, without a network or a key."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from recall_core import DEFAULT, Embedder
from recall_core.embedding import resolve_embedder

from .arguments import check_names


class RecallEmbedding(BaseEmbedding):
    """The model that ships with recall_core, or the one that `model` names: a folder, a preset, or any `Embedder`.

    Queries and passages get the prefixes that the model was trained with. A text over the model's window is looked at
    in several windows. Don't give it an `embeddings_cache`: that keeps one vector for a text, be it query or passage.
    """

    model: str | None = None

    _embedder: Embedder = PrivateAttr()

    def __init__(self, model: str | Path | Embedder | None = None, **fields: Any) -> None:
        check_names(type(self), fields, type(self).model_fields)
        named = str(model) if isinstance(model, str | Path) else None
        embedder = resolve_embedder(DEFAULT if model is None else model)
        assert embedder is not None
        known = fields.get("model_name", embedder.model_id)
        if known != embedder.model_id:  # a copy of what was made with an object, or with another version's model
            raise ValueError(f"the model is {embedder.model_id!r}, not {known!r}; name another with model=")
        fields.setdefault("embed_batch_size", 128)
        super().__init__(**{**fields, "model": named, "model_name": embedder.model_id})
        self._embedder = embedder

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex serialises the model by."""
        return "RecallEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._embedder.embed_queries([query])[0].tolist()
        return vector

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed_passages(texts).tolist()
        return vectors

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)
