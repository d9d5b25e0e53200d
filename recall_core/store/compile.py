"""Turns filters and selections into SQL conditions with every key and value bound.

A clause reads a table or alias `record` with one column for each field of a record: metadata and tags as JSON text,
times as integer microseconds. It is 1 or 0 and never NULL, so it can be negated, and agrees with
`filters.matches` and `filters.selects`. It stands in parentheses wherever it has more than one term.

Numbers in metadata meet SQLite's own reading of JSON, which before SQLite 3.53 may miss the nearest float by one unit
in the last place. Given numbers are therefore bound as JSON and read by the same code: equal numbers stay equal in
every version, and only neighbouring floats, or an integer beyond 64 bits and a float, may be taken for each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recall_core import filters
from recall_core.filters import OPPOSITES, And, Condition, FieldKind, Filter, Not, Or, Selection
from recall_core.models import Json
from recall_core.scopes import ROOT, SEPARATOR
from recall_core.times import to_micros

SQLValue = None | int | float | str | bytes

FOLD_FUNCTION = "recall_fold"
"""The name under which a connection must register `fold_text`: one argument, deterministic."""

_SYMBOLS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_AFTER_SEPARATOR = chr(ord(SEPARATOR) + 1)


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition in SQL and the values of its question marks, in their order."""

    sql: str
    bindings: tuple[SQLValue, ...] = ()


ALWAYS = Clause("1")
NEVER = Clause("0")
# Empty lists and objects are written with two characters. No braces here: callers put clauses into format strings.
_ENTRY_IS_FILLED = Clause(
    "CASE entry.type WHEN 'null' THEN 0 WHEN 'text' THEN entry.value <> '' "
    "WHEN 'array' THEN length(entry.value) > 2 WHEN 'object' THEN length(entry.value) > 2 ELSE 1 END"
)


def compile_selection(selection: Selection) -> Clause:
    """Return the condition that holds for the records a read of `selection` may see."""
    return _join([compile_scope(selection.scope), *map(compile_filter, filters.selection_filters(selection))], "AND")


def compile_filter(filter: Filter) -> Clause:
    """Return the condition that holds where `filter` does."""
    match filter:
        case And():
            return _join(map(compile_filter, filter.filters), "AND")
        case Or():
            return _join(map(compile_filter, filter.filters), "OR")
        case Not():
            return _negate(compile_filter(filter.filter))
    if filter.operator in OPPOSITES:
        return _negate(compile_filter(replace(filter, operator=OPPOSITES[filter.operator])))
    name, kind = filters.resolve_field(filter.field)
    if kind is None:
        return _compile_metadata(name, filter)
    return _compile_tags(filter) if kind == "list" else _compile_column(f"record.{name}", kind, filter)


def fold_text(value: SQLValue) -> str | None:
    """Return a string as `text_match` compares it, None for any other value: the SQL function `recall_fold`."""
    return filters.fold_text(value) if isinstance(value, str) else None


def compile_scope(scope: str) -> Clause:
    """Return the condition that holds for the records of a scope and its subtree."""
    # Two ranges that an index on scope can serve; the subtree of "a" lies between "a/" and "a0", "ab" does not.
    if scope == ROOT:
        return ALWAYS
    below = "record.scope > ? AND record.scope < ?"
    return Clause(f"(record.scope = ? OR ({below}))", (scope, scope + SEPARATOR, scope + _AFTER_SEPARATOR))


def _compile_column(column: str, kind: FieldKind, condition: Condition) -> Clause:
    operator, value = condition.operator, condition.value
    match operator:
        case "eq":
            return Clause(f"{column} IS ?", (_bind(value),))
        case "in" | "any":
            return _column_among(column, value)
        case "all":  # a column is its own only item
            wanted = {_bind(item) for item in value}
            return NEVER if len(wanted) > 1 else _join([Clause(f"{column} IS ?", (item,)) for item in wanted], "AND")
        case "contains":
            return Clause(f"({column} IS NOT NULL AND instr({column}, ?) > 0)", (value,))
        case "text_match":
            matching = f"instr({FOLD_FUNCTION}({column}), ?) > 0"
            return Clause(f"({column} IS NOT NULL AND {matching})", (fold_text(value),))
        case "is_empty":
            empty = Clause(f"ifnull({column}, '') = ''" if kind == "text" else f"{column} IS NULL")
            return empty if value else _negate(empty)
    return Clause(f"({column} IS NOT NULL AND {column} {_SYMBOLS[operator]} ?)", (_bind(value),))


def _column_among(column: str, values: Sequence[Json]) -> Clause:
    known = [_bind(value) for value in values if value is not None]
    among = Clause(f"({column} IS NOT NULL AND {column} IN (SELECT value FROM json_each(?)))", (_dump(known),))
    return among if len(known) == len(values) else _join([among, Clause(f"{column} IS NULL")], "OR")


def _compile_tags(condition: Condition) -> Clause:
    value = condition.value
    match condition.operator:
        case "any":
            return _tag_exists(_among("item", value))
        case "contains":
            return _tag_exists(_among("item", (value,)))
        case "all":
            return _every_wanted(value, _tag_exists(_same_as_wanted("item")))
    empty = Clause("json_array_length(record.tags) = 0")
    return empty if value else _negate(empty)


def _tag_exists(test: Clause) -> Clause:
    return Clause(f"EXISTS (SELECT 1 FROM json_each(record.tags) AS item WHERE {test.sql})", test.bindings)


def _compile_metadata(key: str, condition: Condition) -> Clause:
    operator, value = condition.operator, condition.value
    match operator:
        case "eq":
            return _entry_exists(key, _among("entry", (value,)))
        case "in":
            return _entry_exists(key, _among("entry", value))
        case "any":
            return _entry_exists(key, _has_item(lambda alias: _among(alias, value), scalar=True))
        case "all":
            return _every_wanted(value, _entry_exists(key, _has_item(_same_as_wanted, scalar=True)))
        case "contains":
            return _entry_exists(key, _contains(value))
        case "text_match":
            matching = f"instr({FOLD_FUNCTION}(entry.value), ?) > 0"
            return _entry_exists(key, Clause(f"(entry.type = 'text' AND {matching})", (fold_text(value),)))
        case "is_empty":
            filled = _entry_exists(key, _ENTRY_IS_FILLED)
            return _negate(filled) if value else filled
    return _entry_exists(key, _ordered(_SYMBOLS[operator], value))


def _entry_exists(key: str, test: Clause) -> Clause:
    entries = "SELECT 1 FROM json_each(record.metadata) AS entry"
    return Clause(f"EXISTS ({entries} WHERE entry.key = ? AND {test.sql})", (key, *test.bindings))


def _ordered(symbol: str, value: str | int | float) -> Clause:
    if isinstance(value, str):
        return Clause(f"(entry.type = 'text' AND entry.value {symbol} ?)", (value,))
    number = "json_extract(?, '$')"
    return Clause(f"(entry.type IN ('integer', 'real') AND entry.value {symbol} {number})", (_dump(value),))


def _contains(value: Json) -> Clause:
    item = _has_item(lambda alias: _among(alias, (value,)), scalar=False)
    if not isinstance(value, str):
        return item
    return _join([item, Clause("(entry.type = 'text' AND instr(entry.value, ?) > 0)", (value,))], "OR")


def _has_item(test: Callable[[str], Clause], *, scalar: bool) -> Clause:
    """Return the condition that an item of the entry's list passes `test`, or the entry itself where it is a scalar."""
    # CASE keeps other values from being read as JSON, in whatever order SQLite evaluates.
    items = "json_each(CASE entry.type WHEN 'array' THEN entry.value ELSE '[]' END) AS item"
    inner = test("item")
    among = Clause(f"EXISTS (SELECT 1 FROM {items} WHERE {inner.sql})", inner.bindings)
    return _join([test("entry"), among], "OR") if scalar else among


def _among(alias: str, values: Iterable[Json]) -> Clause:
    """Return the condition that a row of json_each is one of the scalars `values`."""
    texts, numbers, types = [], [], set()
    for value in values:
        if isinstance(value, str):
            texts.append(value)
        elif value is None or isinstance(value, bool):
            types.add(_dump(value))  # json_each calls these values' types as JSON writes them
        else:
            numbers.append(value)
    tests = [Clause(f"{alias}.type = ?", (name,)) for name in sorted(types)]
    if texts:
        tests.append(_value_among(alias, "'text'", texts))
    if numbers:
        tests.append(_value_among(alias, "'integer', 'real'", numbers))
    return _join(tests, "OR")


def _value_among(alias: str, types: str, values: Sequence[str | int | float]) -> Clause:
    # One JSON array, whatever its length: SQLite limits the number of bound values.
    given = "SELECT value FROM json_each(?)"
    return Clause(f"({alias}.type IN ({types}) AND {alias}.value IN ({given}))", (_dump(values),))


def _every_wanted(values: Sequence[Json], found: Clause) -> Clause:
    missing = f"SELECT 1 FROM json_each(?) AS wanted WHERE NOT {found.sql}"
    return Clause(f"(NOT EXISTS ({missing}))", (_dump(values), *found.bindings))


def _same_as_wanted(alias: str) -> Clause:
    numbers = "('integer', 'real')"
    same_type = f"({alias}.type = wanted.type OR ({alias}.type IN {numbers} AND wanted.type IN {numbers}))"
    return Clause(f"({same_type} AND {alias}.value IS wanted.value)")


def _join(clauses: Iterable[Clause], word: str) -> Clause:
    """Return the clauses joined by AND or OR, with what changes nothing left out."""
    neutral = ALWAYS if word == "AND" else NEVER
    parts = [clause for clause in clauses if clause != neutral]
    if len(parts) < 2:
        return parts[0] if parts else neutral
    sql = f" {word} ".join(part.sql for part in parts)
    return Clause(f"({sql})", tuple(value for part in parts for value in part.bindings))


def _negate(clause: Clause) -> Clause:
    return Clause(f"(NOT {clause.sql})", clause.bindings)


def _bind(value: Json) -> SQLValue:
    """Return a scalar as a column holds it."""
    if isinstance(value, datetime):
        return to_micros(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value  # type: ignore[no-any-return]


def _dump(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
