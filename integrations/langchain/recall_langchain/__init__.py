"""Long-term memory for LangChain and LangGraph: adapters that translate between them and recall_core."""

from __future__ import annotations

from .embeddings import RecallEmbeddings

__version__ = "0.4.0"

__all__ = ["RecallEmbeddings"]
