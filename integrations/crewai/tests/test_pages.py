"""The README and the example do what they show."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import anchors, blocks_to_run, links

HERE = Path(__file__).resolve().parent.parent
README = HERE / "README.md"
PANELS = "╭│╰\n"  # CrewAI draws some of what happens


def test_the_readme_does_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks_to_run(README.read_text("utf-8")):
        if block.language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + block.code, str(README), "exec"), namespace)
        if block.output is not None:
            shown = "".join(line for line in printed.getvalue().splitlines(True) if line[0] not in PANELS)
            assert doctest.OutputChecker().check_output(block.output, shown, doctest.ELLIPSIS), shown
    namespace["memory"].close()


def test_links_of_the_readme_lead_somewhere():
    for link in links(README.read_text("utf-8")):
        path, _, anchor = link.partition("#")
        if not path.startswith("https:"):
            target = (HERE / path).resolve() if path else README
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("example", sorted((HERE / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    done = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path, capture_output=True, text=True, encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "no memories in the prompt" in done.stdout
    assert "> 《山海经》项目的上线日期是 3 月 14 日" in done.stdout
