"""The messages of a conversation, for those who work with LangChain's message histories."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessageChunk, BaseMessage, trim_messages

from recall_core import And, Condition, NewRecord, Session, derive_name
from recall_core.errors import InvalidInputError
from recall_core.opening import Closing, Opened, Source
from recall_core.revision import Revision

from .documents import join_where
from .messages import KIND, join_chunks, role_of, text_of, to_message, to_payload

ALL = 2**62  # more messages than any conversation has


class RecallChatMessageHistory(Closing, BaseChatMessageHistory):
    """The messages of the conversation `session_id` in exactly one scope of a memory, kept as they are.

    `memory` is the path of a file, made if missing, an open `Memory` or a `View`. The parts of a streamed message,
    which have one id, become one message. `redact` takes keys and passwords out of what is stored, and so out of what
    the model is shown again. Messages are found by meaning and by keyword, by `search` and all other searches of the
    memory.
    """

    def __init__(self, session_id: str, memory: Source, *, scope: str = "", redact: bool = False) -> None:
        if not session_id:
            raise InvalidInputError(f"session_id is a string that is not empty, not {session_id!r}")
        self._session_id, self._key, self._redact = session_id, derive_name(session_id), redact
        self._opened = Opened(memory, scope)

    @property
    def session_id(self) -> str:
        """The id of the conversation."""
        return self._session_id

    @property
    def _session(self) -> Session:
        return self._view.session(self._key)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, oldest first, as a list of their own."""
        return [to_message(record) for record in self._session.messages(ALL) if record.kind == KIND]

    async def aget_messages(self) -> list[BaseMessage]:
        """Return the messages, oldest first."""
        return await asyncio.to_thread(lambda: self.messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages: all of them, in their order, or none."""
        joined = _join_all(messages)
        continued = self._continue(joined[0]) if joined else {}
        self._view.change([self._make(message) for message in joined[len(continued) :]], update=continued)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages: all of them, in their order, or none."""
        await asyncio.to_thread(self.add_messages, messages)

    def clear(self) -> None:
        """Delete the messages for good."""
        here = Condition("@scope", "eq", self._session.scope)
        messages = And([here, Condition("@kind", "eq", KIND)])
        self._view.forget(where=messages, session=self._key, hard=True)

    async def aclear(self) -> None:
        """Delete the messages for good."""
        await asyncio.to_thread(self.clear)

    def search(self, query: str, k: int = 4, *, all_sessions: bool = False, **arguments: Any) -> list[BaseMessage]:
        """Return the messages that answer a query best, of this conversation or of all in the scope and below.

        Further arguments are those of `recall_core.View.search`.
        """
        arguments = {"session": None if all_sessions else self._key, **arguments}
        where = join_where(Condition("@kind", "eq", KIND), arguments.pop("where", None))
        hits = self._view.search(query, limit=k, where=where, **arguments)
        return [to_message(hit.record) for hit in hits]

    async def asearch(self, query: str, k: int = 4, **arguments: Any) -> list[BaseMessage]:
        """Return messages as `search` does."""
        return await asyncio.to_thread(self.search, query, k, **arguments)

    def window(self, limit: int) -> list[BaseMessage]:
        """Return at most the last `limit` messages, from one of the user's on, so that no call of a tool is cut off
        from its result; system messages stay.
        """
        return trim_messages(
            self.messages, max_tokens=limit, token_counter=len, strategy="last", start_on="human", include_system=True
        )

    def _make(self, message: BaseMessage) -> NewRecord:
        return NewRecord(
            text=text_of(message),
            session=self._key,
            role=role_of(message),
            kind=KIND,
            payload=to_payload(message),
            redact=self._redact,
        )

    def _continue(self, message: BaseMessage) -> dict[str, Revision]:
        """Return how the last message is to be changed if this is the next part of it, by its id."""
        for record in self._session.messages(1) if isinstance(message, AIMessageChunk) else []:
            if (whole := join_chunks(to_message(record), message)) is not None:
                return {record.id: Revision(text=text_of(whole), payload=to_payload(whole), redact=self._redact)}
        return {}


def _join_all(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages with the parts of a streamed one made one."""
    joined: list[BaseMessage] = []
    for message in messages:
        whole = join_chunks(joined[-1], message) if joined else None
        joined[-1:] = [*joined[-1:], message] if whole is None else [whole]
    return joined
