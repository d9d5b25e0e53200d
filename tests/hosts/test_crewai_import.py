"""CrewAI's memory, in a table that lancedb really wrote."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from support import NOW, FixedClock

from recall_core import Memory
from recall_core.errors import InvalidInputError

EARLIER = "2026-01-30T00:00:00"


def make_row(id, content, scope, importance=0.5, **changes):
    """Return a row as crewai 1.15 writes it: JSON as text, times without a zone."""
    row = {"id": id, "content": content, "scope": scope, "categories_str": "[]", "metadata_str": "{}"}
    times = {"importance": importance, "created_at": EARLIER, "last_accessed": EARLIER}
    return {**row, **times, "source": "", "private": False, **changes}


ROWS = [
    make_row(
        "5f3e1c2a-1b2c-3d4e-5f60-0123456789ab",
        "Project Zephyr ships on 14 March",
        "/projects",
        0.8,
        categories_str='["release", "发布"]',
        metadata_str='{"by": "Anna"}',
        created_at="2026-01-31T09:30:00",
        last_accessed="2026-02-01T00:00:00.250000",
    ),
    make_row("2", "部署统一使用 Docker Compose", "/crew/研究团队/agent/writer", source="user:42", private=True),
    make_row("3", "At the root", "/", 0.1),
]


@pytest.fixture
def memory():
    with Memory.open(":memory:", embedder=None, clock=FixedClock()) as memory:
        yield memory


def write_table(folder, rows):
    lancedb = pytest.importorskip("lancedb", reason="only the hosts' environment has lancedb")
    lancedb.connect(str(folder)).create_table("memories", [{**row, "vector": [0.0] * 8} for row in rows])
    return folder


def check_three_records(memory):
    found = {record.text: record for record in memory.records()}
    zephyr = found["Project Zephyr ships on 14 March"]
    assert (zephyr.scope, zephyr.tags, zephyr.metadata) == ("projects", ("release", "发布"), {"by": "Anna"})
    assert (zephyr.importance, zephyr.created_at, zephyr.source) == (0.8, NOW, "crewai")
    assert zephyr.accessed_at == datetime(2026, 2, 1, 0, 0, 0, 250_000, tzinfo=UTC)
    deploy = found["部署统一使用 Docker Compose"]
    assert (deploy.scope, deploy.kind) == ("crew/研究团队/agent/writer", "private")
    assert deploy.source == "user:42"
    assert (found["At the root"].scope, found["At the root"].importance) == ("", 0.1)


def test_the_memories_of_crewai_keep_scope_categories_and_importance(memory, tmp_path):
    done = memory.import_(write_table(tmp_path / "memory", ROWS))
    assert (done.format, done.read, done.added, done.failed) == ("crewai", 3, 3, 0)
    check_three_records(memory)


def test_what_crewai_itself_stored_is_read(memory, tmp_path, monkeypatch):
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))
    storage = pytest.importorskip("crewai.memory.storage.lancedb_storage", reason="only the hosts' environment")
    from crewai.memory.types import MemoryRecord

    records = [
        MemoryRecord(
            id=row["id"], content=row["content"], scope=row["scope"], categories=json.loads(row["categories_str"]),
            metadata=json.loads(row["metadata_str"]), importance=row["importance"], source=row["source"] or None,
            created_at=datetime.fromisoformat(row["created_at"]), private=row["private"],
            last_accessed=datetime.fromisoformat(row["last_accessed"]), embedding=[0.1] * 8,
        )
        for row in ROWS
    ]  # fmt: skip
    storage.LanceDBStorage(path=tmp_path / "memory", compact_every=0).save(records)
    assert memory.import_(tmp_path / "memory").added == 3
    check_three_records(memory)


def test_an_import_again_adds_nothing(memory, tmp_path):
    folder = write_table(tmp_path / "memory", ROWS)
    memory.import_(folder)
    again = memory.import_(folder / "memories.lance")  # the table's own folder means the same
    assert (again.added, again.present) == (0, 3)


def test_a_table_of_any_size_is_read_whole(memory, tmp_path):
    rows = [{**ROWS[2], "id": str(number), "content": f"记忆 {number}"} for number in range(1000)]
    assert memory.import_(write_table(tmp_path / "memory", rows)).added == memory.count() == 1000


def test_a_table_of_something_else_is_refused(memory, tmp_path):
    lancedb = pytest.importorskip("lancedb", reason="only the hosts' environment has lancedb")
    lancedb.connect(str(tmp_path / "x")).create_table("memories", [{"a": 1, "vector": [0.0, 1.0]}])
    with pytest.raises(InvalidInputError, match="no columns id and content"):
        memory.import_(tmp_path / "x")
