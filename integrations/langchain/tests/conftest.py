"""Fixtures of the adapter's tests; nothing here is traced."""

from __future__ import annotations

import os

import pytest

from recall_langchain import RecallMiddleware

os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Let what is recalled not depend on how busy the machine is."""
    monkeypatch.setitem(RecallMiddleware.__init__.__kwdefaults__, "timeout", 120.0)
