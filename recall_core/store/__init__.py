"""The store: everything that is kept in the file, and the only place that speaks SQL."""

from .protocols import OWN_SPACE, ChunkDraft, Draft, PendingChunk, SessionInfo, Space, Stale, Stored
from .sqlite import SqliteStore, open_store

__all__ = [
    "OWN_SPACE",
    "ChunkDraft",
    "Draft",
    "PendingChunk",
    "SessionInfo",
    "Space",
    "SqliteStore",
    "Stale",
    "Stored",
    "open_store",
]
