"""Long-term memory for AI agents in one SQLite file: keyword and vector search, fused, in Chinese and English."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from . import errors
from .errors import RecallError

if TYPE_CHECKING:
    from .aio import AsyncMemory
    from .context import strip_context
    from .counts import Breakdown, Count, DayCount, SessionCount
    from .damage import Damage, Repaired
    from .doctor import Checkup
    from .drafting import derive_name
    from .embedding import CrossEncoder, HttpEmbedder, OnnxEmbedder, model_path
    from .filters import And, Condition, Filter, Not, Or
    from .ids import derive_id
    from .insight.values import Disagreement, Likeness, Merge, SimilarGroup, Topic
    from .memory import Memory
    from .models import (
        DEFAULT,
        Chunk,
        Chunker,
        Deleted,
        Embedder,
        Forgotten,
        Hit,
        Hits,
        Link,
        NewRecord,
        Record,
        Reembedded,
        Reranker,
        Stats,
        Why,
    )
    from .redaction import redact_text
    from .reports import BackedUp, CleanedUp, Reindexed, Vacuumed
    from .scopes import escape_segment, format_scope, unescape_segment
    from .session import Session
    from .settings import CHAT_HISTORY, Settings
    from .transfer.report import Exported, Imported
    from .view import View

__version__ = "0.5.0"

__all__ = [
    "CHAT_HISTORY",
    "DEFAULT",
    "And",
    "AsyncMemory",
    "BackedUp",
    "Breakdown",
    "Checkup",
    "Chunk",
    "Chunker",
    "CleanedUp",
    "Condition",
    "Count",
    "CrossEncoder",
    "Damage",
    "DayCount",
    "Deleted",
    "Disagreement",
    "Embedder",
    "Exported",
    "Filter",
    "Forgotten",
    "Hit",
    "Hits",
    "HttpEmbedder",
    "Imported",
    "Likeness",
    "Link",
    "Memory",
    "Merge",
    "NewRecord",
    "Not",
    "OnnxEmbedder",
    "Or",
    "RecallError",
    "Record",
    "Reembedded",
    "Reindexed",
    "Repaired",
    "Reranker",
    "Session",
    "SessionCount",
    "Settings",
    "SimilarGroup",
    "Stats",
    "Topic",
    "Vacuumed",
    "View",
    "Why",
    "derive_id",
    "derive_name",
    "errors",
    "escape_segment",
    "format_scope",
    "model_path",
    "redact_text",
    "strip_context",
    "unescape_segment",
]

# Where each lazily imported name lives: importing the package costs a few milliseconds until one of them is used.
_HOMES = {
    "AsyncMemory": "aio",
    "CrossEncoder": "embedding",
    "DEFAULT": "models",
    "HttpEmbedder": "embedding",
    "OnnxEmbedder": "embedding",
    "model_path": "embedding",
    "Damage": "damage",
    "Repaired": "damage",
    "Breakdown": "counts",
    "Count": "counts",
    "DayCount": "counts",
    "SessionCount": "counts",
    "Checkup": "doctor",
    "And": "filters",
    "Condition": "filters",
    "Filter": "filters",
    "Not": "filters",
    "Or": "filters",
    "Disagreement": "insight.values",
    "Likeness": "insight.values",
    "Merge": "insight.values",
    "SimilarGroup": "insight.values",
    "Topic": "insight.values",
    "Memory": "memory",
    "Chunk": "models",
    "Chunker": "models",
    "Deleted": "models",
    "Embedder": "models",
    "Forgotten": "models",
    "Hit": "models",
    "Hits": "models",
    "Link": "models",
    "NewRecord": "models",
    "Record": "models",
    "Reembedded": "models",
    "Reranker": "models",
    "Stats": "models",
    "Why": "models",
    "redact_text": "redaction",
    "BackedUp": "reports",
    "CleanedUp": "reports",
    "Reindexed": "reports",
    "Vacuumed": "reports",
    "derive_id": "ids",
    "derive_name": "drafting",
    "escape_segment": "scopes",
    "format_scope": "scopes",
    "strip_context": "context",
    "unescape_segment": "scopes",
    "Session": "session",
    "CHAT_HISTORY": "settings",
    "Settings": "settings",
    "Exported": "transfer.report",
    "Imported": "transfer.report",
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
