"""The store: everything that is kept in the file, and the only place that speaks SQL."""

from .connection import MEMORY_PATH
from .insight import TextRow
from .moves import MissingChunk
from .pending import RETRY_AFTER
from .protocols import (
    EXTERNAL_MODEL,
    NEXT_SPACE,
    OLD_SPACE,
    OWN_SPACE,
    RESERVED,
    Backlog,
    ChunkDraft,
    Dictionary,
    Draft,
    Holdings,
    Indexed,
    Medium,
    PendingChunk,
    SessionInfo,
    SessionKey,
    Space,
    Stale,
    Stored,
    StoredVector,
    Taken,
    Unit,
    WordChange,
)
from .sqlite import SqliteStore, find_path, open_store

__all__ = [
    "EXTERNAL_MODEL",
    "MEMORY_PATH",
    "NEXT_SPACE",
    "OLD_SPACE",
    "OWN_SPACE",
    "RESERVED",
    "RETRY_AFTER",
    "Backlog",
    "ChunkDraft",
    "Dictionary",
    "Draft",
    "Holdings",
    "Indexed",
    "Medium",
    "MissingChunk",
    "PendingChunk",
    "SessionInfo",
    "SessionKey",
    "Space",
    "SqliteStore",
    "Stale",
    "Stored",
    "StoredVector",
    "Taken",
    "TextRow",
    "Unit",
    "WordChange",
    "find_path",
    "open_store",
]
