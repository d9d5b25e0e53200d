"""Lines of JSON, each with a text: what people write themselves, and what most programs can be made to write."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..errors import InvalidInputError
from ..ids import derive_id
from ..models import Json, NewRecord
from .content import parse_object
from .entries import NEW_RECORD_FIELDS, Damaged, Entry, Item
from .input import Input

MOST_BROKEN = 10  # lines of a file of which none looks like an object and each is reported
NAMES = frozenset(("id", "session"))  # numbers are taken for these, too


class LineSource:
    """Reads lines of JSON. With `keeps_extra` unknown keys become metadata."""

    name = "jsonl"

    def __init__(self, *, keeps_extra: bool = False) -> None:
        self._keeps_extra = keeps_extra

    def detect(self, file: Input) -> bool:
        """Take any file that is not plainly something else, such as many lines none of which begins as an object."""
        if file.is_folder or file.is_sqlite or file.is_zip or b"\0" in file.head:
            return False
        lines = file.head.split(b"\n")
        return len(lines) <= MOST_BROKEN or any(line.lstrip().startswith(b"{") for line in lines)

    def read(self, file: Input) -> Iterator[Item]:
        """Yield the record of each line. One without an id is known again by what it says; of equal ones by the how
        manieth it is.
        """
        seen: dict[str, int] = {}
        for number, raw in file.lines():
            try:
                record, ignored = read_line(raw, keeps_extra=self._keeps_extra)
            except InvalidInputError as error:
                yield Damaged(str(error), number)
                continue
            key = None
            if record.id is None:
                said = derive_id(json.dumps(parse_object(raw), sort_keys=True))
                seen[said] = seen.get(said, 0) + 1
                key = f"{said} {seen[said]}"
            yield Entry(record=record, key=key, line=number, ignored=ignored)


def read_line(raw: bytes, *, keeps_extra: bool = False) -> tuple[NewRecord, tuple[str, ...]]:
    """Return the record of a line, and the keys that it has no place for.

    `time` stands for `created_at`; null and the empty string count as not given. With `keeps_extra` unknown keys go
    into the metadata, unless it has them already. Raises InvalidInputError with the reason why a line can't be used.
    """
    given = parse_object(raw)
    fields = {key: value for key, value in given.items() if key in NEW_RECORD_FIELDS and value not in (None, "")}
    time = given.get("time")
    if time not in (None, ""):
        fields.setdefault("created_at", time)
    text = fields.get("text", "")
    if not isinstance(text, str):
        raise InvalidInputError(f"text is a string, not {text!r:.60}")
    if not text.strip():
        raise InvalidInputError("no text")
    for name in NAMES & fields.keys():
        if isinstance(fields[name], int) and not isinstance(fields[name], bool):
            fields[name] = str(fields[name])
        if not isinstance(fields[name], str):
            raise InvalidInputError(f"{name} is a string, not {fields[name]!r:.60}")
    unknown = tuple(key for key in given if key not in NEW_RECORD_FIELDS and key != "time")
    if keeps_extra and unknown:
        fields["metadata"] = _merge({key: given[key] for key in unknown}, fields.get("metadata"))
        unknown = ()
    return NewRecord(**fields), unknown


def _merge(extra: dict[str, Json], metadata: Json) -> Json:
    if metadata is None:
        return extra
    if not isinstance(metadata, dict):
        return metadata  # refused when it is stored, with the reason
    return {**extra, **metadata}
