"""The README, the page of the docs and the examples do what they show."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_support import check_links, check_python, run_example

from recall_core.opening import Closing

HERE = Path(__file__).resolve().parent.parent
PAGES = [HERE / "README.md", HERE.parent.parent / "docs" / "llamaindex.md"]

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@each_page
def test_a_page_does_what_it_shows(page, tmp_path, monkeypatch, opened):
    monkeypatch.chdir(tmp_path)
    names = check_python(page)
    opened.extend(value for value in names.values() if isinstance(value, Closing))
    opened.append(names["index"].vector_store)


@each_page
def test_links_of_a_page_lead_somewhere(page):
    check_links(page)


@pytest.mark.parametrize("example", sorted((HERE / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs_without_a_warning(example, tmp_path):
    assert run_example(example, tmp_path, "-W", "error")
    assert len(example.read_text("utf-8").splitlines()) < 60
