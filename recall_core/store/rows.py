"""Records as rows of the file, and back."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from typing import Any

from ..models import Json, Record
from ..patterns import compile_late
from ..text import clean_json, clean_text
from ..times import from_micros, to_micros

logger = logging.getLogger("recall_core")

COLUMNS = (
    "id",
    "scope",
    "session",
    "turn",
    "role",
    "kind",
    "text",
    "payload",
    "metadata",
    "tags",
    "source",
    "importance",
    "created_at",
    "updated_at",
    "accessed_at",
    "expires_at",
)
TEXT_COLUMNS = ("id", "scope", "session", "role", "kind", "text", "payload", "metadata", "tags", "source")
RECORD_COLUMNS = ", ".join(f"record.{name}" for name in COLUMNS)
HASH_BYTES = 16

_ESCAPED_SURROGATE = compile_late(r"\\u[dD][89a-fA-F]")  # we write none, but other programs may


def text_hash(text: str) -> bytes:
    """Return what the file stores to find equal texts: BLAKE2b of the UTF-8 text, 16 bytes."""
    return hash_bytes(text.encode("utf-8"))


def hash_bytes(text: bytes) -> bytes:
    """Return `text_hash` of a text in UTF-8."""
    return hashlib.blake2b(text, digest_size=HASH_BYTES).digest()


def record_values(record: Record) -> tuple[Any, ...]:
    """Return the values of COLUMNS for a record."""
    return (
        record.id,
        record.scope,
        record.session,
        record.turn,
        record.role,
        record.kind,
        record.text,
        None if record.payload is None else _dump(record.payload),
        _dump(dict(record.metadata)),
        _dump(record.tags),
        record.source,
        record.importance,
        to_micros(record.created_at),
        to_micros(record.updated_at),
        None if record.accessed_at is None else to_micros(record.accessed_at),
        None if record.expires_at is None else to_micros(record.expires_at),
    )


def clean_values(values: Sequence[Any]) -> list[Any]:
    """Return values of a row whose texts were read as bytes, with these made storable."""
    return [clean_text(value.decode("utf-8", "replace")) if isinstance(value, bytes) else value for value in values]


def row_record(row: Sequence[Any]) -> Record:
    """Return the record of a row that begins with the values of COLUMNS."""
    id_, scope, session, turn, role, kind, text, payload, metadata, tags, source, importance, *times = row
    created_at, updated_at, accessed_at, expires_at = times[:4]
    return Record(
        id=id_,
        scope=scope,
        session=session,
        turn=turn,
        role=role,
        kind=kind,
        text=text,
        payload=None if payload is None else _load(payload, None),
        metadata=_load(metadata, {}),
        tags=tuple(_load(tags, [])),
        source=source,
        importance=importance,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        accessed_at=None if accessed_at is None else from_micros(accessed_at),
        expires_at=None if expires_at is None else from_micros(expires_at),
    )


def _load(text: str, default: Json) -> Json:
    """Read JSON. What only SQLite can read, such as 2,000 nested lists that another program stored, is `default`."""
    try:
        value = json.loads(text)
        return clean_json(value) if _ESCAPED_SURROGATE.search(text) else value
    except (ValueError, RecursionError) as error:
        logger.warning("JSON of another program can't be read (%s) and is left out", error)
        return default


def _dump(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
