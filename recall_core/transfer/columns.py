"""Columns of other programs' tables, which each of them names and fills in its own way."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..drafting import MAX_NAME, check_importance
from ..errors import InvalidInputError
from ..models import Json
from ..patterns import compile_late
from ..scopes import escape_segment
from ..times import MICROS_PER_SECOND, Time, to_micros
from .content import find_text, tame
from .foreign import ForeignDatabase

# Numbers from here on are milliseconds, microseconds, nanoseconds since 1970: seconds would be beyond the year 5138.
UNITS = ((1e17, 1_000_000_000), (1e14, 1_000_000), (1e11, 1000))
ROLES = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant", "agent": "assistant"}
GRADES = {"critical": 1.0, "high": 0.9, "medium": 0.5, "normal": 0.5, "low": 0.1}
SCALES = (1.0, 10.0, 100.0)
DURATION = compile_late(r"(\d+(?:\.\d+)?)\s*([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
SEPARATORS = compile_late(r"[,;，；、\n]")
DELETED = "deleted in the other program"
# What only serves the other program's search, or is made anew here.
DERIVED = compile_late(
    r"(?i)(.*_)?(embedding|embedded|embedding_\w+|vector|vec|vectors|hash|dedup_key|tokens|token_count|tokenized"
    r"|segmented|fts|rowid|simhash|norm)"
)


class Row:
    """One row by its columns' names. `take` finds a value by the first of several names that has one, once."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._left = dict(values)

    def take(self, *names: str) -> Any:
        """Return the value of the first of these columns that is neither null nor empty, None if there is none."""
        found = None
        for name in names:
            value = self._left.get(name)
            if found is None and value not in (None, "", b""):
                found = self._left.pop(name)
        return found

    def rest(self) -> dict[str, Json]:
        """Return what was not taken and can be metadata."""
        left = {
            name: _read_json(value)
            for name, value in self._left.items()
            if value not in (None, "") and not isinstance(value, bytes) and not DERIVED.fullmatch(name)
        }
        return tame(left)


def read_rows(database: ForeignDatabase, table: str, order: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the rows of a table with all of its columns."""
    columns = database.tables[table]
    for values in database.rows(table, columns, order):
        yield Row(dict(zip(columns, values, strict=True)))


def has_any(database: ForeignDatabase, table: str, *names: Iterable[str]) -> bool:
    """Tell whether there is a table that has, of each of these groups of names, one as a column."""
    columns = set(database.tables.get(table, ()))
    return table in database.tables and all(columns & set(group) for group in names)


def is_deleted(row: Row) -> bool:
    """Tell whether the other program only keeps a row, marked as deleted or out of use. Takes the marks."""
    marks = [row.take(name) for name in ("deleted_at", "is_deleted", "deleted", "forgotten_at")]
    uses = [row.take(name) for name in ("is_active", "active")]
    return any(mark not in (None, 0, "0") for mark in marks) or any(use in (0, "0") for use in uses)


def read_text(value: Any) -> str:
    """Return the text of a message: itself, or of its parts if it is a JSON list of them."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        parts = _read_json(value)
        if isinstance(parts, list) and parts and all(isinstance(part, dict) and "type" in part for part in parts):
            return find_text(parts)
    return str(value) if isinstance(value, str | int | float) else ""


def read_time(value: Any) -> float | str | None:
    """Return a time as `to_micros` takes it: seconds, or ISO 8601. None if it is none.

    Numbers may be seconds, milliseconds, microseconds or nanoseconds since 1970, also as text; times without a zone
    are UTC.
    """
    if isinstance(value, str):
        text = value.strip().replace("/", "-")
        number = _read_number(text) if not re.fullmatch(r"\d{8}", text) else None
        time: Time | None = re.sub(r" (?=[+-]\d\d:?\d\d$)", "", text) if number is None else _to_seconds(number)
    else:
        time = _to_seconds(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    try:
        if time is not None:
            to_micros(time)
    except InvalidInputError:
        return None
    return time if isinstance(time, float | str) else None


def read_ttl(value: Any) -> float | None:
    """Return a time to live in seconds: a number of them, or a text such as 30d or 7d12h. None: for ever."""
    if isinstance(value, str):
        found = DURATION.findall(value.lower())
        number = _read_number(value)
        value = sum(float(count) * SECONDS[unit] for count, unit in found) if number is None else number
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return None
    return float(value)


def read_tags(value: Any) -> tuple[str, ...]:
    """Return tags: of a JSON list, or of a text with commas between them."""
    read = _read_json(value)
    parts = read if isinstance(read, list) else SEPARATORS.split(read) if isinstance(read, str) else []
    names = (read_name(part) for part in parts)
    return tuple(dict.fromkeys(name for name in names if name))


def read_metadata(value: Any) -> dict[str, Json]:
    """Return a JSON object; anything else stands under the key "metadata"."""
    read = _read_json(value)
    if isinstance(read, dict):
        return tame({str(key): item for key, item in read.items()})
    return {} if read in (None, "", [], "null") else tame({"metadata": read})


def read_name(value: Any) -> str | None:
    """Return an id, a session or a tag: without control characters, and not too long."""
    if value is None or isinstance(value, bool | bytes | list | dict):
        return None
    shown = "".join(" " if unicodedata.category(character) in ("Cc", "Cs") else character for character in str(value))
    return shown.strip()[:MAX_NAME] or None


def read_role(value: Any) -> str | None:
    """Return a role by the name that it has here."""
    name = read_name(value)
    return None if name is None else ROLES.get(name.lower(), name)


def read_whole(value: Any) -> int | None:
    """Return a whole number, None for anything else."""
    number = _read_number(value)
    return int(number) if number is not None and number == int(number) and abs(number) < 2**53 else None


def read_importance(value: Any, scale: float = 1.0) -> float | None:
    """Return an importance from 0 to 1, of one from 0 to `scale` or a word such as "high"; None for anything else."""
    if isinstance(value, str) and value.strip().lower() in GRADES:
        return GRADES[value.strip().lower()]
    number = _read_number(value)
    return None if number is None else check_importance(min(1.0, max(0.0, number / scale)))


def find_scale(database: ForeignDatabase, table: str, column: str) -> float:
    """Return how far a column of importances goes: to 1, 10 or 100."""
    if not database.has(table, column):
        return SCALES[0]
    numbers = (_read_number(value) for (value,) in database.rows(table, [column]))
    largest = max((number for number in numbers if number is not None), default=1.0)
    return next((scale for scale in SCALES if largest <= scale), SCALES[-1])


def find_scope(path: Any, *, user: Any = None) -> str:
    """Return the scope of a path-like label, and else that of a user; "" if there is neither."""
    label = read_name(path)
    if label is not None:
        return "/".join(escape_segment(part) for part in label.split("/") if part)
    name = read_name(user)
    return "" if name is None else f"user/{escape_segment(name)}"


def take_scope(row: Row, paths: Sequence[str], users: Sequence[str]) -> str:
    """Return the scope that a row's columns name: of a path-like label, and else of a user."""
    path = row.take(*paths)
    return find_scope(path, user=None if path is not None else row.take(*users))


def find_expiry(created: float | str | None, ttl: float | None) -> float | None:
    """Return when what was made at `created` and lives for `ttl` seconds ends, None if that is not known."""
    if created is None or ttl is None:
        return None
    end = to_micros(created) / MICROS_PER_SECOND + ttl
    return end if read_time(end) is not None else None


def _to_seconds(number: float) -> float:
    unit = next((unit for least, unit in UNITS if abs(number) >= least), 1)
    return number / unit


def _read_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _read_json(value: Any) -> Json:
    """Return what a text of JSON says, anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{", '"'):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
