"""Changes JSON, with comments and trailing commas or without, as text: what is not changed stays as it was written."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import InvalidInputError
from ..models import Json
from ..patterns import compile_late

_TOKEN = compile_late(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|[{}\[\],:]|[^\s{}\[\],:"/]+|\s+|.', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class _Item:
    """A member of an object, or an item of a list: where it begins, where its value does, and where that ends."""

    key: str | None
    start: int
    value: int
    end: int


def parse(text: str) -> Json:
    """Return what the text means, {} for nothing. Raises InvalidInputError if it is no JSON, comments and trailing
    commas aside.
    """
    with contextlib.suppress(ValueError, RecursionError):  # most files are plain JSON, which this reads far faster
        return json.loads(text)
    tokens = [token.text for token in _significant(text)]
    if not tokens:
        return {}
    following = [*tokens[1:], ""]
    kept = [one for one, after in zip(tokens, following, strict=True) if one != "," or after not in ("}", "]")]
    try:
        return json.loads(" ".join(kept))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"it is no JSON ({error})") from None


def add_member(text: str, path: Sequence[str], value: Json) -> str:
    """Return the text with `value` at `path`: the objects on the way are made if missing, the last key must be new."""
    if next(_significant(text), None) is None:
        gap = "\n" if text.strip("\ufeff") and not text.endswith("\n") else ""
        return text + gap + json.dumps(_nest(path, value), indent=2, ensure_ascii=False) + "\n"
    start, depth = _find_root(text), 0
    for key in path[:-1]:
        found = next((item for item in _items(text, start) if item.key == key), None)
        if found is None:
            break
        start, depth = found.value, depth + 1
    if text[start] != "{":
        raise InvalidInputError(f"{'.'.join(path[:depth]) or 'the whole file'} is no object")
    return _insert(text, start, json.dumps(path[depth], ensure_ascii=False) + ": ", _nest(path[depth + 1 :], value))


def add_item(text: str, path: Sequence[str], value: Json) -> str:
    """Return the text with `value` at the end of the list at `path`, which is made if missing."""
    start = _find(text, path) if next(_significant(text), None) else None
    if start is None:
        return add_member(text, path, [value])
    if text[start] != "[":
        raise InvalidInputError(f"{'.'.join(path)} is no list")
    return _insert(text, start, "", value)


def remove(text: str, path: Sequence[str | int]) -> str:
    """Return the text without the member or item at `path`, with the comma and the line that go with it."""
    start = _find(text, path[:-1])
    items = [] if start is None else list(_items(text, start))
    places = [place for place, item in enumerate(items) if path[-1] in (item.key, place)]
    if not places:
        return text
    place = places[-1]
    first, last = items[place].start, items[place].end
    after = next(_significant(text, last))
    if len(items) == 1 and start is not None:
        closing = next(token for token in _significant(text, last) if token.text != ",")
        if not (text[start + 1 : first] + text[last : closing.start]).strip(" \t\r\n,"):
            return text[: start + 1] + text[closing.start :]
    if after.text == ",":
        return _cut(text, first, after.end)
    if place == 0:
        return _cut(text, first, last)
    comma = next(_significant(text, items[place - 1].end))
    if not text[comma.end : first].strip():
        return text[: comma.start] + text[last:]
    text = _cut(text, first, last)
    return text[: comma.start] + text[comma.end :]


def is_bare(text: str, path: Sequence[str | int]) -> bool:
    """Tell whether there is nothing in the object or list at `path`, not even a comment."""
    start = _find(text, path)
    return start is not None and text[start + 1 :].lstrip()[:1] in ("}", "]")


def _cut(text: str, start: int, end: int) -> str:
    """Return the text without a part, and without its line if nothing else is on that."""
    rest = text[end:].lstrip(" \t")
    if rest.startswith(("\n", "\r\n")):
        start = _line_start(text, start)
    return text[:start] + rest


def _insert(text: str, start: int, head: str, value: Json) -> str:
    """Return the text with a value put at the end of the object or list that begins at `start`."""
    items = list(_items(text, start))
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent_at(text, start)
    inner = _indent_at(text, items[-1].start) if items else outer + _unit(text)
    spread = not items or "\n" in text[start : items[0].start]
    if spread:
        shown = head + json.dumps(value, indent=_unit(text), ensure_ascii=False)
        shown = newline + inner + shown.replace("\n", newline + inner)
    else:
        shown = " " + head + json.dumps(value, ensure_ascii=False)
    if not items:
        close = next(token for token in _significant(text, start + 1))
        between = text[start + 1 : close.start]
        kept = between.rstrip() if between.strip() else ""
        return text[: start + 1] + kept + shown + newline + outer + text[close.start :]
    end = items[-1].end
    trailing = next(token for token in _significant(text, end))
    comma = "" if trailing.text == "," else ","
    at = trailing.end if trailing.text == "," else end
    return text[:at] + comma + shown + text[at:]


def _find_root(text: str) -> int:
    for token in _significant(text):
        if token.text == "{":
            return token.start
        break
    raise InvalidInputError("it is no JSON object")


def _find(text: str, path: Sequence[str | int]) -> int | None:
    start = _find_root(text)
    for key in path:
        found = [item for place, item in enumerate(_items(text, start)) if key in (item.key, place)]
        if not found:
            return None
        start = found[-1].value
    return start


def _items(text: str, start: int) -> Iterator[_Item]:
    """Yield the members of the object, or the items of the list, that begins at `start`; nothing of a plain value."""
    if text[start] not in _CLOSING:
        return
    tokens = _significant(text, start + 1)
    token = next(tokens)
    while token.text != _CLOSING[text[start]]:
        begin, key = token.start, None
        if text[start] == "{":
            key = json.loads(token.text)
            next(tokens)  # the colon
            token = next(tokens)
        value, depth = token.start, 0
        while True:
            depth += token.text in ("{", "[")
            depth -= token.text in ("}", "]")
            end = token.end
            token = next(tokens)
            if depth == 0:
                break
        yield _Item(key, begin, value, end)
        if token.text == ",":
            token = next(tokens)


def _significant(text: str, start: int = 0) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text, start):
        if not match[0].isspace() and not match[0].startswith(("//", "/*")) and match[0] != "\ufeff":
            yield _Token(match[0], match.start())


def _line_start(text: str, at: int) -> int:
    """Return where the white space before `at` begins, its line's end included."""
    return len(text[:at].rstrip(" \t\r\n"))


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _nest(path: Sequence[str], value: Json) -> Json:
    for key in reversed(path):
        value = {key: value}
    return value
