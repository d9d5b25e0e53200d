"""Adds a table to TOML, and takes it out again, as text: what is not changed stays as it was written."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping

from ..errors import InvalidInputError
from ..models import Json

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def parse(text: str) -> Json:
    """Return what the text means. Raises InvalidInputError."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"it is no TOML ({error})") from None


def add_table(text: str, name: str, table: Mapping[str, Json]) -> str:
    """Return the text with a table of strings and lists of strings at its end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{name}]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items())]
    gap = "" if not text else newline if text.endswith("\n") else 2 * newline
    return text + gap + newline.join(lines) + newline


def remove_table(text: str, name: str) -> str:
    """Return the text without a table, and those below it."""
    own = re.compile(rf"^[ \t]*\[{re.escape(name)}(\.[^\]]*)?\][^\n]*(\n|\Z)", re.MULTILINE)
    while found := own.search(text):
        after = _HEADER.search(text, found.end())
        text = text[: found.start()].rstrip("\r\n") + ("\n\n" + text[after.start() :] if after else "\n")
    return text
