"""Filters as a Python predicate: what the SQL of `store.compile` says, on a record in memory."""

from __future__ import annotations

import operator as compare
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from recall_core.models import Json, Record

from .conditions import OPPOSITES, And, Filter, Not, Operator, Or, comparable, resolve_field

_ORDERS = {"gt": compare.gt, "gte": compare.ge, "lt": compare.lt, "lte": compare.le}
_MISSING = object()


def matches(filter: Filter, record: Record) -> bool:
    """Tell whether `filter` holds for `record`."""
    match filter:
        case And():
            return all(matches(part, record) for part in filter.filters)
        case Or():
            return any(matches(part, record) for part in filter.filters)
        case Not():
            return not matches(filter.filter, record)
    name, kind = resolve_field(filter.field)
    stored = record.metadata.get(name, _MISSING) if kind is None else getattr(record, name)
    if filter.operator in OPPOSITES:
        return not _holds(OPPOSITES[filter.operator], stored, filter.value)
    return _holds(filter.operator, stored, filter.value)


def fold_text(text: str) -> str:
    """Return `text` as `text_match` compares it: NFKC-normalised, case-folded."""
    return unicodedata.normalize("NFKC", text).casefold()


def _holds(operator: Operator, stored: object, given: Json) -> bool:
    match operator:
        case "eq":
            return _equal(stored, given)
        case "in":
            return _is_among(stored, given)
        case "any":
            return any(_is_among(item, given) for item in _items(stored))
        case "all":
            return all(_is_among(item, _items(stored)) for item in given)
        case "contains":
            return _contains(stored, given)
        case "text_match":
            return isinstance(stored, str) and fold_text(given) in fold_text(stored)
        case "is_empty":
            return _is_empty(stored) is given
        case _:
            return _is_ordered(operator, stored, given)


def _contains(stored: object, given: Json) -> bool:
    if isinstance(stored, list | tuple):
        return _is_among(given, stored)
    return isinstance(stored, str) and isinstance(given, str) and given in stored


def _is_ordered(operator: Operator, stored: object, given: Json) -> bool:
    kind, value = comparable(stored)
    given_kind, limit = comparable(given)
    return kind == given_kind and bool(_ORDERS[operator](value, limit))


def _is_among(stored: object, given: Iterable[Json]) -> bool:
    return any(_equal(stored, item) for item in given)


def _equal(stored: object, given: object) -> bool:
    kind, value = comparable(stored)
    return kind != "" and (kind, value) == comparable(given)


def _items(stored: object) -> Sequence[object]:
    return stored if isinstance(stored, list | tuple) else (stored,)


def _is_empty(stored: object) -> bool:
    return stored is _MISSING or stored is None or (isinstance(stored, Collection) and not stored)
