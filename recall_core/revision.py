"""Changes to a stored record: only what they concern is written and indexed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Final

from . import drafting
from .drafting import REDACTED_FIELDS, redact_record
from .engine import Engine, find_redaction, save_vectors, space_for
from .errors import RecordNotFoundError
from .filters import Selection
from .models import Json, NewRecord, Record
from .scopes import join_scopes
from .times import Time, from_micros, to_micros

INDEXED_FIELDS = ("text", "role", "tags", "metadata", "source")


class _Unchanged:
    """Stands for an argument that was not given; None is a value."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final[Any] = _Unchanged()


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What is to become of a record's fields; UNCHANGED ones stay."""

    text: str
    scope: str
    session: str | None
    turn: int | None
    role: str | None
    kind: str
    tags: Sequence[str]
    metadata: Mapping[str, Json] | None
    payload: Json
    source: str | None
    importance: float
    created_at: Time
    expires_at: Time | None
    ttl: float | timedelta | None
    vector: Sequence[float]
    space: str | None
    redact: bool | None


def revise(engine: Engine, base: str, id: str, revision: Revision) -> Record:
    """Change the record in one transaction and return it. Raises RecordNotFoundError if it is not below `base`."""
    now = engine.now()
    given = revision.vector is not UNCHANGED
    redact = find_redaction(engine, revision.redact)
    given_fields = {name for name in REDACTED_FIELDS if getattr(revision, name) is not UNCHANGED}
    new = NewRecord(text="", vector=revision.vector if given else None, space=revision.space)
    while True:  # chunks are made outside the lock, and made again if the record has changed meanwhile
        before = _find(engine, base, id, now)
        changed = redact_record(apply_revision(before, revision, base, now), redact, given_fields)
        reindex = any(getattr(changed, name) != getattr(before, name) for name in INDEXED_FIELDS)
        chunks = engine.indexer.prepare(changed) if reindex else None
        with engine.store.records.transaction():
            if _find(engine, base, id, now) != before:
                continue
            space = space_for(engine, new) if given else None
            renewed = None if chunks is None else engine.indexer.renew(changed, chunks)
            stored = engine.store.records.update(changed, renewed)
            if space is not None:
                keys = stored.chunk_keys or tuple(engine.store.records.chunk_keys(id))
                save_vectors(engine, space, {keys[0]: revision.vector})
                engine.store.index.refresh(space)
            claim = engine.indexer.claim(stored.chunk_keys)
        engine.indexer.embed(stored.chunk_keys, claim)
        return stored.record


def _find(engine: Engine, base: str, id: str, now: int) -> Record:
    found = engine.store.records.get([id], Selection(scope=base, now=now))
    if not found:
        raise RecordNotFoundError(f"no record with the id {id!r} in the scope {base!r}; list what is there: records()")
    return found[0]


def apply_revision(record: Record, revision: Revision, base: str, now: int) -> Record:
    """Return the record with the revision's changes, checked and cleaned, updated at `now` (microseconds)."""
    changes: dict[str, Any] = {"updated_at": from_micros(now)}
    for field in fields(revision):
        value = getattr(revision, field.name)
        if value is not UNCHANGED and field.name in _CHECKS:
            changes[field.name] = _CHECKS[field.name](value)
    if revision.scope is not UNCHANGED:
        changes["scope"] = join_scopes(base, revision.scope)
    expires_at = None if revision.expires_at is UNCHANGED else revision.expires_at
    ttl = None if revision.ttl is UNCHANGED else revision.ttl
    if revision.expires_at is not UNCHANGED or revision.ttl is not UNCHANGED:
        changes["expires_at"] = drafting.find_expiry(expires_at, ttl, now)
    return replace(record, **changes)


def _optional_name(name: str) -> Any:
    return lambda value: None if value is None else drafting.check_name(value, name)


_CHECKS = {
    "text": drafting.check_text,
    "session": _optional_name("session"),
    "turn": drafting.check_turn,
    "role": _optional_name("role"),
    "kind": lambda value: drafting.check_name(value, "kind"),
    "tags": drafting.check_tags,
    "metadata": drafting.check_metadata,
    "payload": drafting.check_payload,
    "source": _optional_name("source"),
    "importance": drafting.check_importance,
    "created_at": lambda value: from_micros(to_micros(value, "created_at")),
}
