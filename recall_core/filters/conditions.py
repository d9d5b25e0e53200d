"""The parts of a filter: conditions on one field, and what joins them. They are checked as they are made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Literal, get_args

from recall_core.errors import InvalidInputError
from recall_core.models import Json
from recall_core.times import from_micros, to_micros

Operator = Literal[
    "eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in", "any", "all", "contains", "text_match", "is_empty"
]
FieldKind = Literal["text", "number", "time", "list"]

OPERATORS: tuple[Operator, ...] = get_args(Operator)
OPPOSITES: Mapping[Operator, Operator] = MappingProxyType({"ne": "eq", "not_in": "in"})
_KINDS: tuple[tuple[FieldKind, tuple[str, ...]], ...] = (
    ("text", ("id", "scope", "session", "role", "kind", "text", "source")),
    ("number", ("turn", "importance")),
    ("time", ("created_at", "updated_at", "accessed_at", "expires_at")),
    ("list", ("tags",)),
)
RECORD_FIELDS: Mapping[str, FieldKind] = MappingProxyType({name: kind for kind, names in _KINDS for name in names})
MAX_DEPTH = 32
MAX_CONDITIONS = 500

_ORDERS = ("gt", "gte", "lt", "lte")
_LIST_OPERATORS = ("in", "not_in", "any", "all")
_TEXT_OPERATORS = ("contains", "text_match")
_TAG_OPERATORS = ("any", "all", "contains", "is_empty")


@dataclass(frozen=True, slots=True)
class Condition:
    """One field compared with one value; raises InvalidInputError if the two can't be compared.

    Lists become tuples, and times of a record's time fields aware datetimes.
    """

    field: str
    operator: Operator
    value: Json = None

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise InvalidInputError(f"there is no operator {self.operator!r}; the operators are {', '.join(OPERATORS)}")
        object.__setattr__(self, "value", _check_value(self.field, self.operator, self.value))


@dataclass(frozen=True, slots=True)
class _Group:
    filters: Sequence[Filter]

    def __post_init__(self) -> None:
        if not isinstance(self.filters, Iterable):
            raise InvalidInputError(f"{type(self).__name__} takes a list of filters, not {self.filters!r}")
        object.__setattr__(self, "filters", tuple(self.filters))
        _check_size(self)


class And(_Group):
    """All of the filters hold; with none in it, it always holds."""

    __slots__ = ()


class Or(_Group):
    """At least one of the filters holds; with none in it, it never holds."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Not:
    """The filter does not hold."""

    filter: Filter

    def __post_init__(self) -> None:
        _check_size(self)


Filter = Condition | And | Or | Not


def resolve_field(field: str) -> tuple[str, FieldKind | None]:
    """Return the name that `Condition.field` means and the kind of the record's field, None for a metadata key."""
    if not isinstance(field, str):
        raise InvalidInputError(f"a field is '@' and a record's field, or a metadata key, not {field!r}")
    if not field.startswith("@"):
        return _check_text(field), None
    if field.startswith("@@"):
        return _check_text(field[1:]), None
    name = field[1:]
    if name not in RECORD_FIELDS:
        known = ", ".join(f"@{known}" for known in RECORD_FIELDS)
        raise InvalidInputError(
            f"a record has no field {field!r}; the fields are {known}. "
            f"If you mean the metadata key {field!r}, write {'@' + field!r}"
        )
    return name, RECORD_FIELDS[name]


def holds_always(filter: Filter) -> bool:
    """Tell whether a filter has no condition in it, only groups all of which have to hold."""
    return isinstance(filter, And) and all(holds_always(part) for part in filter.filters)


def comparable(value: object) -> tuple[str, Json]:
    """Return the type that a scalar compares by, and its value; no type for what equals nothing."""
    match value:
        case None:
            return "null", None
        case bool():
            return "bool", value
        case int() if -(2**63) <= value < 2**63:
            return "number", value
        case int():  # SQLite reads these from JSON as floats
            return "number", _round(value)
        case float():
            return "number", value
        case str():
            return "text", value
        case datetime():
            return "time", value
    return "", None


def _round(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _check_value(field: str, operator: Operator, value: Json) -> Json:
    """Return the value as a condition keeps it."""
    _, kind = resolve_field(field)
    if operator not in (allowed := _allowed_operators(kind)):
        raise InvalidInputError(f"{field} can't be compared by {operator}; it takes {', '.join(allowed)}")
    if operator == "is_empty":
        if value is None or isinstance(value, bool):
            return value is not False
        raise InvalidInputError(f"{field}: is_empty takes True or False, not {value!r}")
    if operator not in _LIST_OPERATORS:
        return _check_scalar(field, operator, kind, value)
    if not isinstance(value, list | tuple | set | frozenset):
        raise InvalidInputError(f"{field}: {operator} takes a list of values, not {value!r}")
    return tuple(_check_scalar(field, operator, kind, item) for item in value)


def _check_scalar(field: str, operator: Operator, kind: FieldKind | None, value: Json) -> Json:
    if kind == "time" and value is not None:
        value = from_micros(to_micros(value, field), field)
    elif isinstance(value, date):
        raise InvalidInputError(
            f"{field} holds no times; store them as ISO 8601 strings, or numbers, and compare those"
        )
    wanted = _wanted_types(operator, kind)
    found, compared = comparable(value)
    if found not in wanted:
        hint = "; for a list there are in, any and all" if isinstance(value, list | tuple) else ""
        raise InvalidInputError(f"{field}: {operator} takes {' or '.join(wanted)}, not {value!r}{hint}")
    if found == "number" and not math.isfinite(compared):
        raise InvalidInputError(f"{field}: {value!r} is no number that JSON can hold; leave the condition out")
    return _check_text(value) if found == "text" else value


def _allowed_operators(kind: FieldKind | None) -> Sequence[str]:
    if kind == "list":
        return _TAG_OPERATORS
    return OPERATORS if kind in (None, "text") else [name for name in OPERATORS if name not in _TEXT_OPERATORS]


def _wanted_types(operator: Operator, kind: FieldKind | None) -> Sequence[str]:
    """Return the types of a value that an operator takes for a kind of field."""
    if kind == "list" or operator == "text_match" or (kind == "text" and operator == "contains"):
        return ("text",)
    if operator in _ORDERS:
        return ("number", "text") if kind is None else (kind,)
    return ("null", "bool", "number", "text") if kind is None else ("null", kind)


def _check_text(text: str) -> str:
    bad = next((c for c in text if c == "\0" or "\ud800" <= c <= "\udfff"), None)
    if bad is not None:
        raise InvalidInputError(f"{text[:80]!r} has the character {bad!r}, write U+FFFD, which is stored in its place")
    return text


def _check_size(group: object) -> None:
    depth, conditions = _measure(group)
    if depth > MAX_DEPTH:
        raise InvalidInputError(f"the filter is nested {depth} deep, at most {MAX_DEPTH} are allowed")
    if conditions > MAX_CONDITIONS:
        raise InvalidInputError(
            f"the filter has {conditions} conditions, at most {MAX_CONDITIONS} are allowed; "
            "one condition takes a list of any length: in, not_in, any, all"
        )


def _measure(filter: object) -> tuple[int, int]:
    """Return how deep a filter is nested and how many conditions (or empty groups) it has."""
    match filter:
        case Condition():
            return 1, 1
        case _Group():
            sizes = [_measure(part) for part in filter.filters]
            return 1 + max((depth for depth, _ in sizes), default=0), sum(count for _, count in sizes) or 1
        case Not():
            depth, count = _measure(filter.filter)
            return depth + 1, count
    raise InvalidInputError(f"a filter is a Condition, And, Or or Not, not {filter!r}; parse_where reads mappings")
