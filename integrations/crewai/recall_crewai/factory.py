"""A memory file behind `Crew(memory=True)`, and behind each `Memory()` that is made without a storage."""

from __future__ import annotations

from typing import Any

from chromadb.api.types import EmbeddingFunction
from crewai.memory.storage.factory import set_memory_storage_factory
from crewai.rag.embeddings.providers.custom.embedding_callable import CustomEmbeddingFunction

from recall_core.embedding import load_bundled
from recall_core.opening import Source

from .storage import RecallStorage

SPEC = "lancedb"  # what CrewAI calls its default storage


class RecallEmbeddingFunction(CustomEmbeddingFunction, EmbeddingFunction[Any]):
    """The model that ships with recall_core, in the shape that CrewAI's `embedder=` wants: local, without a key."""

    def __init__(self) -> None:
        """Load nothing yet."""

    def __call__(self, input: Any) -> Any:
        """Return a vector for each text."""
        return list(load_bundled().embed_passages(list(input)))


def enable(source: Source, *, scope: str = "crewai", space: str = "crewai") -> dict[str, Any]:
    """Let `Crew(memory=True)` and every `Memory()` made from now on store in a memory, and return an embedder for them.

    CrewAI's factory says where memories are stored, not how they are embedded: without the embedder that this returns,
    `Crew(memory=True, embedder=enable("memory.db"))`, or one of your own, CrewAI asks OpenAI. The arguments are those
    of `RecallStorage`. Call `disable` to have CrewAI's own storage again.
    """
    storage = RecallStorage(source, scope=scope, space=space)
    set_memory_storage_factory(lambda spec: storage if spec == SPEC else None)
    return {"provider": "custom", "config": {"embedding_callable": RecallEmbeddingFunction}}


def disable() -> None:
    """Let CrewAI store memories made from now on where it does by default."""
    set_memory_storage_factory(None)
