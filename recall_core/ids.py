"""Record ids: 24 hexadecimal digits, half of them milliseconds since 1970, so that they sort by when they were made."""

from __future__ import annotations

import hashlib
import json
import secrets

from .forks import Lock

TAIL_BITS = 48

_lock = Lock()
_last = 0


def new_id(now: int) -> str:
    """Return an id made at `now` (microseconds since 1970 UTC), larger than those made in the same millisecond before.

    The last twelve digits are random for a new millisecond and count up within it.
    """
    global _last
    # The top bit of the tail stays clear, so that counting up does not run into the next millisecond.
    fresh = (max(now, 0) // 1000 << TAIL_BITS) | secrets.randbits(TAIL_BITS - 1)
    with _lock:
        _last = max(fresh, _last + 1) if fresh >> TAIL_BITS == _last >> TAIL_BITS else fresh
        return f"{_last:024x}"


def derive_id(*parts: str) -> str:
    """Return an id of 32 hexadecimal digits for what a host calls by a name of its own, such as a key in a namespace.

    The same parts always give the same id, different ones different ids. Name the scope among them: ids are unique in a
    file, and the same name in two scopes is not the same record.
    """
    return hashlib.blake2b(json.dumps(parts).encode("utf-8"), digest_size=16).hexdigest()


def derive_dated_id(created_at: int | None, *parts: str) -> str:
    """Return the id of what `parts` name, as `derive_id` does, that sorts by when it was made: `created_at` in
    microseconds since 1970 UTC, None if nobody knows.
    """
    millis = min(max(created_at or 0, 0) // 1000, (1 << TAIL_BITS) - 1)
    return f"{millis:012x}{derive_id(*parts)[:20]}"
