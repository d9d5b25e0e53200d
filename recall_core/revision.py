"""Changes to a stored record: only what they concern is written and indexed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from .store import ChunkDraft, Stored
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

    text: str = UNCHANGED
    scope: str = UNCHANGED
    session: str | None = UNCHANGED
    turn: int | None = UNCHANGED
    role: str | None = UNCHANGED
    kind: str = UNCHANGED
    tags: Sequence[str] = UNCHANGED
    metadata: Mapping[str, Json] | None = UNCHANGED
    payload: Json = UNCHANGED
    source: str | None = UNCHANGED
    importance: float = UNCHANGED
    created_at: Time = UNCHANGED
    expires_at: Time | None = UNCHANGED
    ttl: float | timedelta | None = UNCHANGED
    vector: Sequence[float] = UNCHANGED
    space: str | None = None
    redact: bool | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    """A revision of a record as it was when it was read, and what is to be written."""

    before: Record
    after: Record
    chunks: Sequence[ChunkDraft] | None  # None if they stay
    revision: Revision


def revise(engine: Engine, base: str, id: str, revision: Revision) -> Record:
    """Change the record in one transaction and return it. Raises RecordNotFoundError if it is not below `base`."""
    return revise_all(engine, base, {id: revision})[0].record


def revise_all(
    engine: Engine, base: str, revisions: Mapping[str, Revision], write: Callable[[], list[Stored]] = list
) -> list[Stored]:
    """Do what `write` does and change records, all in one transaction, then give what was stored vectors; return it.

    Raises RecordNotFoundError if an id is not below `base`, and what `write` raises; then nothing was changed.
    """
    now = engine.now()
    while True:  # chunks are made outside the lock, and made again if a record has changed meanwhile
        plans = [_plan(engine, base, id, revision, now) for id, revision in revisions.items()]
        with engine.store.records.transaction():
            if any(_find(engine, base, plan.before.id, now) != plan.before for plan in plans):
                continue
            stored = write()
            stored += [_write(engine, plan) for plan in plans]
            keys = [key for one in stored for key in one.chunk_keys]
            claim = engine.indexer.claim(keys)
        engine.indexer.embed(keys, claim)
        return stored


def _plan(engine: Engine, base: str, id: str, revision: Revision, now: int) -> _Plan:
    before = _find(engine, base, id, now)
    given = {name for name in REDACTED_FIELDS if getattr(revision, name) is not UNCHANGED}
    redact = find_redaction(engine, revision.redact)
    after = redact_record(apply_revision(before, revision, base, now), redact, given)
    reindex = any(getattr(after, name) != getattr(before, name) for name in INDEXED_FIELDS)
    return _Plan(before, after, engine.indexer.prepare(after) if reindex else None, revision)


def _write(engine: Engine, plan: _Plan) -> Stored:
    given = plan.revision.vector is not UNCHANGED
    new = NewRecord(text="", vector=plan.revision.vector if given else None, space=plan.revision.space)
    space = space_for(engine, new) if given else None
    renewed = None if plan.chunks is None else engine.indexer.renew(plan.after, plan.chunks)
    stored = engine.store.records.update(plan.after, renewed)
    if space is not None:
        keys = stored.chunk_keys or tuple(engine.store.records.chunk_keys(plan.after.id))
        save_vectors(engine, space, {keys[0]: plan.revision.vector})
        engine.store.index.refresh(space)
    return stored


def _find(engine: Engine, base: str, id: str, now: int) -> Record:
    found = engine.store.records.get([id], Selection(scope=base, now=now))
    if not found:
        raise RecordNotFoundError(
            f"no record with the id {id!r} in the scope {base!r}; list what is there: recall list (View.records)"
        )
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
