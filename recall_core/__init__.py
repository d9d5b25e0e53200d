"""Long-term memory for AI agents in one SQLite file: keyword and vector search, fused, in Chinese and English."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from . import errors
from .errors import RecallError

if TYPE_CHECKING:
    from .aio import AsyncMemory
    from .embedding import DEFAULT, CrossEncoder, OnnxEmbedder
    from .filters import And, Condition, Filter, Not, Or
    from .memory import Memory
    from .models import Chunk, Chunker, Embedder, Hit, Hits, NewRecord, Record, Reranker, Stats, Why
    from .scopes import escape_segment
    from .session import Session
    from .settings import Settings
    from .view import View

__version__ = "0.3.0"

__all__ = [
    "DEFAULT",
    "And",
    "AsyncMemory",
    "Chunk",
    "Chunker",
    "Condition",
    "CrossEncoder",
    "Embedder",
    "Filter",
    "Hit",
    "Hits",
    "Memory",
    "NewRecord",
    "Not",
    "OnnxEmbedder",
    "Or",
    "RecallError",
    "Record",
    "Reranker",
    "Session",
    "Settings",
    "Stats",
    "View",
    "Why",
    "errors",
    "escape_segment",
]

# Where each lazily imported name lives: importing the package costs a few milliseconds until one of them is used.
_HOMES = {
    "AsyncMemory": "aio",
    "CrossEncoder": "embedding",
    "DEFAULT": "embedding",
    "OnnxEmbedder": "embedding",
    "And": "filters",
    "Condition": "filters",
    "Filter": "filters",
    "Not": "filters",
    "Or": "filters",
    "Memory": "memory",
    "Chunk": "models",
    "Chunker": "models",
    "Embedder": "models",
    "Hit": "models",
    "Hits": "models",
    "NewRecord": "models",
    "Record": "models",
    "Reranker": "models",
    "Stats": "models",
    "Why": "models",
    "escape_segment": "scopes",
    "Session": "session",
    "Settings": "settings",
    "View": "view",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
