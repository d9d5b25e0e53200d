"""What the tools do, without the protocol: each method asks one scope of a memory that is opened when first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..counts import Count
from ..errors import InvalidInputError, RecordNotFoundError, StoreMovedError
from ..models import Json, Mode, Record
from ..times import to_micros
from . import shapes
from .budget import RESULT, fit
from .shapes import Context, Counted, Found, Got, Listed, Removed, State, Stored

if TYPE_CHECKING:  # they are imported by who opens the file
    from ..memory import Memory
    from ..view import View

MOST = 50  # memories in one result
DAY = 86_400
COUNTS = 20
COUNTED = 0.25  # of a result that each kind of counts may take
LONGEST_CONTEXT = 8_000  # characters
LONGEST_TTL = 36_500  # days


class Answers:
    """The memory behind a server. It reads and writes `scope` and below; `client` is the source of what it stores."""

    def __init__(self, open_memory: Callable[[], Memory], scope: str, client: str | None) -> None:
        self._open_memory = open_memory
        self._scope = scope
        self._client = client
        self._memory: Memory | None = None
        self._lock = threading.Lock()

    def view(self) -> View:
        """Return the view of the scope; the first call opens the file, and so does one after it was replaced, as by a
        backup. Raises RecallError.
        """
        with self._lock:
            if self._memory is not None and _was_replaced(self._memory):
                self._memory.close()
                self._memory = None
            if self._memory is None:
                self._memory = self._open_memory()
            return self._memory.scoped(self._scope)

    def close(self) -> None:
        """Close the file, if it was opened."""
        with self._lock:
            if self._memory is not None:
                self._memory.close()

    def store(self, text: str, **arguments: Any) -> Stored:
        """Store a text; the same text in the same scope is kept once, and counts as new."""
        ttl_days = arguments.pop("ttl_days")
        ttl = None if ttl_days is None else _count_seconds(ttl_days)
        record = self.view().add(_check_text(text), source=self._client, ttl=ttl, on_duplicate="touch", **arguments)
        return self._show_stored(record, existed=record.created_at != record.updated_at)

    def search(self, query: str, *, mode: Mode, limit: int, **arguments: Any) -> Found:
        """Search the scope."""
        since, until = arguments["since"], arguments["until"]
        if since is not None and until is not None and to_micros(since, "since") >= to_micros(until, "until"):
            raise InvalidInputError(f"since is {since} and until is {until}, with no time between; exchange them")
        hits = self.view().search(query, mode=mode, limit=check_limit(limit), **arguments)
        shown = shapes.show_hits(hits, self._scope)
        return Found(memories=shown, left_out=len(hits) - len(shown), mode=hits.mode, degraded=hits.degraded)

    def get(self, id: str, offset: int = 0) -> Got:
        """Return one memory, its text from `offset` on. Raises RecordNotFoundError."""
        view = self.view()
        record = self._find(view, id)
        if not 0 <= offset <= len(record.text):
            raise InvalidInputError(f"offset is {offset}; the text has {len(record.text)} characters")
        return shapes.show_got(record, view.links(id), self._scope, offset)

    def update(self, id: str, *, ttl_days: float | None, **changes: Json) -> Stored:
        """Change what is given, None: not given; a memory of 0 days is kept. Raises RecordNotFoundError."""
        given = {name: value for name, value in changes.items() if value is not None}
        if "text" in given:
            _check_text(given["text"])
        if ttl_days is not None:
            given["ttl"] = None if ttl_days == 0 else _count_seconds(ttl_days)
        if not given:
            raise InvalidInputError("nothing to change was given; give text, tags, importance, metadata or ttl_days")
        view = self.view()
        self._find(view, id)
        return self._show_stored(view.update(id, **given))

    def delete(self, id: str, *, permanently: bool) -> Removed:
        """Delete one memory. Raises RecordNotFoundError."""
        view = self.view()
        self._find(view, id)
        deleted = view.delete(id, hard=permanently)
        return Removed(id=id, deleted=bool(deleted), restorable=not permanently)

    def list_page(
        self, *, scope: str, tags: Sequence[str] | None, session: str | None, limit: int, cursor: str | None
    ) -> Listed:
        """Return a page of the memories that were changed last."""
        view, start = self.view(), _read_cursor(cursor)
        limit = check_limit(limit)
        where: dict[str, Json] = {"@tags": {"$any": list(tags)}} if tags else {}
        where |= {} if session is None else {"@session": session}
        page = view.records(scope=scope, where=where, limit=limit + 1, newest_first=True, offset=start)
        shown = shapes.show_records(page[:limit], self._scope)
        return Listed(
            memories=shown,
            total=view.count(scope, where),
            next_cursor=str(start + len(shown)) if len(page) > len(shown) else None,
        )

    def describe(self) -> State:
        """Return what the scope holds."""
        from ..hosting import count_waiting  # which needs SQLite

        view = self.view()
        assert self._memory is not None
        counts, period = view.breakdown(limit=COUNTS), view.period()
        return State(
            memories=counts.records,
            first=None if period is None else shapes.show_time(period[0]),
            last=None if period is None else shapes.show_time(period[1]),
            tags=_show_counts(counts.tags),
            kinds=_show_counts(counts.kinds),
            scopes=_show_counts(counts.scopes, self._scope),
            waiting=count_waiting(view),
            degraded=self._memory.stats().degraded,
            version=__version__,
        )

    def context(self, query: str, *, max_chars: int, scope: str = "") -> Context:
        """Return a block for a prompt."""
        if max_chars > LONGEST_CONTEXT:
            raise InvalidInputError(f"max_chars is {max_chars}; at most {LONGEST_CONTEXT} are returned")
        view = self.view()
        block = view.context(query, max_chars=max_chars, scope=scope, nothing="")
        return Context(context=block or view.context("", limit=0, max_chars=max_chars), found=bool(block))

    def _find(self, view: View, id: str) -> Record:
        found = view.get(id)
        if not found:
            raise RecordNotFoundError(
                f"no memory has the id {id!r} in this scope; search_memory and list_memories show the ids"
            )
        return found[0]

    def _show_stored(self, record: Record, *, existed: bool = True) -> Stored:
        memory = shapes.show_record(record, self._scope, shapes.LISTED)
        return Stored(id=record.id, existed=existed, memory=memory)


def _was_replaced(memory: Memory) -> bool:
    try:
        memory.get("")
    except StoreMovedError:
        return True
    return False


def check_limit(limit: int) -> int:
    """Return `limit`. Raises InvalidInputError."""
    if not 1 <= limit <= MOST:
        raise InvalidInputError(f"limit is {limit}; choose 1 to {MOST}, and ask again for more")
    return limit


def _check_text(text: str) -> str:
    if not any(character.isprintable() and not character.isspace() for character in text):
        raise InvalidInputError("text is empty; give one fact, preference or decision as a sentence")
    return text


def _count_seconds(ttl_days: float) -> float:
    if not 0 < ttl_days <= LONGEST_TTL:
        raise InvalidInputError(
            f"ttl_days is {ttl_days:g}; give days above 0, at most {LONGEST_TTL}, or leave it out to keep the memory"
        )
    return ttl_days * DAY


def _read_cursor(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 15:
        raise InvalidInputError(f"cursor is {cursor!r}; give the next_cursor of the page before, or none")
    return int(cursor)


def _show_counts(counts: Sequence[Count], base: str = "") -> list[Counted]:
    """Return counts; scopes are shown as paths below `base`, itself as a dot."""
    names = [(one.name or "")[len(base) :].removeprefix("/") or "." for one in counts]
    shown = fit(names, RESULT * COUNTED)
    return [Counted(name=name, memories=one.records) for name, one in zip(shown, counts, strict=False)]
