"""Filters written as mappings, such as `{"lang": "zh", "stars": {"$gte": 3}}`."""

from __future__ import annotations

from collections.abc import Mapping

from recall_core.errors import InvalidInputError
from recall_core.models import Json

from .conditions import MAX_DEPTH, OPERATORS, And, Condition, Filter, Not, Or

_SHORT_NAMES = {"not_in": "nin", "text_match": "text", "is_empty": "empty"}
_MAPPING_OPERATORS = {f"${_SHORT_NAMES.get(operator, operator)}": operator for operator in OPERATORS}


def parse_where(where: Mapping[str, Json] | Filter | None) -> Filter | None:
    """Return the filter that a mapping such as `{"lang": "zh", "stars": {"$gte": 3}}` means; all of it has to hold.

    Beside fields a mapping takes "$and" and "$or" with a list of mappings and "$not" with one. A metadata key that
    starts with "$" is written with "$$". Filters pass through, an empty mapping is None.
    Raises InvalidInputError for anything else.
    """
    if where is None or isinstance(where, Condition | And | Or | Not):
        return where
    if isinstance(where, Mapping) and not where:
        return None
    return _parse(where, 1)


def _parse(where: object, depth: int) -> Filter:
    if isinstance(where, Condition | And | Or | Not):
        return where
    if not isinstance(where, Mapping):
        raise InvalidInputError(f"a filter is a mapping such as {{'stars': {{'$gte': 3}}}}, not {where!r}")
    if depth > MAX_DEPTH:
        raise InvalidInputError(f"the filter is nested more than {MAX_DEPTH} deep")
    parts = [part for key, value in where.items() for part in _parse_entry(key, value, depth)]
    return parts[0] if len(parts) == 1 else And(parts)


def _parse_entry(key: object, value: Json, depth: int) -> list[Filter]:
    if not isinstance(key, str):
        raise InvalidInputError(f"a filter's keys are strings, not {key!r}")
    if key in ("$and", "$or"):
        if not isinstance(value, list | tuple):
            raise InvalidInputError(f"{key} takes a list of mappings, not {value!r}")
        parts = [_parse(part, depth + 1) for part in value]
        return [And(parts) if key == "$and" else Or(parts)]
    if key == "$not":
        return [Not(_parse(value, depth + 1))]
    if key.startswith("$") and not key.startswith("$$"):
        raise InvalidInputError(
            f"{key!r} can't stand here; it takes $and, $or, $not, or a field with its operators below it "
            f"({', '.join(_MAPPING_OPERATORS)}). If you mean the metadata key {key!r}, write {'$' + key!r}"
        )
    return _parse_field(key.removeprefix("$") if key.startswith("$$") else key, value)


def _parse_field(field: str, value: Json) -> list[Filter]:
    if isinstance(value, list | tuple):
        raise InvalidInputError(f"{field}: a list can't be compared as a whole; write {{'$in': …}} or {{'$any': …}}")
    if not isinstance(value, Mapping):
        return [Condition(field, "eq", value)]
    if not value or not all(key in _MAPPING_OPERATORS for key in value):
        known = ", ".join(_MAPPING_OPERATORS)
        raise InvalidInputError(f"{field}: {dict(value)!r} is no mapping of operators to values; there are {known}")
    return [Condition(field, _MAPPING_OPERATORS[key], given) for key, given in value.items()]
