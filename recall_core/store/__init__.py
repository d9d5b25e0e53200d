"""The store: everything that is kept in the file, and the only place that speaks SQL."""

from .insight import TextRow
from .moves import MissingChunk
from .pending import RETRY_AFTER
from .protocols import (
    NEXT_SPACE,
    OLD_SPACE,
    OWN_SPACE,
    RESERVED,
    Backlog,
    ChunkDraft,
    Dictionary,
    Draft,
    Indexed,
    Medium,
    PendingChunk,
    SessionInfo,
    Space,
    Stale,
    Stored,
    Taken,
    WordChange,
)
from .sqlite import SqliteStore, open_store

__all__ = [
    "NEXT_SPACE",
    "OLD_SPACE",
    "OWN_SPACE",
    "RESERVED",
    "RETRY_AFTER",
    "Backlog",
    "ChunkDraft",
    "Dictionary",
    "Draft",
    "Indexed",
    "Medium",
    "MissingChunk",
    "PendingChunk",
    "SessionInfo",
    "Space",
    "SqliteStore",
    "Stale",
    "Stored",
    "Taken",
    "TextRow",
    "WordChange",
    "open_store",
]
