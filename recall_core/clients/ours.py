"""Tells what in a client's configuration is ours: by the command that it starts, whoever wrote it there."""

from __future__ import annotations

import re

from ..models import Json


def is_own_server(value: Json) -> bool:
    """Tell whether a server's entry starts `recall mcp`, by whatever path, or through another program such as uvx."""
    return _starts(value, "mcp")


def is_own_handler(value: Json, event: str) -> bool:
    """Tell whether a hook's handler starts `recall hook EVENT`."""
    return _starts(value, f"hook {event}")


def command_of(value: Json) -> str:
    """Return what an entry starts, on one line; "" if it starts nothing."""
    if not isinstance(value, dict) or not isinstance(value.get("command"), str):
        return ""
    arguments = value.get("args")
    words = arguments if isinstance(arguments, list) else []
    return " ".join([value["command"], *(word for word in words if isinstance(word, str))])


def _starts(value: Json, words: str) -> bool:
    pattern = rf"(^|[\s/\\\"'])recall(\.exe)?[\"']?\s+{re.escape(words)}(?![\w-])"
    return re.search(pattern, command_of(value), re.IGNORECASE) is not None
