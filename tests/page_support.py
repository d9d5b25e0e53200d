"""Runs what a page shows and looks where its links lead, for the tests of the docs and of each adapter."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from doc_pages import Block, anchors, blocks_to_run, links

ROOT = Path(__file__).resolve().parent.parent


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def run_python(block: Block, namespace: dict[str, object], page: Path) -> str:
    """Run a block and return what it printed."""
    # Empty lines in front make a traceback name the page's own line.
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def check_output(block: Block, printed: str, page: Path) -> None:
    if block.output is None:
        return
    wanted, seen = (
        "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines()) for text in (block.output, printed)
    )
    where = f"{name(page)}:{block.line}"
    assert doctest.OutputChecker().check_output(wanted, seen, doctest.ELLIPSIS), (
        f"{where} shows\n{wanted}\nbut prints\n{seen}"
    )


def check_python(
    page: Path, namespace: dict[str, object] | None = None, shown: Callable[[str], str] = str
) -> dict[str, object]:
    """Run the Python blocks of a page and compare what is `shown` of what they print; return the names they leave."""
    names: dict[str, object] = {"__name__": "__main__", **(namespace or {})}
    for block in blocks_to_run(page.read_text("utf-8")):
        if block.language == "python":
            check_output(block, shown(run_python(block, names, page)), page)
    return names


def check_links(page: Path) -> None:
    for link in links(page.read_text("utf-8")):
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name(page)} links to {link}, which does not exist"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{name(page)} links to {link}; the page has no such heading"


def run_example(example: Path, folder: Path, *options: str) -> str:
    """Return what an example prints, in a Python with these options; it has to end well and to complain of nothing."""
    done = subprocess.run(
        [sys.executable, *options, str(example)],
        cwd=folder, capture_output=True, text=True, encoding="utf-8", env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout
