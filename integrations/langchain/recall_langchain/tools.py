"""Tools for agents that decide themselves what to remember, what to look up and what to forget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, ParamSpec

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from recall_core import View
from recall_core.errors import RecallError
from recall_core.opening import Opened, Source

from .callers import USER_SCOPE, Scope, find_names, find_scope

NOTHING = "Nothing relevant is remembered."

P = ParamSpec("P")


def recall_tools(
    memory: Source, *, scope: Scope = USER_SCOPE, limit: int = 5, max_chars: int = 2000, redact: bool = True
) -> list[BaseTool]:
    """Return the tools search_memory, remember and forget, for the scope of whoever the agent speaks with.

    `memory` and `scope` are as in `RecallMiddleware`; a file that is opened here stays open as long as the process.
    What a search shows is a quoted block, in which each memory has the id that `forget` takes. `redact` takes keys and
    passwords out of what is remembered.
    """
    return make_tools(Opened(memory), scope, limit=limit, max_chars=max_chars, redact=redact)


def make_tools(
    opened: Opened, scope: Scope, *, limit: int = 5, max_chars: int = 2000, redact: bool = True
) -> list[BaseTool]:
    """Return the tools for an open memory."""

    def here() -> View:
        return opened.view.scoped(find_scope(scope, find_names()))

    def search_memory(query: Annotated[str, "What to look for, as a question or in keywords."]) -> str:
        """Search the long-term memory of what this user said, asked for and told to remember."""
        return here().context(query, nothing=NOTHING, limit=limit, max_chars=max_chars)

    def remember(text: Annotated[str, "One fact or preference, as a sentence that can be understood alone."]) -> str:
        """Keep something in the long-term memory: a fact, a preference or a decision that matters later."""
        return f"Remembered as {here().add(text, source='agent', redact=redact, on_duplicate='touch').id}."

    def forget(id: Annotated[str, "The id of the memory, as search_memory shows it in brackets."]) -> str:
        """Delete something from the long-term memory for good, since the user wants it or it is wrong."""
        deleted = here().delete(id, hard=True)
        return "Forgotten." if deleted else f"Nothing with the id {id} is remembered; search_memory shows the ids."

    return [_make_tool(function) for function in (search_memory, remember, forget)]


def _make_tool(function: Callable[..., str]) -> BaseTool:
    """Return a function as a tool; what is wrong with an argument is told to the agent."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> str:
        try:
            return function(*arguments, **named)
        except RecallError as error:
            raise ToolException(str(error)) from error

    @wraps(function)
    async def acall(*arguments: Any, **named: Any) -> str:
        return await asyncio.to_thread(call, *arguments, **named)

    return StructuredTool.from_function(call, coroutine=acall, handle_tool_error=True)
