"""Adds a table to TOML, and takes it out again, as text: what is not changed stays as it was written."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import InvalidInputError
from ..models import Json

_TOKEN = re.compile(  # a string of any of the four kinds, a comment, a line's end, a bracket, anything else
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|\n|[\[\]{}]|[^\S\n]+|.',
    re.DOTALL,
)
_BARE = re.compile(r"[\w-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table: what it is called, where its header begins, and where the last line of it ends that says something."""

    name: tuple[str, ...]
    start: int
    end: int


def parse(text: str) -> Json:
    """Return what the text means. Raises InvalidInputError."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInputError(f"it is no TOML ({error})") from None


def add_table(text: str, name: Sequence[str], table: Mapping[str, Json]) -> str:
    """Return the text with a table at its end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    header = ".".join(map(_show_key, name))
    lines = [f"[{header}]", *(f"{_show_key(key)} = {_show(value)}" for key, value in table.items())]
    gap = "" if not text.strip("\ufeff") else newline if text.endswith("\n") else 2 * newline
    return text + gap + newline.join(lines) + newline


def remove_table(text: str, name: Sequence[str]) -> str:
    """Return the text without a table, and those below it; comments before the next table stay."""
    for table in reversed(list(_tables(text))):
        if table.name[: len(name)] == tuple(name):
            before, after = text[: table.start], text[table.end :]
            if not after.strip("\r\n") or after.startswith(("\n", "\r\n")):
                kept = before.rstrip("\r\n")
                before = kept and kept + ("\r\n" if before.endswith("\r\n") else "\n")
            text = before + (after if before else after.lstrip("\r\n"))
    return text


def _tables(text: str) -> Iterator[_Table]:
    """Yield the tables with a header of their own, in their order."""
    name: tuple[str, ...] = ()
    start = end = depth = header_end = 0
    at_line_start = True
    for token in _TOKEN.finditer(text):
        if token.start() < header_end:
            pass  # what is read as one already
        elif token[0] == "[" and at_line_start and depth == 0:
            line_end = text.find("\n", token.start())
            line = text[token.start() : line_end if line_end >= 0 else len(text)]
            if name:
                yield _Table(name, start, end)
            name, start, header_end = _read_header(line), token.start(), token.start() + len(line)
        else:
            depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        blank = token[0].isspace() or token[0] == "\ufeff"
        if not blank and not token[0].startswith("#"):
            found = text.find("\n", token.end() - 1)
            end = found + 1 if found >= 0 else len(text)
        at_line_start = token[0] == "\n" or (at_line_start and blank)
    if name:
        yield _Table(name, start, end)


def _read_header(line: str) -> tuple[str, ...]:
    names: list[str] = []
    try:
        found: Json = tomllib.loads(line.rstrip())
    except tomllib.TOMLDecodeError:
        return ("",)
    while found:
        found = found[0] if isinstance(found, list) else found
        key = next(iter(found), None)
        if key is None:
            break
        names.append(key)
        found = found[key]
    return tuple(names)


def _show_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _show(value: Json) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_show_key(key)} = {_show(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_show, value)) + "]"
    if isinstance(value, str | bool | int | float):
        return json.dumps(value, ensure_ascii=False)
    return str(value)  # dates and times
