"""Fixtures of the adapter's tests; nothing here is traced."""

from __future__ import annotations

import os

os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"
