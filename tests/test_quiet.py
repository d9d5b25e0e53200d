"""A program that uses a memory stays quiet: nothing is reported, nothing is left behind, and it ends well."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support import HashedEmbedder

from recall_core import Memory

EMBED = "from recall_core import Memory; memory = Memory.open(':memory:'); memory.add('text'); memory.search('text')"
END_AT_ONCE = """
import sys
from recall_core import Memory, Settings, worker
worker.EXIT_TIMEOUT = 600  # for a busy machine
memory = Memory.open(sys.argv[1], settings=Settings(embedding="background"))
memory.add_many({"text": f"row {number} " + "some words " * 20} for number in range(100))
memory.search("words", mode="keyword")
"""


def run(code: str, home: os.PathLike[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ORT_", "XDG_"))}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**kept, "HOME": str(home), "USERPROFILE": str(home), "LOCALAPPDATA": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_embedding_writes_nothing_into_the_home_folder(tmp_path):
    done = run(EMBED, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="an abort shows itself by a signal")
def test_a_program_may_end_while_texts_are_being_embedded(tmp_path):
    path = tmp_path / "memory.db"
    done = run(END_AT_ONCE, tmp_path, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    with Memory.open(path, embedder=None) as memory:
        assert memory.count() == 100


def test_copies_of_a_text_do_not_hide_it():
    with Memory.open(":memory:") as memory:
        memory.add_many(
            {"text": text}
            for text in (
                "项目部署统一使用 Docker Compose，不再使用虚拟机",
                "用户喜欢黑咖啡，不加糖",
                "数据库每天凌晨两点备份到对象存储",
                "The staging database listens on port 5433",
                "Error 503 处理：重启网关",
            )
        )
        memory.add_many({"text": "磁盘空间不足时先清理七天前的日志"} for _ in range(10))
        hits = memory.search("硬盘不够了怎么办", limit=1)
        assert hits[0].record.text == "磁盘空间不足时先清理七天前的日志"
        assert hits[0].relevance > 0.3


def test_a_second_model_on_one_fresh_file_costs_no_text_and_is_not_mixed_in(db_path):
    with (
        Memory.open(db_path, embedder=HashedEmbedder(16)) as one,
        Memory.open(db_path, embedder=HashedEmbedder(16, "other")) as other,
    ):
        one.add("from one")
        other.add("from other")
        assert other.count() == 2
        hits = other.search("from")
        assert (len(hits), hits.mode) == (2, "keyword")
        assert "hashed-16" in hits.degraded


def test_one_odd_clock_does_not_spoil_the_ids_of_others():
    with Memory.open(":memory:", embedder=None, clock=lambda: 4e9) as memory:
        late = memory.add("in 2096").id
    with Memory.open(":memory:", embedder=None) as memory:
        assert memory.add("now").id < late


def test_skip_skips_the_same_text_whatever_id_is_given():
    with Memory.open(":memory:", embedder=None) as memory:
        first = memory.add("text")
        assert memory.add("text", id="mine", on_duplicate="skip") == first
        assert memory.count() == 1
