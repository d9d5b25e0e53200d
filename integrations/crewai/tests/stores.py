"""The ways to make a storage, and a memory for a crew, that the conformance checks run over."""

from __future__ import annotations

from crewai.memory.unified_memory import Memory as CrewMemory
from crews import EMBED

from recall_core import Memory
from recall_crewai import RecallStorage, recall_memory

FILE = "memory.db"


def of_path(folder):
    return RecallStorage(folder / FILE)


def of_memory(folder):
    """Return a storage on a memory that embeds by itself, too, and holds what is not the storage's."""
    memory = Memory.open(folder / FILE)
    if not memory.count():
        memory.add("the user loves sushi", scope="other", tags=["food"])
    return RecallStorage(memory)


def of_root(folder):
    return RecallStorage(folder / FILE, scope="")


STORAGES = {"path": of_path, "memory": of_memory, "root": of_root}


def one_line(folder, llm):
    return recall_memory(folder / FILE, llm=llm)


def weighted(folder, llm):
    return recall_memory(folder / FILE, llm=llm, recency_weight=0.3, importance_weight=0.2, semantic_weight=0.5)


def of_crewai(folder, llm):
    return CrewMemory(storage=RecallStorage(folder / FILE), embedder=EMBED, llm=llm)


MEMORIES = {"recall_memory": one_line, "weighted": weighted, "RecallStorage": of_crewai}
