"""The same memory for asyncio: every call runs in a worker thread, so that the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from .doctor import Checkup
from .embedding import DEFAULT, Default
from .engine import Progress
from .memory import Memory
from .models import (
    AddArguments,
    Embedder,
    Fusion,
    Hits,
    Json,
    Mode,
    NewRecord,
    OnDuplicate,
    Record,
    Reembedded,
    SearchArguments,
    Stats,
)
from .revision import UNCHANGED
from .session import Session
from .settings import Settings
from .times import Time
from .view import View, Where

# Where the async classes are more than "the same, awaited".
DIFFERENCES = {
    "View.scope": "a property still: it reads no file",
    "View.scoped": "not awaited: it reads no file",
    "Session.id": "a property still: it reads no file",
    "Session.scope": "a property still: it reads no file",
    "Session.title": "a method to await, for it reads the file",
    "Session.created_at": "a method to await, for it reads the file",
    "Session.updated_at": "a method to await, for it reads the file",
}


class AsyncView:
    """A `View` whose methods are awaited.

    Cancelling the awaiting task does not cancel a write that has begun: it is completed in its thread.
    """

    def __init__(self, view: View) -> None:
        self._view = view

    @property
    def scope(self) -> str:
        """The scope that this view can't leave, "" for a whole memory."""
        return self._view.scope

    async def add(
        self,
        text: str,
        *,
        id: str | None = None,
        scope: str = "",
        session: str | None = None,
        turn: int | None = None,
        role: str | None = None,
        kind: str = "memory",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Json] | None = None,
        payload: Json = None,
        source: str | None = None,
        importance: float = 0.5,
        created_at: Time | None = None,
        expires_at: Time | None = None,
        ttl: float | timedelta | None = None,
        vector: Sequence[float] | None = None,
        space: str | None = None,
        on_duplicate: OnDuplicate = "keep",
    ) -> Record:
        """Store a text and return it as a record; from then on it is durable and found by keyword."""
        return await asyncio.to_thread(
            self._view.add,
            text,
            id=id,
            scope=scope,
            session=session,
            turn=turn,
            role=role,
            kind=kind,
            tags=tags,
            metadata=metadata,
            payload=payload,
            source=source,
            importance=importance,
            created_at=created_at,
            expires_at=expires_at,
            ttl=ttl,
            vector=vector,
            space=space,
            on_duplicate=on_duplicate,
        )

    async def add_many(
        self, records: Iterable[NewRecord | Mapping[str, Json]], *, progress: Progress | None = None
    ) -> list[Record]:
        """Store many records, some hundred in a transaction, and return them in their order.

        `records` is an ordinary iterable; it is read, and `progress` called, in the worker thread.
        """
        return await asyncio.to_thread(self._view.add_many, records, progress=progress)

    async def search(
        self,
        query: str,
        *,
        scope: str = "",
        mode: Mode = "hybrid",
        limit: int = 10,
        where: Where | None = None,
        session: str | None = None,
        roles: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        min_relevance: float | None = None,
        min_similarity: float | None = None,
        fusion: Fusion = "default",
        alpha: float | None = None,
        recency: float | None = None,
        candidates: int | None = None,
        diversify: float | None = None,
        now: Time | None = None,
        vector: Sequence[float] | None = None,
        space: str | None = None,
    ) -> Hits:
        """Return the records that answer a query best, from `scope` and below."""
        return await asyncio.to_thread(
            self._view.search,
            query,
            scope=scope,
            mode=mode,
            limit=limit,
            where=where,
            session=session,
            roles=roles,
            tags=tags,
            since=since,
            until=until,
            min_relevance=min_relevance,
            min_similarity=min_similarity,
            fusion=fusion,
            alpha=alpha,
            recency=recency,
            candidates=candidates,
            diversify=diversify,
            now=now,
            vector=vector,
            space=space,
        )

    async def context(
        self, query: str, *, max_chars: int = 2000, language: str | None = None, **arguments: Unpack[SearchArguments]
    ) -> str:
        """Return a block for a prompt with what is remembered on a query, of at most `max_chars` characters."""
        return await asyncio.to_thread(self._view.context, query, max_chars=max_chars, language=language, **arguments)

    async def get(self, ids: str | Iterable[str]) -> list[Record]:
        """Return the records with these ids, in that order; ids that are not in this scope are passed over."""
        return await asyncio.to_thread(self._view.get, ids)

    async def update(
        self,
        id: str,
        *,
        text: str = UNCHANGED,
        scope: str = UNCHANGED,
        session: str | None = UNCHANGED,
        turn: int | None = UNCHANGED,
        role: str | None = UNCHANGED,
        kind: str = UNCHANGED,
        tags: Sequence[str] = UNCHANGED,
        metadata: Mapping[str, Json] | None = UNCHANGED,
        payload: Json = UNCHANGED,
        source: str | None = UNCHANGED,
        importance: float = UNCHANGED,
        created_at: Time = UNCHANGED,
        expires_at: Time | None = UNCHANGED,
        ttl: float | timedelta | None = UNCHANGED,
        vector: Sequence[float] = UNCHANGED,
        space: str | None = None,
    ) -> Record:
        """Change a record and return it."""
        return await asyncio.to_thread(
            self._view.update,
            id,
            text=text,
            scope=scope,
            session=session,
            turn=turn,
            role=role,
            kind=kind,
            tags=tags,
            metadata=metadata,
            payload=payload,
            source=source,
            importance=importance,
            created_at=created_at,
            expires_at=expires_at,
            ttl=ttl,
            vector=vector,
            space=space,
        )

    async def delete(self, ids: str | Iterable[str]) -> int:
        """Delete records with all that was derived from them; return how many were in this scope."""
        return await asyncio.to_thread(self._view.delete, ids)

    async def records(
        self,
        *,
        scope: str = "",
        where: Where | None = None,
        session: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[Record]:
        """Return records in the order of their ids, which is that of their making."""
        return await asyncio.to_thread(
            self._view.records, scope=scope, where=where, session=session, limit=limit, after=after
        )

    async def count(self, scope: str = "", where: Where | None = None) -> int:
        """Return the number of records."""
        return await asyncio.to_thread(self._view.count, scope, where)

    def scoped(self, scope: str) -> AsyncView:
        """Return a view that can't read or write outside of `scope`; there is nothing to await."""
        return AsyncView(self._view.scoped(scope))

    async def session(self, id: str, *, scope: str = "", title: str | None = None) -> AsyncSession:
        """Return the conversation `id` of exactly this scope; a `title` is stored."""
        return AsyncSession(await asyncio.to_thread(self._view.session, id, scope=scope, title=title))

    async def sessions(self, scope: str = "") -> list[AsyncSession]:
        """Return the conversations in a scope and below, the last active one first."""
        return [AsyncSession(session) for session in await asyncio.to_thread(self._view.sessions, scope)]


class AsyncMemory(AsyncView):
    """A `Memory` whose methods are awaited: `async with await AsyncMemory.open("agent.db") as memory`.

    Cancelling the awaiting task does not cancel a write that has begun: it is completed in its thread. `add_many`
    takes an ordinary iterable, not an asynchronous one.
    """

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._memory = memory

    @classmethod
    async def open(
        cls,
        path: str | Path,
        *,
        embedder: Embedder | Default | str | Path | None = DEFAULT,
        settings: Settings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> AsyncMemory:
        """Open the memory at `path`, made if missing; ":memory:" keeps everything in RAM."""
        opening = asyncio.create_task(
            asyncio.to_thread(Memory.open, path, embedder=embedder, settings=settings, clock=clock)
        )
        try:
            return cls(await asyncio.shield(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unwanted)  # its thread goes on, and nobody would close what it opens
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Async{self._memory!r}"

    async def flush(
        self,
        timeout: float | None = None,
        *,
        retry_failed: bool = False,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Index what other programs wrote, then give vectors to all chunks that wait for one, for at most `timeout`
        seconds and at most `limit` chunks; return how many still wait. `progress` is called in the worker thread.
        """
        return await asyncio.to_thread(
            self._memory.flush, timeout, retry_failed=retry_failed, limit=limit, progress=progress
        )

    async def check(self, embedder: Embedder | None = None) -> Checkup:
        """Look for what keeps the memory from working as it should, and say what to do about it."""
        return await asyncio.to_thread(self._memory.check, embedder)

    async def stats(self) -> Stats:
        """Return what the file holds and in which state it is."""
        return await asyncio.to_thread(self._memory.stats)

    async def reembed(
        self,
        embedder: Embedder | Default | str | Path,
        *,
        progress: Callable[[int, int], object] | None = None,
        batch: int | None = None,
    ) -> Reembedded:
        """Move the whole file to another model; `progress` is called in a worker thread.

        Cancelling the awaiting task does not stop it: it is completed in its thread.
        """
        return await asyncio.to_thread(self._memory.reembed, embedder, progress=progress, batch=batch)

    async def abort_reembed(self) -> str | None:
        """Drop what an unfinished `reembed` has done, and return the model it was moving to; None if there is none."""
        return await asyncio.to_thread(self._memory.abort_reembed)

    async def close(self) -> None:
        """Close the file."""
        await asyncio.to_thread(self._memory.close)


class AsyncSession:
    """A `Session` whose methods are awaited, and so are its title and times: `await session.title()`.

    Cancelling the awaiting task does not cancel a write that has begun: it is completed in its thread.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def __repr__(self) -> str:
        return f"Async{self._session!r}"

    @property
    def id(self) -> str:
        """The session's id, unique within its scope."""
        return self._session.id

    @property
    def scope(self) -> str:
        """The scope that the session's records lie in, as a full path."""
        return self._session.scope

    async def title(self) -> str | None:
        """Return the title it was given."""
        return await asyncio.to_thread(lambda: self._session.title)

    async def created_at(self) -> datetime | None:
        """Return when its first message was made (or it was given a title), None if there is nothing yet."""
        return await asyncio.to_thread(lambda: self._session.created_at)

    async def updated_at(self) -> datetime | None:
        """Return when its last message was made, None if there is nothing yet."""
        return await asyncio.to_thread(lambda: self._session.updated_at)

    async def append(
        self, role: str, text: str, *, turn: int | None = None, **arguments: Unpack[AddArguments]
    ) -> Record:
        """Add a message and return it; a `turn` that this role has already spoken in changes nothing."""
        return await asyncio.to_thread(self._session.append, role, text, turn=turn, **arguments)

    async def messages(self, limit: int = 50, before: str | Record | None = None) -> list[Record]:
        """Return the last `limit` messages in turn order, or the last ones before the message `before`."""
        return await asyncio.to_thread(self._session.messages, limit, before)

    async def delete(self) -> int:
        """Delete the session with all of its messages; return how many there were."""
        return await asyncio.to_thread(self._session.delete)


def _close_unwanted(opening: asyncio.Task[Memory]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
