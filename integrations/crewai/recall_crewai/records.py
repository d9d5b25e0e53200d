"""CrewAI's memory records as records of a memory, and back; and what its filters mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import NoneType
from typing import Any

from crewai.memory.types import MemoryRecord
from pydantic_core import to_jsonable_python

from recall_core import And, Condition, Filter, NewRecord, Not, Or, Record, derive_name
from recall_core.revision import Revision

from .paths import to_path, to_scope

PRIVATE = "private"  # the kind of records that only their source recalls; the importer of CrewAI's files has it, too
PUBLIC = "memory"
ACCESSED, SOURCE = "last_accessed", "source"  # in the payload; the latter where no record can have such a source


def to_fields(record: MemoryRecord) -> dict[str, Any]:
    """Return what `Revision` and, with an id, `NewRecord` take of a record, but for its vector."""
    source = derive_name(record.source) if record.source else None
    renamed = record.source and source != record.source
    return {
        "text": record.content,
        "scope": to_scope(record.scope),
        "kind": PRIVATE if record.private else PUBLIC,
        "tags": [" ".join(category.split()) for category in record.categories if category.strip()],
        "metadata": to_json(record.metadata),
        "payload": {
            ACCESSED: _to_naive(record.last_accessed).isoformat(),
            **({SOURCE: record.source} if renamed else {}),
        },
        "source": source,
        "importance": record.importance,
        "created_at": record.created_at,
    }


def to_json(value: Any) -> Any:
    """Return a value as JSON; what JSON does not know becomes a string."""
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    if type(value) in (str, bool, int, NoneType) or (type(value) is float and math.isfinite(value)):
        return value
    try:
        plain = to_jsonable_python(value, fallback=str)
    except ValueError:  # such as bytes that are no text
        return str(value)
    return str(value) if isinstance(plain, float) and not math.isfinite(plain) else to_json(plain)


def to_new_record(record: MemoryRecord, space: str | None, **arguments: Any) -> NewRecord:
    """Return the record to store; its vector goes into `space`, and is left out where that is None."""
    vector = None if space is None else find_vector(record)
    return NewRecord(
        id=record.id, vector=vector, space=None if vector is None else space, **to_fields(record), **arguments
    )


def to_revision(record: MemoryRecord, space: str | None, *, redact: bool | None) -> Revision:
    """Return what becomes of a stored record; without a new vector it keeps its own."""
    vector = None if space is None else find_vector(record)
    brought: dict[str, Any] = {} if vector is None else {"vector": vector, "space": space}
    return Revision(redact=redact, **to_fields(record), **brought)


def find_vector(record: MemoryRecord) -> list[float] | None:
    """Return the vector of a record, None if it has none, or one of zeros, which has no direction."""
    vector: Any = record.embedding  # an array, where an embedder makes arrays and CrewAI passes them on
    return None if vector is None or not any(vector) else [float(number) for number in vector]


def to_memory_record(record: Record, base: str, vector: Iterable[float] | None = None) -> MemoryRecord:
    """Return a record as CrewAI has it, whoever wrote it; paths begin at the scope `base`, times are naive UTC."""
    return MemoryRecord(
        id=record.id,
        content=record.text,
        scope=to_path(record.scope[len(base) :].removeprefix("/")),
        categories=list(record.tags),
        metadata=_copy(record.metadata),
        importance=record.importance,
        created_at=_to_naive(record.created_at),
        last_accessed=_find_access(record),
        embedding=None if vector is None else [float(number) for number in vector],
        source=_find_source(record),
        private=record.kind == PRIVATE,
    )


def find_where(
    categories: Sequence[str] | None = None,
    record_ids: Sequence[str] | None = None,
    older_than: datetime | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> list[Filter]:
    """Return the filters that all have to hold. Values of metadata that are lists or mappings are not among them."""
    filters: list[Filter] = []
    if categories is not None:
        filters.append(Condition("@tags", "any", [" ".join(category.split()) for category in categories]))
    if record_ids is not None:
        filters.append(Condition("@id", "in", list(record_ids)))
    if older_than is not None:
        filters.append(Condition("@created_at", "lt", older_than))
    return filters + [_equals(key, value) for key, value in (metadata or {}).items() if not is_nested(value)]


def is_nested(value: Any) -> bool:
    """Tell whether a value of metadata can't be compared by a filter."""
    return isinstance(value, Mapping | list | tuple)


def visible_to(source: str | None) -> Filter:
    """Return the filter for what a source may recall: what is not private, or its own."""
    public = Condition("@kind", "ne", PRIVATE)
    return Or([public, Condition("@source", "eq", derive_name(source))]) if source else public


def _equals(key: str, value: Any) -> Filter:
    field = "@" + key if key.startswith("@") else key
    if value is None:  # so is what is missing
        return And([Condition(field, "is_empty", True), Not(Condition(field, "eq", ""))])
    return Condition(field, "eq", to_json(value))


def _to_naive(time: datetime) -> datetime:
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def _find_access(record: Record) -> datetime:
    said = _find_said(record, ACCESSED)
    times = [_to_naive(record.accessed_at or record.created_at)]
    if said is not None:
        times.append(_to_naive(datetime.fromisoformat(said)))
    return max(times) if record.accessed_at or len(times) == 1 else times[1]


def _find_source(record: Record) -> str | None:
    said = _find_said(record, SOURCE)
    return said if said and derive_name(said) == record.source else record.source


def _find_said(record: Record, name: str) -> str | None:
    said = record.payload.get(name) if isinstance(record.payload, Mapping) else None
    return said if isinstance(said, str) else None


def _copy(value: Any) -> Any:
    """Return JSON as plain dicts and lists that may be changed."""
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list | tuple) else value
