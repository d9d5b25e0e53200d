"""LlamaIndex's metadata filters, said as filters of recall_core.

They mean what LlamaIndex's own `build_metadata_filter_fn` says, with two differences: where that raises TypeError, for
values of different types, nothing matches; and filters may be nested. ANY, ALL and CONTAINS look into lists alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from recall_core import And, Condition, Filter, Not, Or, derive_name

ALWAYS: Filter = And(())
NEVER: Filter = Or(())
SOURCE_KEYS = ("ref_doc_id", "doc_id", "document_id")  # as LlamaIndex calls the document that a node comes from
_ORDERS = {
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
}


def join_filters(*parts: Filter | None) -> Filter | None:
    """Return the filter that holds where all of these do."""
    given = [part for part in parts if part is not None]
    return given[0] if len(given) == 1 else And(given) if given else None


def among(field: str, values: Sequence[str] | None) -> Filter | None:
    """Return the filter for a field that has one of these values; None restricts nothing."""
    return None if values is None else Condition(field, "in", list(values))


def to_filter(filters: MetadataFilters | None) -> Filter | None:
    """Return the filter that is meant, None if nothing is restricted. Raises ValueError for what can't be compared."""
    if filters is None or not filters.filters:
        return None
    parts = [_read(part) for part in filters.filters]
    match filters.condition:
        case None | FilterCondition.AND:
            return And(parts)
        case FilterCondition.OR:
            return Or(parts)
        case FilterCondition.NOT:
            return Not(Or(parts))
    raise ValueError(f"the condition {filters.condition!r} is not supported; use AND, OR or NOT")


def restricts(filters: MetadataFilters | None) -> bool:
    """Tell whether filters have a condition in them, at any depth; groups of nothing are no condition."""
    parts = [] if filters is None else filters.filters
    return any(restricts(part) if isinstance(part, MetadataFilters) else True for part in parts)


def _read(part: MetadataFilter | MetadataFilters) -> Filter:
    if isinstance(part, MetadataFilters):
        return to_filter(part) or ALWAYS
    field = "@" + part.key if part.key.startswith("@") else part.key
    found = _compare(field, part.operator, part.value)
    if part.key not in SOURCE_KEYS or not _are_texts(part.value):
        return found
    # Metadata of this name goes first; a node without it has the document that it comes from there.
    source = _compare("@source", part.operator, _as_source(part.value))
    return Or(
        (
            And((Condition(field, "is_empty", False), found)),
            And((Condition(field, "is_empty", True), source)),
        )
    )


def _compare(field: str, operator: FilterOperator, value: Any) -> Filter:
    if operator in _ORDERS:
        return Condition(field, _ORDERS[operator], value)  # type: ignore[arg-type]
    if operator not in _COMPARISONS:
        raise ValueError(f"{field}: the operator {operator!r} is not supported")
    return _COMPARISONS[operator](field, value)


def _equals(field: str, value: Any) -> Filter:
    """None equals nothing, not even None."""
    if value is None:
        return NEVER
    values = _alike([value])
    return Condition(field, "eq", value) if len(values) == 1 else Condition(field, "in", values)


def _differs(field: str, value: Any) -> Filter:
    return ALWAYS if value is None else Condition(field, "not_in", _alike([value]))


def _is_among(field: str, value: Any) -> Filter:
    return Condition(field, "in", _alike(_some(value)))


def _is_not_among(field: str, value: Any) -> Filter:
    return Condition(field, "not_in", _alike(_some(value)))


def _holds_any(field: str, value: Any) -> Filter:
    """The list has one of the values. A scalar is not in question: for it, recall_core's any is the same as in."""
    values = _alike(_as_list(value))
    return And((Condition(field, "any", values), Condition(field, "not_in", values)))


def _holds_all(field: str, value: Any) -> Filter:
    values = _as_list(value)
    return And([_holds_any(field, [each]) for each in values]) if values else Condition(field, "is_empty", False)


def _holds(field: str, value: Any) -> Filter:
    return _holds_any(field, [value])


def _has_text(field: str, value: Any) -> Filter:
    """The string has the text in it, upper and lower case told apart. A list that has it as an item does not count."""
    if not isinstance(value, str):
        raise ValueError(f"{field}: text_match takes a string, not {value!r}")
    listed = And((Condition(field, "any", [value]), Condition(field, "not_in", [value])))
    return And((Condition(field, "contains", value), Not(listed)))


def _has_text_of_any_case(field: str, value: Any) -> Filter:
    return Condition(field, "text_match", value)


def _is_empty(field: str, _value: Any) -> Filter:
    return Condition(field, "is_empty", True)


_COMPARISONS: dict[FilterOperator, Callable[[str, Any], Filter]] = {
    FilterOperator.EQ: _equals,
    FilterOperator.NE: _differs,
    FilterOperator.IN: _is_among,
    FilterOperator.NIN: _is_not_among,
    FilterOperator.ANY: _holds_any,
    FilterOperator.ALL: _holds_all,
    FilterOperator.CONTAINS: _holds,
    FilterOperator.TEXT_MATCH: _has_text,
    FilterOperator.TEXT_MATCH_INSENSITIVE: _has_text_of_any_case,
    FilterOperator.IS_EMPTY: _is_empty,
}


def _alike(values: Sequence[Any]) -> list[Any]:
    """Return values with what equals them: a filter of LlamaIndex can't hold booleans, so 1 stands for true as well."""
    booleans = [bool(value) for value in values if isinstance(value, int | float) and value in (0, 1)]
    return [*values, *booleans]


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _some(value: Any) -> list[Any]:
    """Return the values of a list; None equals nothing, not even None."""
    return [each for each in _as_list(value) if each is not None]


def _are_texts(value: Any) -> bool:
    return value is None or all(isinstance(each, str) for each in _as_list(value))


def _as_source(value: Any) -> Any:
    if isinstance(value, list):
        return [derive_name(each) for each in value]
    return None if value is None else derive_name(value)
