"""The embedding models of recall_core as LangChain embeddings, and where vectors of others' models lie in a memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from recall_core import DEFAULT, Embedder
from recall_core.embedding import Default, resolve_embedder

if TYPE_CHECKING:
    from recall_core.models import Vectors

MODEL_NAMES = ("model", "model_name", "model_id", "deployment")  # how classes of LangChain call it
MOST = 200  # characters of a model's name, which may be a path


class RecallEmbeddings(Embeddings):
    """A model of recall_core: the one in its package by default, any that `Memory.open` takes as `embedder`.

    The methods for asyncio run in worker threads. Raises ModelNotFoundError if there is no such model.
    """

    def __init__(self, model: Embedder | Default | str | Path = DEFAULT) -> None:
        embedder = resolve_embedder(model)
        if embedder is None:
            raise ValueError("model is None; leave it out for the model in the package, or name another")
        self._embedder = embedder

    def __repr__(self) -> str:
        return f"RecallEmbeddings({self._embedder.model_id!r})"

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text."""
        return _as_lists(self._embedder.embed_passages(texts)) if texts else []

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return _as_lists(self._embedder.embed_queries([text]))[0]


def name_space(embeddings: Embeddings, prefix: str) -> str:
    """Return the name of the vector space of a model of LangChain: vectors of two models are never compared."""
    names = [getattr(embeddings, name, None) for name in MODEL_NAMES]
    model = next((name for name in names if isinstance(name, str) and name.isprintable()), "")
    return f"{prefix}:{type(embeddings).__name__}:{model[-MOST:]}".removesuffix(":")


def _as_lists(vectors: Vectors) -> list[list[float]]:
    return [[float(number) for number in vector] for vector in vectors]
