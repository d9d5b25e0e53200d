"""What Claude Code, its editors and hooks put into a message beside what was said."""

from __future__ import annotations

import re

from ..patterns import compile_late

_INJECTED = compile_late(
    r"<(system-reminder|[a-z]+(?:-[a-z]+)*-hook|memory-context|ide_[a-z_]+|task-notification|new-diagnostics)>.*?</\1>\s*",
    re.DOTALL,
)


def strip_injected(text: str) -> str:
    """Return a message without what was put into it."""
    return _INJECTED.sub("", text).strip() if "</" in text else text.strip()
