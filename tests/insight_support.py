"""What the tests of insights share: memories to look into."""

from __future__ import annotations

from support import FixedClock, HashedEmbedder

from recall_core import Memory


def open_memory(embedder=None, clock=None):
    return Memory.open(":memory:", embedder=embedder, clock=clock or FixedClock())


def open_with_vectors(clock=None):
    return open_memory(HashedEmbedder(64), clock)


def texts(group):
    return [record.text for record in group.records]


def ids(group):
    return [record.id for record in group.records]
