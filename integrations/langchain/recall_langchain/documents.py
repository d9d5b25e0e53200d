"""LangChain's documents as records, and back; and what their filters mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from recall_core import And, Condition, Filter, Hit, NewRecord, Record, View, derive_id
from recall_core.filters import parse_where
from recall_core.opening import read_all

KIND = "document"
ALL = Condition("@kind", "eq", KIND)
RELEVANCE = "relevance_score"
ABOUT = "recall"

DocumentFilter = Mapping[str, Any] | Filter | Callable[[Document], bool]


def record_id(view: View, id: str) -> str:
    """Return the id of the record of a document: two stores may have documents of the same id."""
    return derive_id("langchain", KIND, view.scope, id)


def to_record(
    view: View,
    id: str,
    text: str,
    metadata: Mapping[str, Any] | None,
    vector: Sequence[float] | None,
    space: str | None,
) -> NewRecord:
    """Return the record of a document, which takes the place of that of the same id. A blank text has no vector."""
    if not text.strip():
        vector = None
    return NewRecord(
        id=record_id(view, id),
        text=text,
        kind=KIND,
        metadata=metadata or {},
        payload={"id": id},
        vector=vector,
        space=None if vector is None else space,
        on_duplicate="replace",
    )


def to_document(record: Record) -> Document:
    """Return the document that a record was made of; of another's record, one with its text, metadata and id."""
    own = record.kind == KIND and isinstance(record.payload, Mapping)
    id = record.payload.get("id") if own else record.id
    return Document(record.text, metadata=_copy(record.metadata), id=str(id))


def to_scored_document(hit: Hit) -> Document:
    """Return a hit as a document that says in its metadata how relevant it is, and what the memory knows of it."""
    document, record = to_document(hit.record), hit.record
    facts = {
        "id": record.id,
        "scope": record.scope,
        "session": record.session,
        "turn": record.turn,
        "role": record.role,
        "kind": record.kind,
        "tags": list(record.tags),
        "source": record.source,
        "created_at": record.created_at.isoformat(),
        "excerpt": hit.chunk.text,
    }
    document.metadata[RELEVANCE] = hit.relevance
    document.metadata[ABOUT] = {key: fact for key, fact in facts.items() if fact is not None}
    return document


def find_where(view: View, filter: DocumentFilter | None, within: Filter = ALL) -> Filter:
    """Return what a filter of LangChain means, within another one. A function is asked about each document there."""
    if filter is None:
        return within
    if not callable(filter):
        return And([within, parse_filter(filter)])
    chosen = [record.id for record in read_all(view, within) if filter(to_document(record))]
    return And([within, Condition("@id", "in", chosen)])


def join_where(within: Filter, where: Mapping[str, Any] | Filter | None) -> Filter:
    """Return a filter that is also bounded by the `where` of `recall_core.View.search`."""
    given = parse_where(where)
    return within if given is None else And([within, given])


def parse_filter(filter: Mapping[str, Any] | Filter) -> Filter:
    """Return a filter written as a mapping: that of recall_core, and `$exists` as other stores have it."""
    found = parse_where(_rewrite(filter)) if isinstance(filter, Mapping) else filter
    return And([]) if found is None else found


def _rewrite(filter: Mapping[str, Any]) -> dict[str, Any]:
    rewritten: dict[str, Any] = {}
    for key, value in filter.items():
        if isinstance(value, list | tuple) and key in ("$and", "$or"):
            value = [_rewrite(part) if isinstance(part, Mapping) else part for part in value]
        elif isinstance(value, Mapping) and key == "$not":
            value = _rewrite(value)
        elif isinstance(value, Mapping) and "$exists" in value:
            value = {
                **{name: given for name, given in value.items() if name != "$exists"},
                "$empty": not value["$exists"],
            }
        rewritten[key] = value
    return rewritten


def _copy(value: Any) -> Any:
    """Return JSON as plain dicts and lists that may be changed."""
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list | tuple) else value
