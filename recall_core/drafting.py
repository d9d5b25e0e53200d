"""A caller's arguments become a record: checked, cleaned, completed. Nothing is stored here."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any, get_args

from .errors import InvalidInputError
from .ids import derive_id, new_id
from .models import Json, NewRecord, OnDuplicate, Record
from .redaction import Redact, redact_json
from .scopes import join_scopes
from .store import RESERVED
from .text import clean_json, clean_text
from .times import MICROS_PER_SECOND, Time, from_micros, to_micros

MAX_NAME = 512  # characters of an id, a session, a role, a kind, a source or a tag
MAX_TEXT = 1_000_000  # characters of a text; more is a file, to be stored in parts
MAX_TAGS = 1_000
MAX_METADATA, MAX_PAYLOAD = 1_000_000, 16_000_000  # characters of their JSON
MAX_INTEGER = 2**63 - 1
DERIVED = "derived:"  # before what stands for a name that a record can't have

REDACTED_FIELDS = ("text", "tags", "metadata", "payload", "source")
NEW_RECORD_FIELDS = frozenset(field.name for field in fields(NewRecord))


def read_mapping(mapping: Mapping[str, Json]) -> NewRecord:
    """Return the NewRecord that a mapping with the arguments of `add` describes."""
    unknown = [key for key in mapping if key not in NEW_RECORD_FIELDS]
    if unknown:
        known = ", ".join(sorted(NEW_RECORD_FIELDS))
        raise InvalidInputError(f"unknown field {unknown[0]!r}; a record has {known}. Put anything else into metadata")
    if "text" not in mapping:
        raise InvalidInputError("a record needs a text; the mapping has none")
    return NewRecord(**mapping)


def make_record(new: NewRecord, base: str, now: int) -> Record:
    """Return the record that `new` describes, in its scope below `base`, at `now` (microseconds)."""
    if new.on_duplicate not in get_args(OnDuplicate):
        choices = ", ".join(get_args(OnDuplicate))
        raise InvalidInputError(f"on_duplicate is {new.on_duplicate!r}; choose one of {choices}")
    updated_at = from_micros(now, "the clock")  # before an id is made of it
    created_at = now if new.created_at is None else to_micros(new.created_at, "created_at")
    return Record(
        id=new_id(now) if new.id is None else check_name(new.id, "id"),
        text=check_text(new.text),
        scope=join_scopes(base, new.scope),
        session=None if new.session is None else check_name(new.session, "session"),
        turn=check_turn(new.turn),
        role=None if new.role is None else check_name(new.role, "role"),
        kind=check_name(new.kind, "kind"),
        tags=check_tags(new.tags),
        metadata=check_metadata(new.metadata),
        payload=check_payload(new.payload),
        source=None if new.source is None else check_name(new.source, "source"),
        importance=check_importance(new.importance),
        created_at=from_micros(created_at),
        updated_at=updated_at,
        expires_at=find_expiry(new.expires_at, new.ttl, now),
    )


def redact_record(record: Record, redact: Redact | None, names: Collection[str] = REDACTED_FIELDS) -> Record:
    """Return the record with secrets taken out of these fields; None takes out nothing.

    Names by which records are asked for (ids, scopes, sessions, roles, kinds) are left alone.
    """
    if redact is None:
        return record
    changes: dict[str, Any] = {"text": clean_text(redact(record.text))}
    changes["tags"] = check_tags(redact(tag) for tag in record.tags)
    changes["metadata"] = check_metadata(redact_json(record.metadata, redact))
    changes["payload"] = clean_json(redact_json(record.payload, redact))
    if record.source is not None:
        changes["source"] = check_name(redact(record.source), "source")
    return replace(record, **{name: value for name, value in changes.items() if name in names})


def redact_string(text: str, redact: Redact | None) -> str:
    """Return a text with secrets taken out; None takes out nothing."""
    return text if redact is None else clean_text(redact(text))


def check_text(text: str) -> str:
    """Return a text as it can be stored: NUL and lone surrogates become U+FFFD."""
    if not isinstance(text, str):
        raise InvalidInputError(f"text is a string, not {type(text).__name__}; store other data as payload")
    if len(text) > MAX_TEXT:
        raise InvalidInputError(
            f"text has {len(text):,} characters ({text[:40]!r}…), at most {MAX_TEXT:,} are allowed; "
            "store it in parts, such as chapters"
        )
    return clean_text(text)


def check_name(name: str, what: str) -> str:
    """Return a name such as an id or a role. Raises InvalidInputError if it is empty, too long or not printable."""
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"{what} is a string that is not empty, not {name!r}")
    if len(name) > MAX_NAME:
        raise InvalidInputError(f"{what} has {len(name)} characters ({name[:40]!r}…), at most {MAX_NAME} are allowed")
    bad = _find_unprintable(name)
    if bad is not None:
        raise InvalidInputError(f"{what} {name!r} has the character {bad!r}, which is not printable; leave it out")
    return name


def derive_name(name: str) -> str:
    """Return what a host calls a session, a source or a role as a record can have it: the name itself, or what stands
    for one that is empty, too long or has control characters. The same name always gives the same one, different ones
    different ones.
    """
    if not isinstance(name, str):
        raise InvalidInputError(f"a name is a string, not {name!r}")
    fits = 0 < len(name) <= MAX_NAME and not is_derived(name) and _find_unprintable(name) is None
    return name if fits else DERIVED + derive_id(name)


def is_derived(name: str) -> bool:
    """Tell whether a name may be one that `derive_name` has made."""
    return name.startswith(DERIVED)


def _find_unprintable(name: str) -> str | None:
    return next((character for character in name if unicodedata.category(character) in ("Cc", "Cs")), None)


def check_ids(ids: str | Iterable[str]) -> list[str]:
    """Return ids as a list; one may be given as a plain string."""
    if isinstance(ids, str):
        ids = [ids]
    try:
        listed = list(ids)
    except TypeError:
        raise InvalidInputError(f"ids are strings, not {ids!r}") from None
    for id in listed:
        if not isinstance(id, str):
            raise InvalidInputError(f"ids are strings, not {id!r}")
    return listed


def check_space(name: str) -> str:
    """Return the name of a caller's vector space."""
    if check_name(name, "space").startswith(RESERVED):
        raise InvalidInputError(f"space {name!r} is a name that memories keep for themselves; choose another")
    return name


def check_turn(turn: int | None) -> int | None:
    """Return a turn number."""
    if turn is None:
        return None
    if isinstance(turn, bool) or not isinstance(turn, int) or abs(turn) >= MAX_INTEGER:
        raise InvalidInputError(f"turn is a whole number, not {turn!r}")
    return turn


def check_limit(limit: int, what: str = "limit") -> int:
    """Return the number of records that a page may have."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit < MAX_INTEGER:
        raise InvalidInputError(f"{what} is a whole number from 0 on, not {limit!r}")
    return limit


def check_timeout(timeout: float | None) -> float | None:
    """Return a number of seconds to wait, None for as long as it takes. Raises InvalidInputError."""
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is not None and not (number and timeout >= 0):
        raise InvalidInputError(f"timeout is a number of seconds from 0 on, or None, not {timeout!r}")
    return timeout


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags without repetitions, in their order; one may be given as a plain string."""
    if isinstance(tags, str):
        tags = (tags,)
    try:
        found = tuple(dict.fromkeys(check_name(tag, "a tag") for tag in tags))
    except TypeError:
        raise InvalidInputError(f"tags is a sequence of strings, not {tags!r}") from None
    if len(found) > MAX_TAGS:
        raise InvalidInputError(f"there are {len(found):,} tags, at most {MAX_TAGS:,} are allowed; use metadata")
    return found


def check_metadata(metadata: Mapping[str, Json] | None) -> dict[str, Json]:
    """Return metadata as it can be stored."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata is a mapping with string keys, not {metadata!r}")
    cleaned: dict[str, Json] = clean_json(dict(metadata))
    _check_size(cleaned, "metadata", MAX_METADATA, "store large values as payload")
    return cleaned


def check_payload(payload: Json) -> Json:
    """Return a payload as it can be stored."""
    cleaned = clean_json(payload)
    _check_size(cleaned, "payload", MAX_PAYLOAD, "store it as a file, and its path here")
    return cleaned


def _check_size(value: Json, what: str, most: int, advice: str) -> None:
    size = len(json.dumps(value, ensure_ascii=False)) if value else 0
    if size > most:
        raise InvalidInputError(f"{what} has {size:,} characters as JSON, at most {most:,} are allowed; {advice}")


def check_importance(importance: float) -> float:
    """Return an importance."""
    if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 <= importance <= 1:
        raise InvalidInputError(f"importance is a number from 0 to 1, not {importance!r}")
    return float(importance)


def find_expiry(expires_at: Time | None, ttl: float | timedelta | None, now: int) -> datetime | None:
    """Return when a record expires: at `expires_at`, or `ttl` (seconds or a timedelta) after `now`; None is never.

    What has expired is never shown, so a time that is not later than `now` is a mistake.
    """
    if ttl is None:
        return None if expires_at is None else _check_expiry(to_micros(expires_at, "expires_at"), now)
    if expires_at is not None:
        raise InvalidInputError("expires_at and ttl were both given; give one of them")
    if isinstance(ttl, timedelta):
        ttl = ttl.total_seconds()
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl > 0:
        raise InvalidInputError(f"ttl is a number of seconds above 0, or a timedelta, not {ttl!r}")
    return from_micros(to_micros(now / MICROS_PER_SECOND + ttl, "ttl"))


def _check_expiry(expires_at: int, now: int) -> datetime:
    time = from_micros(expires_at)
    if expires_at <= now:
        raise InvalidInputError(
            f"expires_at is {time.isoformat()}, which is past (now it is {from_micros(now).isoformat()}), so nothing "
            "would ever show the record; give a later time, leave it out, or delete the record"
        )
    return time
