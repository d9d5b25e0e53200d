"""Makes the frozen database of the current schema version, and a record of what it answers.

    python tests/data/make_schema.py

Run it once for each schema version, at its release, and never again: the files show that later versions still read what
this one wrote. They are `schema-N.db` and `schema-N.json` beside this script.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from support import FixedClock, HashedEmbedder  # noqa: E402

from recall_core import Memory, Settings  # noqa: E402
from recall_core.store.migrations import SCHEMA_VERSION  # noqa: E402

DIMENSIONS = 32
HOST_SPACE = "host"
# Each is meant for one record, so that the answers outlive a change of the ranking.
QUERIES = [
    "Docker Compose 部署",
    "Error 503",
    "喝一杯绿茶",
    "dark mode",
    "蓝鲸计划",
    "the port was 8443",
    "清理 /var/log",
]
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

RECORDS = [
    {
        "text": "项目部署统一使用 Docker Compose，不再使用虚拟机",
        "id": "deploy",
        "tags": ["deploy", "部署"],
        "importance": 0.9,
    },
    {
        "text": "Error 503 means that the gateway finds no healthy backend",
        "metadata": {"code": 503, "服务": ["网关", 1.5]},
    },
    {"text": "他每天早上喝一杯绿茶", "payload": {"raw": [1, None, "x"]}, "source": "notes"},
    {"text": "The user likes dark mode", "kind": "preference", "created_at": BEGIN - timedelta(days=400)},
    {"text": "蓝鲸计划下周上线", "id": "whale"},
    {"text": "The blue whale project goes live next week", "vector": [1.0, 0.0, 0.5], "space": HOST_SPACE},
    {"text": "A secret of last year", "id": "expired", "ttl": 3600},
    {"text": "It lives in another scope", "id": "other", "scope": "user/7/project/x"},
    {"text": "Long ago " * 400 + "the port was 8443. " + "数据库配置写在 config.yaml 里。" * 60, "id": "long"},
]
TALK = [("Anna", "硬盘又满了"), ("assistant", "清理 /var/log 以后好了"), ("Anna", "Thanks, please do it every week")]


def fill(path: Path, clock: FixedClock) -> None:
    settings = Settings(dictionary=("蓝鲸计划",))
    with Memory.open(path, embedder=HashedEmbedder(DIMENSIONS), settings=settings, clock=clock) as memory:
        for number, record in enumerate(RECORDS):
            memory.add(**{"scope": "user/42", "id": f"r{number}"} | record)
            clock.advance(60)
        session = memory.session("s1", scope="user/42", title="硬盘")
        for turn, (role, text) in enumerate(TALK):
            session.append(role, text, turn=turn, id=f"t{turn}")
        memory.update("deploy", tags=["deploy"])
        memory.add("gone", id="gone", vector=[0.5, 1.0, 0.0], space=HOST_SPACE)
        memory.link("deploy", "whale", "concerns")
        memory.link("gone", "deploy")
        memory.delete("gone")
        clock.advance(days=2)


def describe(memory: Memory) -> dict[str, object]:
    """Return what a file answers, as JSON: records without the times of their derivation, and what searches find."""
    stats = memory.stats()
    return {
        "records": [_show(record) for record in memory.records()],
        "messages": [record.text for record in memory.session("s1", scope="user/42").messages()],
        "title": memory.session("s1", scope="user/42").title,
        "spaces": [[space.name, space.model, space.dimensions, space.vectors] for space in stats.spaces],
        "totals": [stats.records, stats.chunks, stats.sessions, stats.pending, stats.failed],
        "keyword": {query: _find(memory, query, mode="keyword") for query in QUERIES},
        "near": {query: _find(memory, query, mode="semantic", fusion="plain") for query in QUERIES},
        "links": [_show(link) for link in memory.links(["deploy", "whale"])],
        "deleted": [
            _show(deleted.record) | {"deleted_at": deleted.deleted_at.isoformat()} for deleted in memory.deleted()
        ],
        "host": _find(memory, "", mode="semantic", fusion="plain", vector=[1.0, 0.0, 0.5], space=HOST_SPACE),
    }


def _show(record: object) -> dict[str, object]:
    shown = {name: getattr(record, name) for name in type(record).__slots__}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in shown.items()}


def _find(memory: Memory, query: str, **arguments: object) -> str:
    return memory.search(query, limit=1, **arguments)[0].record.id


def main() -> None:
    path = HERE / f"schema-{SCHEMA_VERSION}.db"
    path.unlink(missing_ok=True)
    clock = FixedClock(BEGIN)
    fill(path, clock)
    with Memory.open(path, embedder=HashedEmbedder(DIMENSIONS), clock=clock) as memory:
        answers = {"now": clock.seconds} | describe(memory)
    text = json.dumps(answers, ensure_ascii=False, indent=1)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(f"{path} {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
