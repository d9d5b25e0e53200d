"""What the tests of held scopes share: records to search, and what a memory answers."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from store_support import embedder
from support import NOW, FixedClock

from recall_core import Memory

MODES = ["hybrid", "keyword", "semantic"]
FUSIONS = ["default", "rrf", "plain"]
SCOPES = ["", "a", "a/x", "b"]
WORDS = ["docker", "deploys", "rockets", "turtles", "部署", "喝茶", "Fridays", "backup"]
QUERY = "when in January 2026 did Anna tell Bob that docker deploys the rockets, 喝茶?"
ALL = 200  # more than any of these files has


def open_memory(path, clock=None):
    return Memory.open(path, embedder=embedder(), clock=clock or FixedClock())


def ids(hits):
    return [hit.record.id for hit in hits]


def write_text(random, words=6):
    return " ".join(random.choices(WORDS, k=words)) + random.choice([".", "?"])


def make_records(count, seed=1):
    """Records with ids, times and turns of their own, in several scopes and sessions."""
    random = Random(seed)
    return [
        {
            "text": f"{write_text(random)} {number}",
            "id": f"r{number:03}",
            "scope": random.choice(SCOPES[1:]),
            "session": random.choice([None, "talk", "other"]),
            "turn": number,
            "role": "Anna" if number == 0 else "user",
            "created_at": NOW - timedelta(minutes=number),
        }
        for number in range(count)
    ]


def look(memory, mode, fusion="default", **arguments):
    """Return the hits of each scope, as far as they can be compared."""
    return {
        scope: {
            hit.record.id: (hit.score, hit.relevance, hit.why.context)
            for hit in memory.search(QUERY, scope=scope, mode=mode, fusion=fusion, limit=ALL, **arguments)
        }
        for scope in SCOPES
    }


def order(memory, mode, fusion="default"):
    return {scope: ids(memory.search(QUERY, scope=scope, mode=mode, fusion=fusion, limit=ALL)) for scope in SCOPES}


def assert_alike(one, other):
    for scope in SCOPES:
        assert one[scope].keys() == other[scope].keys()
        for record_id, numbers in one[scope].items():
            assert numbers == pytest.approx(other[scope][record_id], abs=1e-6)


def fill(memory, counts):
    for scope, count in counts.items():
        memory.add_many(
            {"text": f"docker {scope} {number}", "id": f"{scope}{number}", "scope": scope} for number in range(count)
        )
