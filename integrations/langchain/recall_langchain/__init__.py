"""Long-term memory for LangChain and LangGraph: adapters that translate between them and recall_core."""

from __future__ import annotations

from .embeddings import RecallEmbeddings
from .history import RecallChatMessageHistory
from .middleware import RecallMiddleware
from .retriever import RecallRetriever
from .store import RecallStore
from .tools import recall_tools
from .vectorstore import RecallVectorStore

__version__ = "0.5.0"

__all__ = [
    "RecallChatMessageHistory",
    "RecallEmbeddings",
    "RecallMiddleware",
    "RecallRetriever",
    "RecallStore",
    "RecallVectorStore",
    "recall_tools",
]
