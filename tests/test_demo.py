"""The demo shows what it promises, on any terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support import ROOT

from recall_core.cli.excerpts import count_cells

DEMO = ROOT / "examples" / "demo"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the demo prints into a pipe, in a locale that knows ASCII only."""
    environment = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "COLUMNS")}
    environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run([sys.executable, str(DEMO)], cwd=folder, env=environment, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr, list(folder.iterdir())) == (0, b"", [])
    return done.stdout.decode("utf-8")


def test_the_demo_fits_100_columns(shown):
    assert max(map(count_cells, shown.splitlines())) <= 100


def test_the_demo_draws_no_colours_into_a_pipe(shown):
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Docker", "Docker"),
        ("怎么部署服务", "Docker"),
        ("硬盘不够了", "磁盘满了"),
        ("Error 503", "Error 503"),
        ("服务不可用怎么办", "Error 503"),
        ("数据库配置", "生产数据库"),
        ("How do we get back to the previous version?", "To roll back"),
        ("users keep getting logged out", "Access tokens"),
    ],
)
def test_the_demo_finds_what_it_asks_for(shown, question, answer):
    section = shown.partition(f"\n{question} ")[2]
    table = section.split("  keyword ")[1]
    assert answer in table


def test_the_demo_ends_with_a_context_block_and_the_time_of_each_search(shown):
    block, times = shown.split("</recalled_memories>")
    assert "CREATE INDEX CONCURRENTLY" in block.split("<recalled_memories>")[1]
    for question in ("Docker", "怎么部署服务", "users keep getting logged out"):
        (line,) = (line for line in times.splitlines() if question in line)
        assert len([word for word in line.removeprefix(f"  {question}").split() if float(word) > 0]) == 3
