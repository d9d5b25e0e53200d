"""What is installed: the adapter of this checkout, beside a core of its version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from package_support import check_core, check_names, check_version, check_wheel

import recall_langchain

HERE = Path(__file__).resolve().parent.parent


def test_adapter_and_core_have_the_same_version():
    check_version(recall_langchain, "dualrecall-langchain")


def test_the_adapter_takes_cores_of_its_own_minor_version_only():
    check_core("dualrecall-langchain")


@pytest.mark.skipif(os.environ.get("RECALL_TEST_WHEEL") != "1", reason="only `make test-langchain` installs the wheel")
def test_the_wheel_is_what_is_tested():
    check_wheel(recall_langchain, HERE)


def test_the_public_names_are_sorted_and_there():
    check_names(recall_langchain)
