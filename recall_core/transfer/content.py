"""The content of messages: the text of its parts, and metadata as it can be stored."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..models import Json
from ..text.clean import MAX_DEPTH

TEXT_PARTS = frozenset(("text", "input_text", "output_text"))


def find_text(content: Json) -> str:
    """Return the text of a message's content: a string, or the texts in a list of parts, separated by blank lines.

    A part is a string or an object with a text; images, tool calls and the like have none.
    """
    parts = content if isinstance(content, list) else [content]
    return "\n\n".join(text for text in map(_part_text, parts) if text.strip())


def _part_text(part: Json) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and part.get("type", "text") in TEXT_PARTS and isinstance(part.get("text"), str):
        return str(part["text"])
    return ""


def tame(metadata: Mapping[str, Json]) -> dict[str, Json]:
    """Return metadata without the numbers that JSON can't hold: NaN and infinity (`1e999`) become null."""
    return {key: _tame(value, 1) for key, value in metadata.items()}


def _tame(value: Json, depth: int) -> Json:
    if depth > MAX_DEPTH:
        return value  # refused when it is stored, with the reason
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _tame(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_tame(item, depth + 1) for item in value]
    return value
