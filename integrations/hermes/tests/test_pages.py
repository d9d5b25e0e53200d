"""The README and the examples do what they show, with Hermes' own command."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import Block, anchors, blocks_to_run, links, shell_script

HERE = Path(__file__).resolve().parent.parent
README = HERE / "README.md"
COMMANDS = f"""
recall-hermes() {{ {sys.executable} -m recall_hermes.main "$@"; }}
hermes() {{ {sys.executable} -c 'from hermes_cli.main import main; main()' "$@"; }}
"""


def blocks():
    """Yield the blocks of the README that run, those for Hermes' command included."""
    page = README.read_text("utf-8")
    yield from (block for block in blocks_to_run(page) if block.language == "python" or "install" in block.code)
    yield Block("bash", page.partition("## Look inside")[2].partition("```bash\n")[2].partition("```")[0], 0)


def run(script):
    environment = {**os.environ, "PYTHONUTF8": "1", "NO_COLOR": "1"}
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, encoding="utf-8", env=environment)


@pytest.mark.skipif(sys.platform == "win32", reason="the blocks are for bash")
def test_the_readme_does_what_it_shows(home):
    ran = []
    for block in blocks():
        ran.append(block.language)
        if block.language == "bash":
            done = run(COMMANDS + shell_script(block))
            assert done.returncode == 0, done.stdout + done.stderr
            assert any(shown in done.stdout for shown in ("available ✓", "nightly_dump.sh")), done.stdout
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + block.code, str(README), "exec"), {"__name__": "__main__"})
        assert block.output is not None
        assert doctest.OutputChecker().check_output(block.output, printed.getvalue(), doctest.ELLIPSIS), (
            printed.getvalue()
        )
    assert ran == ["bash", "python", "bash"]


@pytest.mark.parametrize("page", [README, HERE.parent.parent / "docs" / "hermes.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in links(page.read_text("utf-8")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_settings_of_the_readme_are_the_defaults():
    import json
    from dataclasses import asdict

    from recall_hermes.config import Config

    assert json.loads(README.read_text("utf-8").partition("```json\n")[2].partition("```")[0]) == asdict(Config())


@pytest.mark.parametrize("example", sorted((HERE / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs_without_a_warning(example, home):
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(example)],
        cwd=home, capture_output=True, text=True, encoding="utf-8", env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "nightly_dump.sh" in done.stdout
    assert "peanuts" in done.stdout
    assert "(nothing is recalled)" in done.stdout
    assert len(example.read_text("utf-8").splitlines()) < 60
