"""Memory for agents: what is remembered goes into the prompt of each model call, what was said into the memory."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Self

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime

from recall_core import Condition, NewRecord, Not, View, derive_id, derive_name, strip_context
from recall_core.drafting import MAX_TEXT
from recall_core.forks import Lock
from recall_core.hosting import split_text
from recall_core.models import Mode
from recall_core.opening import Closing, Opened, Source

from .callers import THREAD, USER_SCOPE, Scope, find_names, find_scope
from .messages import KIND, role_of
from .tools import make_tools
from .workers import Workers

SHORTEST_PART = MAX_TEXT // 2  # characters of what a long message is stored in, but for the last part
KEPT_BLOCKS = 1000  # of the last user messages; one is asked for again by each model call of its turn

logger = logging.getLogger("recall_core")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a memory: in which scope, for which message, in which words, and what the prompt has anyhow.

    `message` is the id of its record: messages of two threads may have the same id.
    """

    scope: str
    message: str | None
    text: str
    seen: tuple[str, ...]


class RecallMiddleware(Closing, AgentMiddleware[AgentState[Any], Any, Any]):
    """Gives an agent a memory: `create_agent(model, tools, middleware=[RecallMiddleware("memory.db")])`.

    Once for each message of the user, what is remembered of it and relevant enough goes to the end of the system
    prompt, as a quoted block of at most `max_chars` characters; the agent's state holds nothing of it. After the agent
    ran, what the user said and the answer are stored, once for each message id; calls and results of tools are not.

    `memory` is the path of a file, made if missing, an open `Memory` or a `View`. `scope` says whose memory it is: a
    template whose names are looked up in the run's context and `configurable`, or a function of these. Without a
    `user_id` the user is "default". `min_relevance` is `Settings.context_relevance` by default. If the memory takes
    more than `timeout` seconds or fails, the agent goes on without it, and the log says why. `close` waits for what is
    still being stored.

    `recall=False` and `record=False` turn one half off. `redact` takes keys and passwords out of what is stored.
    `tools=True` also gives the agent `recall_tools`. An agent with several memories needs a `name` for each.
    """

    def __init__(
        self,
        memory: Source,
        *,
        scope: Scope = USER_SCOPE,
        limit: int = 5,
        max_chars: int = 2000,
        min_relevance: float | None = None,
        mode: Mode = "hybrid",
        timeout: float = 3.0,
        recall: bool = True,
        record: bool = True,
        redact: bool = True,
        tools: bool = False,
        name: str = "RecallMiddleware",
    ) -> None:
        super().__init__()
        self._name = name
        self._opened = Opened(memory)
        self._scope = scope
        self._arguments: dict[str, Any] = {
            "limit": limit, "max_chars": max_chars, "min_relevance": min_relevance, "mode": mode
        }  # fmt: skip
        self._timeout = timeout
        self._recalls, self._records, self._redact = recall, record, redact
        self._workers = Workers()
        self._blocks: OrderedDict[tuple[str, str], str] = OrderedDict()  # by message and words, which may be edited
        self._lock = Lock()
        self._has_tools = tools

    @property
    def name(self) -> str:
        """What the agent calls it."""
        return self._name

    @property
    def tools(self) -> list[BaseTool]:  # type: ignore[override]
        """What it gives the agent to use."""
        return make_tools(self._opened, self._scope, redact=self._redact) if self._has_tools else []

    def close(self) -> None:
        """Close the file if it was opened here; a memory that was given stays open."""
        self._workers.close()
        super().close()

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        twin = super().__deepcopy__(memo)
        twin._workers = Workers()
        return twin

    # Recalling

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with what is remembered in its system prompt."""
        asked = self._find_question(request)
        if asked is None:
            return handler(request)
        block = self._kept(asked)
        if block is None:
            try:
                block = self._workers.submit(self._recall, asked).result(self._timeout)
            except Exception as error:
                block = self._go_without(error)
            self._keep(asked, block)
        return handler(_with_block(request, block))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Call the model with what is remembered in its system prompt; the memory works in a thread of its own."""
        asked = self._find_question(request)
        if asked is None:
            return await handler(request)
        block = self._kept(asked)
        if block is None:
            try:
                future = asyncio.wrap_future(self._workers.submit(self._recall, asked))
                block = await asyncio.wait_for(future, self._timeout)
            except Exception as error:
                block = self._go_without(error)
            self._keep(asked, block)
        return await handler(_with_block(request, block))

    def _find_question(self, request: ModelRequest[Any]) -> Asked | None:
        """Return what is asked of the memory, None if nothing is."""
        text = _text_of(_last_turn(request.messages)[0])
        if not self._recalls or not text:
            return None
        try:
            names = find_names(request.runtime.context)
            scope = find_scope(self._scope, names)
        except Exception as error:  # the scope may be a function of the caller's
            self._go_without(error)
            return None
        seen = tuple(
            self._record_id(scope, names, message.id, part)
            for message in request.messages
            if message.id
            for part in range(1 + len(message.text) // SHORTEST_PART)
        )
        last = _last_turn(request.messages)[0][-1].id
        return Asked(scope, self._record_id(scope, names, last) if last else None, text, seen)

    def _recall(self, asked: Asked) -> str:
        """Return the block for a prompt, "" if nothing relevant is remembered but what the prompt says anyhow."""
        unseen = Not(Condition("@id", "in", asked.seen))
        return self._view.scoped(asked.scope).context(asked.text, nothing="", where=unseen, **self._arguments)

    def _kept(self, asked: Asked) -> str | None:
        with self._lock:
            return None if asked.message is None else self._blocks.get((asked.message, asked.text))

    def _keep(self, asked: Asked, block: str) -> None:
        if asked.message is not None:
            with self._lock:
                self._blocks[asked.message, asked.text] = block
                while len(self._blocks) > KEPT_BLOCKS:
                    self._blocks.popitem(last=False)

    def _go_without(self, error: Exception) -> str:
        said = f"it took more than {self._timeout} seconds" if isinstance(error, TimeoutError) else repr(error)
        logger.warning("the agent goes on without its memory: %s", said)
        return ""

    # Recording

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Store what was said; what takes longer than the timeout is completed while the agent goes on."""
        if recording := self._start_recording(state, runtime):
            wait([recording], self._timeout)

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Store what was said, in another thread, as `after_agent` does."""
        if recording := self._start_recording(state, runtime):
            await asyncio.wait([asyncio.wrap_future(recording)], timeout=self._timeout)

    def _start_recording(self, state: AgentState[Any], runtime: Runtime[Any]) -> Future[None] | None:
        if not self._records:
            return None
        try:
            return self._workers.submit(self._record, state["messages"], find_names(runtime.context))
        except Exception as error:  # the middleware was closed, or the context fails when it is asked
            self._go_unrecorded(error)
            return None

    def _record(self, messages: Sequence[AnyMessage], names: Mapping[str, Any]) -> None:
        try:
            scope = find_scope(self._scope, names)
            asked, answers = _last_turn(messages)
            said = [message for message in (*asked, *answers) if not _is_noise(message)]
            view = self._view.scoped(scope)
            records = [record for message in said for record in self._make(view, message, scope, names)]
            view.change(records, if_taken="skip")
        except Exception as error:  # what was said is said; a full disk must not take the answer away
            self._go_unrecorded(error)

    def _make(self, view: View, message: AnyMessage, scope: str, names: Mapping[str, Any]) -> Iterator[NewRecord]:
        """Yield the records of a message: one, unless it is longer than a record may be."""
        thread = names.get(THREAD)
        parts = split_text(view, strip_context(str(message.text)), redact=self._redact)
        for number, part in enumerate(parts):
            yield NewRecord(
                text=part,
                id=self._record_id(scope, names, message.id, number) if message.id else None,
                session=None if thread is None or thread == "" else derive_name(str(thread)),
                role=role_of(message),
                kind=KIND,
                redact=self._redact,
            )

    def _go_unrecorded(self, error: Exception) -> None:
        logger.warning("what was said could not be stored: %r", error)

    def _record_id(self, scope: str, names: Mapping[str, Any], message: str, part: int = 0) -> str:
        further = [str(part)] if part else []
        return derive_id("langchain", KIND, self._view.scope, scope, str(names.get(THREAD, "")), message, *further)


def _last_turn(messages: Sequence[AnyMessage]) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """Return what the user said last, which may be several messages, and what followed."""
    stop = next((place for place in range(len(messages), 0, -1) if _is_of_user(messages[place - 1])), 0)
    start = stop
    while start > 0 and _is_of_user(messages[start - 1]):
        start -= 1
    return list(messages[start:stop]), list(messages[stop:])


def _is_of_user(message: AnyMessage) -> bool:
    """Tell whether the user said it; summaries of what was said are marked by who made them."""
    return isinstance(message, HumanMessage) and "lc_source" not in message.additional_kwargs


def _is_noise(message: AnyMessage) -> bool:
    """Tell whether a message is neither the user's nor an answer: calls of tools, their results, blank ones."""
    answers = isinstance(message, AIMessage) and not message.tool_calls and not message.invalid_tool_calls
    return not (answers or _is_of_user(message)) or not strip_context(str(message.text)).strip()


def _text_of(messages: Sequence[AnyMessage]) -> str:
    return "\n".join(strip_context(str(message.text)) for message in messages).strip()


def _with_block(request: ModelRequest[Any], block: str) -> ModelRequest[Any]:
    """Return the request with a block at the end of its system prompt."""
    if not block:
        return request
    system = request.system_message
    if system is None or not system.content:
        return request.override(system_message=SystemMessage(block))
    content = [{"type": "text", "text": system.content}] if isinstance(system.content, str) else list(system.content)
    longer = system.model_copy(update={"content": [*content, {"type": "text", "text": block}]})
    return request.override(system_message=longer)
