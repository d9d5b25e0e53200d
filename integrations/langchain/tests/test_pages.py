"""The README and the examples do what they show."""

from __future__ import annotations

import contextlib
import doctest
import io
import subprocess
import sys
from pathlib import Path

import pytest
from agents import scripted
from doc_pages import anchors, blocks_to_run, links

HERE = Path(__file__).resolve().parent.parent
README = HERE / "README.md"


def test_the_readme_does_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__", "model": scripted("Oolong, and no nuts: noted."), "tools": []}
    for block in blocks_to_run(README.read_text("utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + block.code, str(README), "exec"), namespace)
        if block.output is not None:
            checker = doctest.OutputChecker()
            assert checker.check_output(block.output, printed.getvalue(), doctest.ELLIPSIS), printed.getvalue()


def test_links_of_the_readme_lead_somewhere():
    for link in links(README.read_text("utf-8")):
        path, _, anchor = link.partition("#")
        target = (HERE / path).resolve() if path else README
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("example", sorted((HERE / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs_without_a_warning(example, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (0, "")
    alice, again, bob = done.stdout.split(" asks: ")[1:]
    assert "Mei lives in Chengdu" in alice
    assert "花生过敏" in again
    assert "(nothing is remembered)" in bob
