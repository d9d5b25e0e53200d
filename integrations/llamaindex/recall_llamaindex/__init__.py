"""Long-term memory for LlamaIndex: adapters that translate between it and recall_core."""

from __future__ import annotations

from .chat_store import RecallChatStore
from .embedding import RecallEmbedding
from .memory_block import RecallMemoryBlock
from .retriever import RecallRetriever
from .vector_store import RecallVectorStore

__version__ = "0.5.0"

__all__ = ["RecallChatStore", "RecallEmbedding", "RecallMemoryBlock", "RecallRetriever", "RecallVectorStore"]
