"""Records as rows of the file, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from ..models import Json, Record
from ..times import from_micros, to_micros

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
RECORD_COLUMNS = ", ".join(f"record.{name}" for name in COLUMNS)
HASH_BYTES = 16


def text_hash(text: str) -> bytes:
    """Return what the file stores to find equal texts: BLAKE2b of the UTF-8 text, 16 bytes."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=HASH_BYTES).digest()


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
        payload=None if payload is None else json.loads(payload),
        metadata=json.loads(metadata),
        tags=tuple(json.loads(tags)),
        source=source,
        importance=importance,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        accessed_at=None if accessed_at is None else from_micros(accessed_at),
        expires_at=None if expires_at is None else from_micros(expires_at),
    )


def _dump(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
