"""What Claude Code, its editors and hooks put into a message beside what was said."""

from __future__ import annotations

from ..patterns import compile_late

_OPENING = compile_late(
    r"<(system-reminder|[a-z]+(?:-[a-z]+)*-hook|memory-context|ide_[a-z_]+|task-notification|new-diagnostics)>"
)


def strip_injected(text: str) -> str:
    """Return a message without what was put into it."""
    if "</" not in text:
        return text.strip()
    kept, begin, open_ended = [], 0, set()
    for found in _OPENING.finditer(text):
        name = found[1]
        if found.start() < begin or name in open_ended:
            continue
        closing = f"</{name}>"
        end = text.find(closing, found.end())
        if end < 0:
            open_ended.add(name)  # so that a text of nothing but beginnings is not read again and again
            continue
        kept.append(text[begin : found.start()])
        begin = end + len(closing)
    return "".join([*kept, text[begin:].lstrip() if kept else text[begin:]]).strip()
