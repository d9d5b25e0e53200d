"""The same memory for asyncio: every call runs in a worker thread, so that the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from .memory import Memory
from .models import DEFAULT, Default, Embedder
from .session import Session
from .settings import Settings
from .view import View

P = ParamSpec("P")
R = TypeVar("R")

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


def in_thread(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return an awaited twin of a method, for a class that holds the sync object as `_sync`.

    It has the method's signature and docstring. Callbacks that it is given are called in the worker thread.
    """

    @functools.wraps(method)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self._sync, *args, **kwargs)

    return call


class AsyncView:
    """A `View` whose methods are awaited.

    Cancelling the awaiting task does not cancel a write that has begun: it is completed in its thread. `add_many` takes
    an ordinary iterable; it is read, as `progress` is called, in the worker thread.
    """

    def __init__(self, view: View) -> None:
        self._sync = view

    @property
    def scope(self) -> str:
        """The scope that this view can't leave, "" for a whole memory."""
        return self._sync.scope

    add = in_thread(View.add)
    add_many = in_thread(View.add_many)
    search = in_thread(View.search)
    context = in_thread(View.context)
    get = in_thread(View.get)
    update = in_thread(View.update)
    records = in_thread(View.records)
    count = in_thread(View.count)
    similar = in_thread(View.similar)
    change = in_thread(View.change)
    scopes = in_thread(View.scopes)
    period = in_thread(View.period)
    vectors = in_thread(View.vectors)
    dimensions = in_thread(View.dimensions)
    embed = in_thread(View.embed)
    export = in_thread(View.export)
    import_ = in_thread(View.import_)
    merge = in_thread(View.merge)
    topics = in_thread(View.topics)
    breakdown = in_thread(View.breakdown)
    digest = in_thread(View.digest)

    delete = in_thread(View.delete)
    restore = in_thread(View.restore)
    deleted = in_thread(View.deleted)
    forget = in_thread(View.forget)
    touch = in_thread(View.touch)
    link = in_thread(View.link)
    unlink = in_thread(View.unlink)
    links = in_thread(View.links)

    def scoped(self, scope: str) -> AsyncView:
        """Return a view that can't read or write outside of `scope`; there is nothing to await."""
        return AsyncView(self._sync.scoped(scope))

    async def session(
        self, id: str, *, scope: str = "", title: str | None = None, redact: bool | None = None
    ) -> AsyncSession:
        """Return the conversation `id` of exactly this scope; a `title` is stored, redacted as the text of `add` is."""
        session = await asyncio.to_thread(self._sync.session, id, scope=scope, title=title, redact=redact)
        return AsyncSession(session)

    async def sessions(self, scope: str = "") -> list[AsyncSession]:
        """Return the conversations in a scope and below, the last active one first."""
        return [AsyncSession(session) for session in await asyncio.to_thread(self._sync.sessions, scope)]


class AsyncMemory(AsyncView):
    """A `Memory` whose methods are awaited: `async with await AsyncMemory.open("agent.db") as memory`.

    Cancelling the awaiting task does not cancel what writes: it is completed in its thread, in which any `progress` is
    called, too.
    """

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)

    @classmethod
    async def open(
        cls,
        path: str | Path,
        *,
        embedder: Embedder | Default | str | Path | None = DEFAULT,
        settings: Settings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> AsyncMemory:
        """Open the memory at `path`, made with its folder if missing; ":memory:" keeps everything in RAM."""
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
        return f"Async{self._sync!r}"

    flush = in_thread(Memory.flush)
    check = in_thread(Memory.check)
    repair = in_thread(Memory.repair)
    stats = in_thread(Memory.stats)
    reembed = in_thread(Memory.reembed)
    abort_reembed = in_thread(Memory.abort_reembed)
    cleanup = in_thread(Memory.cleanup)
    vacuum = in_thread(Memory.vacuum)
    backup = in_thread(Memory.backup)
    reindex = in_thread(Memory.reindex)
    words = in_thread(Memory.words)
    add_words = in_thread(Memory.add_words)
    remove_words = in_thread(Memory.remove_words)
    close = in_thread(Memory.close)


class AsyncSession:
    """A `Session` whose methods are awaited, and so are its title and times: `await session.title()`.

    Cancelling the awaiting task does not cancel a write that has begun: it is completed in its thread.
    """

    def __init__(self, session: Session) -> None:
        self._sync = session

    def __repr__(self) -> str:
        return f"Async{self._sync!r}"

    @property
    def id(self) -> str:
        """The session's id, unique within its scope."""
        return self._sync.id

    @property
    def scope(self) -> str:
        """The scope that the session's records lie in, as a full path."""
        return self._sync.scope

    async def title(self) -> str | None:
        """Return the title it was given."""
        return await asyncio.to_thread(lambda: self._sync.title)

    async def created_at(self) -> datetime | None:
        """Return when its first message was made (or it was given a title), None if there is nothing yet."""
        return await asyncio.to_thread(lambda: self._sync.created_at)

    async def updated_at(self) -> datetime | None:
        """Return when its last message was made, None if there is nothing yet."""
        return await asyncio.to_thread(lambda: self._sync.updated_at)

    append = in_thread(Session.append)
    messages = in_thread(Session.messages)
    delete = in_thread(Session.delete)


def _close_unwanted(opening: asyncio.Task[Memory]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
