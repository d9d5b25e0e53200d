"""Items of a LangGraph store as records, and back; and what its namespaces and filters mean."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph.store.base import InvalidNamespaceError, Item, MatchCondition, PutOp, SearchItem
from langgraph.store.base.embed import get_text_at_path

from recall_core import And, Condition, Filter, NewRecord, Not, Record, View, derive_id, escape_segment
from recall_core import unescape_segment as unescape
from recall_core.drafting import MAX_TEXT
from recall_core.filters import Operator

KIND = "item"
ALL = Condition("@kind", "eq", KIND)
WHOLE = "$"
PAGE_BREAK = "\f"
COMPARED = 1000  # characters of a text that decide which one is greater
OPERATORS: Mapping[str, Operator] = {"$eq": "eq", "$ne": "ne", "$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}

Namespace = tuple[str, ...]


def to_scope(namespace: Namespace) -> str:
    """Return the scope of a namespace."""
    return "/".join(map(escape_segment, namespace))


def to_namespace(scope: str) -> Namespace:
    """Return the namespace of a scope."""
    return tuple(map(unescape, scope.split("/"))) if scope else ()


def record_id(view: View, namespace: Namespace, key: str) -> str:
    """Return the id of the record of an item."""
    return derive_id("langgraph", KIND, view.scope, *namespace, key)


def check_namespace(namespace: Namespace) -> None:
    """Raise InvalidNamespaceError for what items can't be put in, in a batch and with every version of the host."""
    if not namespace or namespace[0] == "langgraph" or any("\0" in label for label in namespace):
        raise InvalidNamespaceError(
            f"the namespace of an item has at least one label, no NUL, and does not begin with langgraph: {namespace!r}"
        )


def find_texts(op: PutOp, fields: Sequence[str]) -> list[str]:
    """Return what of an item is to be found, one text for each vector: what lies at the paths of the operation, or at
    those of the store, as far as a record can have it.
    """
    if op.index is False or op.value is None:
        return []
    texts, room = [], MAX_TEXT
    for path in op.index or fields:
        for text in _find_texts(op.value, path):
            text = text[: max(room, 0)].replace(PAGE_BREAK, "\n")
            if text.strip():
                texts.append(text)
                room -= len(text) + len(PAGE_BREAK)
    return texts


def to_record(
    view: View, op: PutOp, texts: Sequence[str], vectors: Sequence[Sequence[float]] | None, space: str | None
) -> NewRecord:
    """Return the record of an item, which takes the place of that of the same key. `op.ttl` is in minutes."""
    assert op.value is not None
    vector = list(vectors) if vectors else None
    return NewRecord(
        id=record_id(view, op.namespace, op.key),
        text=PAGE_BREAK.join(texts),
        scope=to_scope(op.namespace),
        kind=KIND,
        metadata=dict(_flatten("", op.value)),
        payload={"key": op.key, "value": op.value, "ttl": op.ttl},
        ttl=None if op.ttl is None else op.ttl * 60,
        vector=vector,
        space=None if vector is None else space,
        on_duplicate="replace",
    )


def to_item(view: View, record: Record) -> Item:
    """Return the item that a record was made of."""
    return Item(
        value=record.payload["value"],
        key=record.payload["key"],
        namespace=_namespace_of(view, record),
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def to_search_item(view: View, record: Record, score: float | None) -> SearchItem:
    """Return a found item; `score` is its relevance from 0 to 1, None if it was not found by the query."""
    return SearchItem(
        namespace=_namespace_of(view, record),
        key=record.payload["key"],
        value=record.payload["value"],
        created_at=record.created_at,
        updated_at=record.updated_at,
        score=score,
    )


def find_where(filter: Mapping[str, Any] | None) -> Filter:
    """Return what a filter on values means: all of its entries hold. Raises ValueError for an unknown operator."""
    return And([ALL, *_find_conditions("", filter or {})])


def matches(namespace: Namespace, condition: MatchCondition) -> bool:
    """Tell whether a namespace begins or ends with a path, in which "*" stands for any label."""
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _namespace_of(view: View, record: Record) -> Namespace:
    return to_namespace(record.scope[len(view.scope) :].removeprefix("/"))


def _find_texts(value: Mapping[str, Any], path: str) -> list[str]:
    """Return the texts at a path; a whole value is read as lines, not as JSON, which says its braces too."""
    return [_describe(value)] if path == WHOLE else get_text_at_path(value, path)


def _describe(value: Any) -> str:
    if isinstance(value, Mapping):
        parts = [(key, _describe(part)) for key, part in value.items()]
        return parts[0][1] if len(parts) == 1 else "\n".join(f"{key}: {text}" for key, text in parts if text)
    if isinstance(value, list | tuple):
        return "\n".join(filter(None, map(_describe, value)))
    return "" if value is None else str(value)


# A value is filtered by its entries, at any depth, as metadata of hidden keys: "_a" and, within it, "_a/b". Lists, and
# the rest of long texts, are compared as a whole: by what is derived from them.


def _flatten(prefix: str, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, part in value.items():
        key = _key(prefix, name)
        if isinstance(part, Mapping):
            yield from _flatten(key, part)
        else:
            yield key, _comparable(part)


def _key(prefix: str, name: object) -> str:
    return f"{prefix or '_'}{'/' if prefix else ''}{escape_segment(str(name))}"


def _comparable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return derive_id("list", json.dumps(value, sort_keys=True))
    return value[:COMPARED] + derive_id(value) if isinstance(value, str) and len(value) > COMPARED else value


def _find_conditions(prefix: str, filter: Mapping[str, Any]) -> Iterator[Filter]:
    for name, wanted in filter.items():
        key = _key(prefix, name)
        if not isinstance(wanted, Mapping):
            yield _equals(key, wanted)
        elif any(str(operator).startswith("$") for operator in wanted):
            yield from (_compare(key, operator, operand) for operator, operand in wanted.items())
        else:
            yield from _find_conditions(key, wanted)


def _compare(key: str, operator: str, operand: Any) -> Filter:
    if operator not in OPERATORS:
        raise ValueError(f"{operator!r} is no operator of a store; there are {', '.join(OPERATORS)}")
    if operator in ("$eq", "$ne"):
        equal = _equals(key, operand)
        return equal if operator == "$eq" else Not(equal)
    return Condition(key, OPERATORS[operator], operand)


def _equals(key: str, wanted: Any) -> Filter:
    if wanted is None:  # so is what is missing
        return And([Condition(key, "is_empty", True), Not(Condition(key, "eq", ""))])
    return Condition(key, "eq", _comparable(wanted))
