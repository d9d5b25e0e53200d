"""What was said, as plain text: without what Hermes put around it, and without what was recalled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recall_core import strip_context

ROLES = ("user", "assistant")
MOST = 500_000  # characters of a record; what is longer is kept in parts
# What a compression leaves of earlier turns is no turn.
SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]", "[END OF PRIOR CONTEXT")

_TAG = r"[<＜]\s*/?\s*memory[-_]context\s*[>＞]"
_BLOCK = re.compile(r"<\s*memory[-_]context\s*>.*?<\s*/\s*memory[-_]context\s*>\s*", re.I | re.S)
# A block that was cut off: told from a mere mention by the note that Hermes begins it with.
_OPEN_BLOCK = re.compile(r"<\s*memory[-_]context\s*>\s*\[System note:.*\Z", re.I | re.S)
_LONE_TAG = re.compile(_TAG, re.I)
_ENGLISH = "ok okay yes yep no nope sure thanks thx thank_you hi hello hey bye cool nice great good continue go_on done"
_CHINESE = "好 好的 嗯 嗯嗯 行 可以 是 是的 不 不是 谢谢 多谢 你好 您好 再见 继续 收到 明白 知道了 没事"
_TRIVIAL = frozenset(word.replace("_", " ") for word in f"{_ENGLISH} {_CHINESE}".split())


def plain(content: Any) -> str:
    """Return the content of a message without blocks of recalled memories; of several parts, those that are text."""
    if content is None:
        return ""
    if isinstance(content, list | tuple):
        content = "\n".join(filter(None, map(_part_text, content)))
    text = _BLOCK.sub("", content if isinstance(content, str) else str(content))
    text = _LONE_TAG.sub("", _OPEN_BLOCK.sub("", text))
    return strip_context(text).strip()


def is_trivial(text: str) -> bool:
    """Tell whether a message asks for nothing that could be remembered: "ok", "谢谢", a command."""
    words = text.strip().casefold().strip("!！.。?？,，~～ ")
    return not words or words in _TRIVIAL or text.lstrip().startswith("/")


def spoken(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield role and text of what user and assistant said: no calls of tools, no results, no summaries."""
    for message in messages:
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ROLES or message.get("tool_calls"):
            continue
        text = plain(message.get("content"))
        if text and not text.startswith(SUMMARIES):
            yield str(role), text


def count_turns(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return how often the user has spoken."""
    return sum(1 for message in messages if isinstance(message, Mapping) and message.get("role") == "user")


def parts(text: str) -> list[str]:
    """Return a text in parts that a record can hold."""
    return [text[start : start + MOST] for start in range(0, len(text), MOST)]


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else ""
