"""CrewAI's memory is read with the help of lancedb; tests/hosts/test_crewai_import.py has tables that it wrote."""

from __future__ import annotations

import sys

import pytest

from recall_core import Memory
from recall_core.errors import InvalidInputError


@pytest.fixture
def memory():
    with Memory.open(":memory:", embedder=None) as memory:
        yield memory


def test_without_lancedb_it_says_what_to_install(memory, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    (tmp_path / "memory" / "memories.lance").mkdir(parents=True)
    with pytest.raises(InvalidInputError, match="install lancedb"):
        memory.import_(tmp_path / "memory")


def test_a_folder_without_a_table_is_refused(memory, tmp_path):
    with pytest.raises(InvalidInputError, match="no folder with a LanceDB table"):
        memory.import_(tmp_path, format="crewai")
