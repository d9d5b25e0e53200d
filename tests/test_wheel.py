"""`make test` tests what is shipped: the built wheel, in an environment without frameworks and without the checkout."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from pathlib import Path

import pytest
from support import ROOT

import recall_core

pytestmark = pytest.mark.skipif(
    os.environ.get("RECALL_TEST_WHEEL") != "1", reason="only `make test-core` installs the wheel"
)


def test_recall_core_is_the_installed_one():
    installed = Path(recall_core.__file__)
    assert not installed.is_relative_to(ROOT / "recall_core")
    assert "site-packages" in installed.parts


@pytest.mark.parametrize("framework", ["langchain_core", "langgraph", "llama_index", "crewai", "agent", "mcp"])
def test_no_framework_is_importable(framework):
    assert importlib.util.find_spec(framework) is None


def test_the_wheel_has_every_file_of_the_package():
    source = ROOT / "recall_core"
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    installed = Path(recall_core.__file__).parent
    assert wanted == {path for path in wanted if (installed / path).is_file()}


def test_the_wheel_installs_nothing_beside_the_package():
    files = importlib.metadata.files("dualrecall") or []
    tops = {file.parts[0] for file in files if ".." not in file.parts}
    assert tops == {"recall_core", f"dualrecall-{recall_core.__version__}.dist-info"}


def test_the_wheel_carries_its_licences():
    names = {Path(file).name for file in importlib.metadata.files("dualrecall") or []}
    assert {"LICENSE", "NOTICE", "py.typed"} <= names
