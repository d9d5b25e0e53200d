"""Long-term memory for CrewAI: adapters that translate between it and recall_core."""

from __future__ import annotations

from .factory import RecallEmbeddingFunction, disable, enable
from .memory import RecallMemory, recall_memory
from .storage import RecallStorage

__version__ = "0.5.0"

__all__ = ["RecallEmbeddingFunction", "RecallMemory", "RecallStorage", "disable", "enable", "recall_memory"]
