"""What is installed: the adapter of this checkout, beside a core of its version."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

import pytest

import recall_core
import recall_crewai

HERE = Path(__file__).resolve().parent.parent


def test_adapter_and_core_have_the_same_version():
    assert recall_crewai.__version__ == recall_core.__version__
    assert importlib.metadata.version("dualrecall-crewai") == recall_core.__version__


def test_the_adapter_takes_cores_of_its_own_minor_version_only():
    required = importlib.metadata.requires("dualrecall-crewai") or []
    minor = recall_core.__version__.rpartition(".")[0]
    assert f"dualrecall=={minor}.*" in [line.replace(" ", "") for line in required]


@pytest.mark.skipif(os.environ.get("RECALL_TEST_WHEEL") != "1", reason="only `make test-crewai` installs the wheel")
def test_the_wheel_is_what_is_tested():
    installed = Path(recall_crewai.__file__).parent
    assert not installed.is_relative_to(HERE)
    assert {path.name for path in (HERE / "recall_crewai").glob("*.*")} <= {path.name for path in installed.iterdir()}


def test_the_public_names_are_sorted_and_there():
    assert recall_crewai.__all__ == sorted(recall_crewai.__all__)
    assert all(hasattr(recall_crewai, name) for name in recall_crewai.__all__)
