"""What Claude Code tells a hook on standard input. Every key but the event is optional; unknown ones are ignored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InvalidInputError
from ..models import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """One event of a session. `folder` is the project's, `agent` the type of a subagent."""

    session: str | None
    folder: Path
    prompt: str = ""
    source: str = ""
    tool: str = ""
    tool_input: Mapping[str, Json] = field(default_factory=dict)
    tool_response: Json = None
    transcript: Path | None = None
    agent: str | None = None


def read_payload(raw: bytes, project: str | None, here: str | None = None) -> Payload:
    """Return the event; `project` is the folder that the client names in the environment, None if it does not, and
    `here` where the hook was called, by default the present folder.

    Raises InvalidInputError for anything but a JSON object.
    """
    try:
        value = json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"the hook's input is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidInputError(f"the hook's input is no JSON object but {type(value).__name__}")
    tool_input = value.get("tool_input")
    transcript = _text(value, "transcript_path")
    return Payload(
        session="".join(filter(str.isprintable, _text(value, "session_id")[:200])) or None,
        folder=Path(here or "", project or _text(value, "cwd")),
        prompt=_text(value, "prompt"),
        source=_text(value, "source"),
        tool=_text(value, "tool_name"),
        tool_input=tool_input if isinstance(tool_input, dict) else {},
        tool_response=value.get("tool_response"),
        transcript=Path(transcript).expanduser() if transcript else None,
        agent=_text(value, "agent_type") or _text(value, "agent_id") or None,
    )


def _text(value: Mapping[str, Json], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""
