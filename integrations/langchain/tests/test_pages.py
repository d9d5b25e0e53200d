"""The README, the page of the docs and the examples do what they show."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents import scripted
from page_support import check_links, check_python, run_example

HERE = Path(__file__).resolve().parent.parent
PAGES = [HERE / "README.md", HERE.parent.parent / "docs" / "langchain.md"]

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@each_page
def test_a_page_does_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_python(page, {"model": scripted("Oolong, and no nuts: noted."), "tools": []})


@each_page
def test_links_of_a_page_lead_somewhere(page):
    check_links(page)


@pytest.mark.parametrize("example", sorted((HERE / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs_without_a_warning(example, tmp_path):
    patiently = str(Path(__file__).with_name("patiently.py"))
    alice, again, bob = run_example(example, tmp_path, "-W", "error", patiently).split(" asks: ")[1:]
    assert "Mei lives in Chengdu" in alice
    assert "花生过敏" in again
    assert "(nothing is remembered)" in bob
