"""What importers share: JSON as it comes, the text of a message's parts, and metadata as it can be stored."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from ..errors import InvalidInputError
from ..models import Json
from ..text.clean import MAX_DEPTH

TEXT_PARTS = ("text", "input_text", "output_text")


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
    """Return metadata as it can be stored: NaN, infinity (`1e999`) and what is nested too deep become null."""
    return {key: tame_value(value, 1) for key, value in metadata.items()}


def tame_value(value: Json, depth: int = 0) -> Json:
    """Return any JSON as it can be stored."""
    if depth >= MAX_DEPTH and isinstance(value, Mapping | list):
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: tame_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [tame_value(item, depth + 1) for item in value]
    return value


def parse_object(raw: bytes) -> dict[str, Json]:
    """Return the JSON object of a line. Raises InvalidInputError."""
    try:
        value = json.loads(raw.decode("utf-8-sig"), parse_constant=refuse_constant)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise InvalidInputError("not usable: nested too deep") from None
    except ValueError as error:
        raise InvalidInputError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidInputError(f"not a JSON object but {type(value).__name__}")
    return value


def refuse_constant(name: str) -> Json:
    """Raise ValueError for NaN and infinity, which Python's json takes."""
    raise ValueError(f"{name} is no JSON value")
