"""mem0's memories as JSON, in the shapes that its library and its platform return."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from recall_core import Memory
from recall_core.transfer.input import open_input
from recall_core.transfer.mem0 import Mem0Source

LIBRARY = {
    "results": [
        {
            "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
            "memory": "喜欢喝茶，不加糖",
            "hash": "56ad1b2f4a0a4a1d8b1a3c4d5e6f7a8b",
            "metadata": {"category": "habit", "huge": 1e300},
            "score": None,
            "created_at": "2025-11-28T10:29:36.630547-08:00",
            "updated_at": "2025-12-01T08:00:00.000000-08:00",
            "user_id": "alice",
            "run_id": "run/7",
            "role": "user",
        },
        {
            "id": "0e4a1c7c-8a55-4b0a-9e5e-2f6d7b1a9c11",
            "memory": "The staging server runs Debian 12",
            "hash": "aa",
            "metadata": None,
            "created_at": "2026-01-31T09:30:00+00:00",
            "updated_at": None,
            "user_id": "a/b",
            "agent_id": "ops",
            "actor_id": "Dana",
        },
        {"id": "x3", "memory": "  ", "hash": "b", "user_id": "alice", "created_at": None},
        {"id": "x4", "memory": "gone", "user_id": "alice", "deleted_at": "2026-01-01T00:00:00Z"},
    ],
    "relations": [{"source": "alice", "relationship": "likes", "target": "tea"}],
}
PLATFORM = [
    {
        "id": "p1",
        "memory": "Travels to Kyoto in April",
        "user_id": "alice",
        "metadata": {"trip": True},
        "categories": ["travel", "plans"],
        "immutable": False,
        "expiration_date": "2999-08-31",
        "created_at": "2026-01-02T03:04:05.678901-08:00",
        "updated_at": "2026-01-02T03:04:05.678901-08:00",
        "structured_attributes": {"day": 2, "month": 1},
    },
    {"id": "p2", "memory": "住在杭州", "user_id": "alice", "expiration_date": "2020-01-01", "created_at": "2019-01-01"},
]


def open_memory():
    return Memory.open(":memory:", embedder=None)


def as_file(document):
    return io.BytesIO(json.dumps(document, ensure_ascii=False, indent=1).encode())


def test_what_the_library_returns_is_stored_below_its_user_and_agent():
    with open_memory() as memory:
        imported = memory.import_(as_file(LIBRARY))
        assert (imported.format, imported.read, imported.added, imported.failed) == ("mem0", 5, 2, 0)
        assert imported.skipped == {"memories without text": 1, "deleted in mem0": 1, "relations of the graph": 1}
        tea, server = memory.records()
        assert (tea.text, tea.scope, tea.session, tea.role) == ("喜欢喝茶，不加糖", "user/alice", "run/7", "user")
        assert (tea.created_at.isoformat(), tea.updated_at.isoformat()) == (
            "2025-11-28T18:29:36.630547+00:00",
            "2025-12-01T16:00:00+00:00",
        )
        assert (dict(tea.metadata), tea.source) == ({"category": "habit", "huge": 1e300}, "mem0")
        assert (server.text, server.scope) == ("The staging server runs Debian 12", "user/a%2Fb/agent/ops")
        assert dict(server.metadata) == {"actor_id": "Dana"}


def test_what_the_platform_returns_keeps_categories_and_ends():
    with open_memory() as memory:
        imported = memory.import_(as_file(PLATFORM))
        assert (imported.format, imported.added, imported.skipped) == ("mem0", 1, {"expired": 1})
        (record,) = memory.records()
        assert (record.text, record.tags) == ("Travels to Kyoto in April", ("travel", "plans"))
        assert record.expires_at.isoformat() == "2999-08-31T00:00:00+00:00"
        assert dict(record.metadata) == {"trip": True, "immutable": False}


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(LIBRARY).encode(),
        json.dumps(LIBRARY["results"]).encode(),
        json.dumps({"count": 2, "next": None, "previous": None, "results": LIBRARY["results"]}).encode(),
        b"\n".join(json.dumps(memory).encode() for memory in LIBRARY["results"]),
        gzip.compress(json.dumps(LIBRARY, indent=4).encode()),
        json.dumps([{**memory, "hash": "h" * 200_000} for memory in LIBRARY["results"]][1:]).encode(),
    ],
    ids=["response", "list", "page", "lines", "packed", "large"],
)
def test_all_shapes_hold_the_same_memories(raw):
    with open_memory() as memory:
        fmt = "mem0" if len(raw) > 100_000 else "auto"
        imported = memory.import_(io.BytesIO(raw), format=fmt)
        assert (imported.format, imported.failed) == ("mem0", 0)
        assert "The staging server runs Debian 12" in [record.text for record in memory.records()]


def test_importing_again_adds_what_has_come_since_and_keeps_what_changed():
    with open_memory() as memory:
        memory.import_(as_file(LIBRARY))
        later = {"results": [{**LIBRARY["results"][0], "memory": "喜欢喝咖啡"}, *LIBRARY["results"][1:], *PLATFORM]}
        again = memory.import_(as_file(later))
        assert (again.added, again.present) == (1, 2)
        assert "喜欢喝茶，不加糖" in [record.text for record in memory.records()]
        assert memory.import_(as_file(later), on_duplicate="replace").replaced == 3
        assert "喜欢喝咖啡" in [record.text for record in memory.records()]


@pytest.mark.parametrize(
    "line",
    [
        {"text": "x", "metadata": {"memory": "y"}, "created_at": "2026-01-01"},
        {"text": "x", "memory": "y", "created_at": "2026-01-01"},
        {"memory": "only this"},
        {"memory": 5, "user_id": "x"},
    ],
)
def test_other_json_is_not_taken_for_mem0s(line):
    with open_input(as_file(line)) as file:
        assert not Mem0Source().detect(file)


@pytest.mark.parametrize("cut", [1, 30, 100])
def test_a_document_that_is_cut_off_keeps_what_came_before(cut):
    raw = json.dumps(LIBRARY["results"]).encode()[:-cut]
    with open_memory() as memory:
        imported = memory.import_(io.BytesIO(raw), format="mem0")
        assert (imported.added, imported.failed) == (2, 1)
        assert "ends early" in imported.failures[0].reason or "no JSON" in imported.failures[0].reason
