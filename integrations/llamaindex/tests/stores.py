"""Stores to run the conformance checks against: the ways to give RecallVectorStore its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recall_core import Memory
from recall_llamaindex import RecallVectorStore

FILE = "memory.db"


@dataclass
class StoreSpec:
    """`make` returns an empty store over a file in the folder, `reopen` one more store over that file.

    `known_failures` are the names of tests, with the reasons: strictly expected failures.
    """

    name: str
    make: Callable[[Path], RecallVectorStore]
    reopen: Callable[[Path], RecallVectorStore]
    known_failures: Mapping[str, str] = field(default_factory=dict)


def open_path(folder: Path) -> RecallVectorStore:
    return RecallVectorStore(folder / FILE)


def open_memory(folder: Path) -> RecallVectorStore:
    """Return a store on a memory with the bundled model and chunks of its own, where there is more than its nodes."""
    memory = Memory.open(folder / FILE)
    if not memory.count():
        memory.add("kettle: a memory that is no node", scope="llamaindex", metadata={"author": "alice"})

    return RecallVectorStore(memory)


STORES = [StoreSpec("path", open_path, open_path), StoreSpec("memory", open_memory, open_memory)]
