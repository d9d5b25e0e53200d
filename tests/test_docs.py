"""The pages of the documentation and the examples do what they show. How to write them: see doc_pages.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from doc_pages import blocks_to_run, shell_script
from page_support import check_links, check_output, name, run_python
from support import ROOT

PAGES = [
    page for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md"))] if page.exists()
]
OF_ADAPTERS = {"langchain", "llamaindex"}  # whose own tests run their pages, beside the host
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
BASH = shutil.which("bash") if os.name == "posix" else None


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in OF_ADAPTERS], ids=name)
def test_a_page_does_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks_to_run(page.read_text("utf-8")):
        if block.language == "python":
            printed = run_python(block, namespace, page)
        elif BASH is None:
            continue
        else:
            printed = run_shell(shell_script(block), tmp_path, f"{name(page)}:{block.line}")
        check_output(block, printed, page)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_of_a_page_lead_somewhere(page):
    check_links(page)


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_an_example_runs(example, tmp_path):
    printed = run([sys.executable, str(example)], tmp_path, name(example))
    assert printed, f"{name(example)} shows nothing"


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_an_example_is_short(example):
    assert len(example.read_text("utf-8").splitlines()) < 60


@pytest.mark.skipif(not (ROOT / "docs" / "cli.md").exists(), reason="there is no docs/cli.md yet")
def test_the_page_of_the_command_line_shows_the_help_of_today(tmp_path):
    script = ROOT / "tools" / "generate_cli_docs.py"
    run([sys.executable, str(script), "--check"], tmp_path, name(script))


def run_shell(script: str, folder: Path, where: str) -> str:
    assert BASH is not None
    return run([BASH, "-c", script], folder, where)


def run(command: list[str], folder: Path, where: str) -> str:
    """Run a command in `folder` with a database there, on a plain terminal 100 wide, and return what it printed."""
    environment = os.environ | {
        "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")]),
        "RECALL_DB": str(folder / "recall.db"),
        "PYTHONUTF8": "1",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "100",
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, f"{where} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout
