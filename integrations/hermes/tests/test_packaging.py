"""What is installed: the adapter of this checkout, beside a core of its version."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

import recall_core
import recall_hermes

HERE = Path(__file__).resolve().parent.parent
WHEEL = pytest.mark.skipif(os.environ.get("RECALL_TEST_WHEEL") != "1", reason="only `make test-hermes` installs it")


def test_adapter_and_core_have_the_same_version():
    assert recall_hermes.__version__ == recall_core.__version__


@WHEEL
def test_the_adapter_takes_cores_of_its_own_minor_version_only():
    assert importlib.metadata.version("dualrecall-hermes") == recall_core.__version__
    required = importlib.metadata.requires("dualrecall-hermes") or []
    minor = recall_core.__version__.rpartition(".")[0]
    assert f"dualrecall=={minor}.*" in [line.replace(" ", "") for line in required]


@WHEEL
def test_newer_hosts_find_the_package_by_its_entry_point():
    (found,) = importlib.metadata.entry_points(group="hermes_agent.memory_providers", name="recall")
    assert found.load() is recall_hermes


@WHEEL
def test_the_wheel_is_what_is_tested():
    installed = Path(recall_hermes.__file__).parent
    assert not installed.is_relative_to(HERE)
    assert {path.name for path in (HERE / "recall_hermes").glob("*.*")} <= {path.name for path in installed.iterdir()}


def test_the_public_names_are_sorted_and_there():
    assert recall_hermes.__all__ == sorted(recall_hermes.__all__)
    assert all(hasattr(recall_hermes, name) for name in recall_hermes.__all__)


def test_listing_the_provider_imports_nothing_heavy(home):
    code = (
        "import sys, recall_hermes; recall_hermes.RecallMemoryProvider().is_available();"
        "print(sorted({'numpy', 'onnxruntime', 'tokenizers', 'rjieba', 'jieba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
