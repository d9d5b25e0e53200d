"""These tests need the MCP SDK, which the core's own environment must not have: `make test-mcp`."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("mcp") else ["test_*.py"]
