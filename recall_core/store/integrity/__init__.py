"""Examines memory files that may be damaged, and makes again what is derived, from the truth."""

from .access import Access, MemoryAccess, open_access
from .checks import TermsBasis, find_chunkless, find_damage, is_current, present_tables, read_terms_basis
from .repairs import repair_tables
from .rows import ChunkValues, Examined, Names, examine_records, examine_some, mark_stale

__all__ = [
    "Access",
    "ChunkValues",
    "Examined",
    "MemoryAccess",
    "Names",
    "TermsBasis",
    "examine_records",
    "examine_some",
    "find_chunkless",
    "find_damage",
    "is_current",
    "mark_stale",
    "open_access",
    "present_tables",
    "read_terms_basis",
    "repair_tables",
]
