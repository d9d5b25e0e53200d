"""The native format, line by line: JSON objects with a `type`, of which docs/transfer.md describes every key."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ..errors import InvalidInputError
from ..models import Json, NewRecord, Record
from ..patterns import compile_late
from ..store import StoredVector
from .content import parse_object, tame, tame_value
from .entries import (
    FIELDS,
    NEW_RECORD_FIELDS,
    Damaged,
    Entry,
    Item,
    LinkEntry,
    TitleEntry,
    VectorEntry,
    WordEntry,
)
from .input import Input

FORMAT = "dualrecall"
VERSION = 1
CUT_SHORT = "the export was cut short here: its last line is missing"
# Programs that take these for the end of a line would tear ours.
_LINE_ENDS = compile_late("[\x7f-\x9f\u2028\u2029]")
TIMES = FIELDS[-4:]
KNOWN = frozenset((*FIELDS, "vectors"))


def write_line(type: str, fields: Mapping[str, Json]) -> bytes:
    """Return a line; the same fields always give the same bytes."""
    text = json.dumps({"type": type, **fields}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode("utf-8") + b"\n"


def record_fields(record: Record, base: str) -> dict[str, Json]:
    """Return the fields of a record as seen from the scope `base`; numbers that JSON can't hold become null."""
    fields = {name: getattr(record, name) for name in FIELDS}
    fields["scope"] = below(record.scope, base)
    fields["tags"] = list(record.tags)
    fields["metadata"] = tame(record.metadata)
    fields["payload"] = tame_value(record.payload)
    fields.update({name: show_time(fields[name]) for name in TIMES if fields[name] is not None})
    empty = {name for name in ("scope", "tags", "metadata") if not fields[name]}
    return {name: value for name, value in fields.items() if value is not None and name not in empty}


def vector_fields(vector: StoredVector) -> dict[str, Json]:
    """Return the fields of a vector in a record's line."""
    return {
        "space": vector.space.name,
        "chunk": vector.place,
        "start": vector.start,
        "end": vector.end,
        "given": vector.given,
        "data": base64.b64encode(vector.data).decode("ascii"),
    }


def below(scope: str, base: str) -> str:
    """Return a scope as seen from `base`, which it lies in."""
    return scope[len(base) :].removeprefix("/")


def show_time(time: datetime) -> str:
    """Return a time as ISO 8601 in UTC, with microseconds if it has any."""
    return time.isoformat().replace("+00:00", "Z")


@dataclass(slots=True)
class _Reading:
    """What is known so far of the file that is read."""

    lines: int = 0  # since the header
    ended: bool = False
    spaces: dict[str, tuple[str, int]] = field(default_factory=dict)  # model and dimensions by name


class NativeSource:
    """Reads what `export` wrote."""

    name = "recall"

    def detect(self, file: Input) -> bool:
        """Look for the header."""
        first = file.head.lstrip().split(b"\n", 1)[0]
        return first.startswith(b"{") and b'"header"' in first and f'"{FORMAT}"'.encode() in first

    def read(self, file: Input) -> Iterator[Item]:
        """Yield all lines. Raises InvalidInputError for a newer version of the format, or a file without a header."""
        reading: _Reading | None = None
        number = 0
        for number, raw in file.lines():
            try:
                given = parse_object(raw)
            except InvalidInputError as error:
                if reading is None:
                    break
                reading.lines += 1
                yield Damaged(str(error), number)
                continue
            if given.get("type") == "header":
                if reading is not None and not reading.ended:
                    yield Damaged(CUT_SHORT, number)
                _check_header(given, file.name)
                reading = _Reading()
            elif reading is None:
                break
            else:
                yield from _read_line(given, number, reading)
        if reading is None:
            raise InvalidInputError(f"{file.name} is no export of dualrecall: it does not begin with a header")
        if not reading.ended:
            yield Damaged(CUT_SHORT, number)


def _check_header(given: Mapping[str, Json], name: str) -> None:
    version = given.get("version")
    if given.get("format") != FORMAT or not isinstance(version, int):
        raise InvalidInputError(f"the header of {name} says format {given.get('format')!r}, version {version!r}")
    if version > VERSION:
        raise InvalidInputError(
            f"{name} has version {version} of the format, and this dualrecall knows {VERSION}; a newer one wrote it: "
            "update with pip install -U dualrecall"
        )


def _read_line(given: dict[str, Json], number: int, reading: _Reading) -> Iterator[Item]:
    kind = given.pop("type", None)
    if kind == "end":
        reading.ended = True
        if given.get("lines") != reading.lines:
            yield Damaged(f"{given.get('lines')} lines were written, and {reading.lines} are here", number)
        return
    reading.lines += 1
    try:
        match kind:
            case "record":
                yield _read_record(given, number, reading)
            case "space":
                reading.spaces[_text(given, "name")] = (_text(given, "model"), _whole(given, "dimensions"))
            case "session":
                yield TitleEntry(
                    scope=given.get("scope", ""),
                    session=_text(given, "session"),
                    title=_text(given, "title"),
                    created_at=given.get("created_at"),
                    line=number,
                )
            case "word":
                yield WordEntry(_text(given, "word"))
            case "link":
                yield LinkEntry(
                    source=_text(given, "source"),
                    target=_text(given, "target"),
                    kind=_text(given, "kind"),
                    created_at=_text(given, "created_at"),
                    line=number,
                )
            case _:
                yield Damaged(f"the type {kind!r} is unknown", number)
    except InvalidInputError as error:
        yield Damaged(str(error), number)


def _read_record(given: dict[str, Json], number: int, reading: _Reading) -> Entry:
    fields = {name: given[name] for name in NEW_RECORD_FIELDS if given.get(name) is not None}
    _text(fields, "id")
    return Entry(
        record=NewRecord(**{"text": None, **fields}),
        line=number,
        updated_at=given.get("updated_at"),
        accessed_at=given.get("accessed_at"),
        vectors=_read_vectors(given.get("vectors"), reading),
        ignored=tuple(name for name in given if name not in KNOWN),
    )


def _read_vectors(given: Json, reading: _Reading) -> tuple[VectorEntry, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise InvalidInputError(f"vectors is a list, not {given!r:.60}")
    return tuple(_read_vector(vector, reading) for vector in given)


def _read_vector(given: Json, reading: _Reading) -> VectorEntry:
    if not isinstance(given, dict):
        raise InvalidInputError(f"a vector is an object, not {given!r:.60}")
    space = _text(given, "space")
    if space not in reading.spaces:
        raise InvalidInputError(f"no line before this one says what the space {space!r} is")
    model, dimensions = reading.spaces[space]
    try:
        data = base64.b64decode(_text(given, "data"), validate=True)
    except binascii.Error as error:
        raise InvalidInputError(f"the data of a vector is no base64: {error}") from None
    if len(data) != 4 * dimensions:
        raise InvalidInputError(f"a vector has {len(data)} bytes; {dimensions} numbers take {4 * dimensions}")
    return VectorEntry(
        space=space,
        model=model,
        dimensions=dimensions,
        place=_whole(given, "chunk"),
        start=_whole(given, "start"),
        end=_whole(given, "end"),
        given=given.get("given") is True,
        data=data,
    )


def _text(given: Mapping[str, Json], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} is a string, not {value!r:.60}")
    return value


def _whole(given: Mapping[str, Json], name: str) -> int:
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInputError(f"{name} is a whole number from 0 on, not {value!r:.60}")
    return value
