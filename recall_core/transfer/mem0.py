"""mem0's memories as JSON: what `get_all` and `search` return, of the library, its server and its platform."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping

from ..models import Json, NewRecord
from ..scopes import escape_segment
from .columns import Row, is_deleted, read_metadata, read_name, read_role, read_tags, read_text, read_time
from .documents import Document
from .entries import Damaged, Entry, Item, Skipped
from .input import Input

LISTS = ("results", "memories", "relations")  # under which a response lists them
TEXT = ("memory", "content", "data")
# What only serves mem0's search, or says what can be seen otherwise.
DROPPED = ("hash", "score", "embedding", "vector", "structured_attributes", "event", "name")
OWNERS = (("user", "user_id"), ("agent", "agent_id"), ("app", "app_id"))
SIGNS = {"user_id", "agent_id", "run_id", "app_id", "hash", "created_at"}
NO_TEXT = "memories without text"
RELATION = "relations of the graph"
DELETED = "deleted in mem0"


class Mem0Source:
    """Reads a JSON document or JSON lines of memories: each becomes a record below its user, agent and app."""

    name = "mem0"

    def detect(self, file: Input) -> bool:
        """Look whether the first memory has a text called memory, beside the ids or times that mem0 gives."""
        first = _find_first(file.text)
        return isinstance(first.get("memory"), str) and "text" not in first and bool(SIGNS & first.keys())

    def read(self, file: Input) -> Iterator[Item]:
        """Yield the memories in their order. Lines count the memories, from 1 on."""
        for number, memory in enumerate(_find_memories(file), 1):
            yield _read_memory(memory, number)


def _find_first(head: str) -> Mapping[str, Json]:
    """Return the first memory of a document of which only the beginning is known."""
    decoder = json.JSONDecoder()
    # That of a list at the top, or in a response; of an object only if it is no response.
    listed = re.match(r"\s*(\{[^\[]*)?\[\s*", head)
    for start in (0, listed.end() if listed else 0):
        try:
            first, _ = decoder.raw_decode(head.lstrip() if start == 0 else head, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(first, dict) and not any(isinstance(first.get(name), list) for name in LISTS):
            return first
    return {}


def _find_memories(file: Input) -> Iterator[Json]:
    for item in Document(file.stream).items():
        lists = [item[name] for name in LISTS if isinstance(item, dict) and isinstance(item.get(name), list)]
        yield from itertools.chain.from_iterable(lists) if lists else [item]


def _read_memory(memory: Json, number: int) -> Item:
    if not isinstance(memory, dict):
        return Damaged(f"not a memory but {type(memory).__name__}", number)
    if {"source", "relationship"} <= memory.keys():
        return Skipped(RELATION, number)
    row = Row(memory)
    text, id = read_text(row.take(*TEXT)), read_name(row.take("id", "memory_id"))
    if not text.strip():
        return Skipped(NO_TEXT, number)
    if is_deleted(row) or memory.get("state") == "deleted":
        return Skipped(DELETED, number)
    for name in DROPPED:
        row.take(name)
    times = {name: read_time(row.take(name)) for name in ("created_at", "updated_at", "expiration_date")}
    tags = read_tags(json.dumps(row.take("categories", "tags") or []))
    record = NewRecord(
        text=text,
        scope="/".join(f"{kind}/{escape_segment(owner)}" for kind, owner in _find_owners(row)),
        session=read_name(row.take("run_id")),
        role=read_role(row.take("role")),
        tags=tags,
        source=Mem0Source.name,
        created_at=times["created_at"],
        expires_at=times["expiration_date"],
        metadata={**read_metadata(row.take("metadata", "metadata_")), **row.rest()},
    )
    return Entry(record=record, key=id or f"text:{text}", line=number, updated_at=times["updated_at"])


def _find_owners(row: Row) -> Iterator[tuple[str, str]]:
    for kind, column in OWNERS:
        name = read_name(row.take(column))
        if name is not None:
            yield kind, name
