"""The tools as clients see them: names, arguments, hints. What they do is in answers.py."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

import anyio.to_thread
from pydantic import Field

from ..errors import RecallError
from ..models import Mode
from . import texts
from .answers import Answers
from .sdk import CallToolResult, Context, TextContent, ToolAnnotations, ToolError
from .shapes import Context as ContextBlock
from .shapes import Found, Got, Listed, Removed, State, Stored

logger = logging.getLogger("recall_core")

LONGEST_ERROR = 1_000  # characters

Shape = TypeVar("Shape")

Id = Annotated[str, Field(description="The id of a memory, as other tools show it in brackets.")]
Query = Annotated[str, Field(description="What to look for: a question or keywords, in Chinese or English.")]
Scope = Annotated[str, Field(description="A part of this memory, such as project/x; empty for all of it.")]
Limit = Annotated[int, Field(description="How many memories at most, 1 to 50.")]
Tags = Annotated[list[str] | None, Field(description="Labels.")]
AnyTag = Annotated[list[str] | None, Field(description="Only memories with one of these tags.")]
Session = Annotated[str | None, Field(description="Only this conversation.")]
Since = Annotated[str | None, Field(description="Only from this time on, such as 2026-01-31 or 2026-01-31T09:30:00Z.")]
Until = Annotated[str | None, Field(description="Only before this time.")]
Importance = Annotated[float, Field(description="0 to 1; unimportant memories are cleaned up first.")]
NewImportance = Annotated[float | None, Field(description="0 to 1; left out: as it is.")]
Days = Annotated[float | None, Field(description="Forget it after so many days; left out: keep it.")]
NewDays = Annotated[float | None, Field(description="Forget it so many days from now; 0: keep it; left out: as it is.")]
Metadata = Annotated[dict[str, Any] | None, Field(description="Facts to filter by, a JSON object.")]
Text = Annotated[str, Field(description="One fact, preference or decision that can be understood alone.")]
NewText = Annotated[str | None, Field(description="The new text; left out: as it is.")]


class Tools:
    """The functions that are registered as tools. Their docstrings are what models read."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    async def store_memory(
        self,
        text: Text,
        ctx: Context,
        tags: Tags = None,
        scope: Scope = "",
        importance: Importance = 0.5,
        metadata: Metadata = None,
        ttl_days: Days = None,
    ) -> Annotated[CallToolResult, Stored]:
        """Store a fact, preference or decision that matters later. The same text is kept once. Search first."""
        arguments = {"tags": tags or (), "scope": scope, "importance": importance, "metadata": metadata}
        work = functools.partial(self._answers.store, text, ttl_days=ttl_days, **arguments)
        return await _answer(ctx, work, texts.tell_stored)

    async def search_memory(
        self,
        query: Query,
        ctx: Context,
        mode: Annotated[Mode, Field(description="By keyword, by meaning (semantic), or both (hybrid).")] = "hybrid",
        limit: Limit = 10,
        scope: Scope = "",
        tags: AnyTag = None,
        since: Since = None,
        until: Until = None,
        session: Session = None,
        min_relevance: Annotated[float | None, Field(description="Leave out what is less relevant, 0 to 1.")] = None,
    ) -> Annotated[CallToolResult, Found]:
        """Find memories by meaning and keyword, best first, each with its id and relevance (0 to 1)."""
        filters = {"scope": scope, "tags": tags or None, "since": since, "until": until, "session": session}
        work = functools.partial(
            self._answers.search, query, mode=mode, limit=limit, min_relevance=min_relevance, **filters
        )
        return await _answer(ctx, work, texts.tell_found)

    async def get_memory(
        self,
        id: Id,
        ctx: Context,
        offset: Annotated[int, Field(description="Where to go on in a long text, as next_offset said.")] = 0,
    ) -> Annotated[CallToolResult, Got]:
        """Read one memory in full, with its links to others."""
        return await _answer(ctx, functools.partial(self._answers.get, id, offset), texts.tell_got)

    async def update_memory(
        self,
        id: Id,
        ctx: Context,
        text: NewText = None,
        tags: Tags = None,
        importance: NewImportance = None,
        metadata: Metadata = None,
        ttl_days: NewDays = None,
    ) -> Annotated[CallToolResult, Stored]:
        """Change a memory that is outdated or wrong. What is left out stays; tags and metadata are replaced whole."""
        changes = {"text": text, "tags": tags, "importance": importance, "metadata": metadata}
        work = functools.partial(self._answers.update, id, ttl_days=ttl_days, **changes)
        return await _answer(ctx, work, texts.tell_updated)

    async def delete_memory(
        self,
        id: Id,
        ctx: Context,
        permanently: Annotated[bool, Field(description="Also from the trash, with no way back.")] = False,
    ) -> Annotated[CallToolResult, Removed]:
        """Delete a memory, since the user wants it or it is wrong. It can be restored for 30 days."""
        work = functools.partial(self._answers.delete, id, permanently=permanently)
        return await _answer(ctx, work, texts.tell_removed)

    async def list_memories(
        self,
        ctx: Context,
        scope: Scope = "",
        tags: AnyTag = None,
        session: Session = None,
        limit: Limit = 20,
        cursor: Annotated[str | None, Field(description="The next_cursor of the page before.")] = None,
    ) -> Annotated[CallToolResult, Listed]:
        """List memories, the last changed first, page by page."""
        work = functools.partial(
            self._answers.list_page, scope=scope, tags=tags, session=session, limit=limit, cursor=cursor
        )
        return await _answer(ctx, work, texts.tell_listed)

    async def memory_stats(self, ctx: Context) -> Annotated[CallToolResult, State]:
        """Tell how many memories there are, of which tags, kinds and scopes, and whether something is amiss."""
        return await _answer(ctx, self._answers.describe, texts.tell_state)

    async def memory_context(
        self,
        query: Query,
        ctx: Context,
        max_chars: Annotated[int, Field(description="Its greatest length, 300 to 8000.")] = 2000,
        scope: Scope = "",
    ) -> Annotated[CallToolResult, ContextBlock]:
        """Return one block with what is remembered on a question, quoted, ready to be put into a prompt."""
        work = functools.partial(self._answers.context, query, max_chars=max_chars, scope=scope)
        return await _answer(ctx, work, lambda found: found.context)


_READS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_STORES = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_DESTROYS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": False}
TITLES = {
    "store_memory": ("Store a memory", _STORES),
    "search_memory": ("Search the memory", _READS),
    "get_memory": ("Read a memory", _READS),
    "update_memory": ("Change a memory", _DESTROYS),
    "delete_memory": ("Delete a memory", _DESTROYS),
    "list_memories": ("List memories", _READS),
    "memory_stats": ("State of the memory", _READS),
    "memory_context": ("Context for a prompt", _READS),
}


def register_tools(server: Any, answers: Answers) -> None:
    """Give a server the tools."""
    tools = Tools(answers)
    for name, (title, hints) in TITLES.items():
        server.add_tool(getattr(tools, name), name=name, title=title, annotations=ToolAnnotations(title=title, **hints))


async def _answer(ctx: Context, work: Callable[[], Shape], tell: Callable[[Shape], str]) -> CallToolResult:
    """Return what `work` finds, as structured content and as a text. A client that gives up is not waited for; a write
    that has begun is completed all the same.
    """
    await ctx.report_progress(0, 1)
    shape = await run_in_thread(work)
    await ctx.report_progress(1, 1)
    content: Any = shape
    return CallToolResult(content=[TextContent(type="text", text=tell(shape))], structuredContent=asdict(content))


async def run_in_thread(work: Callable[[], Shape]) -> Shape:
    """Run work that blocks. Whatever it raises becomes an error, of some lines, that a client shows to its model."""
    try:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except RecallError as error:
        raise ToolError(_shorten(str(error))) from error
    except Exception as error:
        logger.exception("a call failed")
        raise ToolError(
            f"the memory failed unexpectedly ({type(error).__name__}); nothing is lost: try again, and see the "
            "server's log or run recall doctor"
        ) from error


def _shorten(message: str) -> str:
    """Return a message, which may quote a very long argument, without its middle."""
    half = LONGEST_ERROR // 2
    return message if len(message) <= LONGEST_ERROR else f"{message[:half]} … {message[-half:]}"
