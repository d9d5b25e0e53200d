"""The conversations of an agent in a memory file, for LlamaIndex's `Memory`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from recall_core import Condition, Filter, Record, derive_name
from recall_core.drafting import is_derived
from recall_core.opening import Closing, Opened, Source, find_path, read_all
from recall_core.revision import Revision

from .arguments import check_names
from .filters import among, join_filters
from .messages import ARCHIVED, MESSAGE, key_of, to_message, to_record

_KINDS = {MessageStatus.ACTIVE: MESSAGE, MessageStatus.ARCHIVED: ARCHIVED}


class RecallChatStore(Closing, AsyncDBChatStore):
    """Keeps each conversation as a session of the memory, in exactly the `scope`, and lists it in order.

    The first argument is the path of the file, made if missing, or an open `Memory` or `View`, which stays open when
    the store is closed. What is said is found by recall_core's searches as well. All work is done in worker threads;
    the store is bound to no event loop and may be used from any thread. `redact` takes keys and passwords out of what
    is stored, and so out of what the model is shown again.
    """

    path: str | None = None
    scope: str = "llamaindex/chat"
    redact: bool = False

    _opened: Opened = PrivateAttr()

    def __init__(self, path: Source, *, scope: str = "llamaindex/chat", **fields: Any) -> None:
        check_names(type(self), fields, type(self).model_fields)
        super().__init__(**{**fields, "path": find_path(path), "scope": scope})
        self._opened = Opened(path, scope, embedder=None)

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex serialises the store by."""
        return "RecallChatStore"

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return the messages of a conversation with a status (None: with any), from the `offset`-th on."""
        start = offset or 0
        stop = None if limit is None else start + limit
        return [to_message(record) for record in (await self._list(key, status))[start:stop]]

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """Count the messages of a conversation with a status (None: with any)."""
        where = join_filters(self._select(status), Condition("@session", "eq", derive_name(key)))
        return await asyncio.to_thread(self._view.count, where=where)

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Add a message to a conversation."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Add messages to a conversation."""
        await asyncio.to_thread(self._change, key, messages, status)

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Put messages in the place of all those of a conversation."""
        await asyncio.to_thread(self._replace, key, messages, status)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the `idx`-th message, counted from 0 over those of any status, and return it, if there is one."""
        deleted = await asyncio.to_thread(lambda: self._delete(self._read(key, None)[idx:][:1] if idx >= 0 else []))
        return deleted[0] if deleted else None

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages of a conversation with a status (None: with any)."""
        await asyncio.to_thread(self._view.forget, where=self._select(status), session=derive_name(key), hard=True)

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the `n` oldest active messages and return them."""
        return await asyncio.to_thread(lambda: self._delete(self._read(key, MessageStatus.ACTIVE)[:n]))

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Make the `n` oldest active messages archived ones and return them."""
        return await asyncio.to_thread(self._archive, key, n)

    async def get_keys(self) -> list[str]:
        """Return the keys of all conversations."""
        return await asyncio.to_thread(self._find_keys)

    async def _list(self, key: str, status: MessageStatus | None) -> list[Record]:
        return await asyncio.to_thread(self._read, key, status)

    def _read(self, key: str, status: MessageStatus | None) -> list[Record]:
        return list(read_all(self._view, self._select(status), derive_name(key)))

    def _change(
        self, key: str, messages: Sequence[ChatMessage], status: MessageStatus, before: Sequence[Record] = ()
    ) -> None:
        """Add messages and delete others, both or neither."""
        records = [to_record(message, key, kind=_KINDS[status], redact=self.redact) for message in messages]
        self._view.change(add=records, delete=[record.id for record in before])

    def _replace(self, key: str, messages: Sequence[ChatMessage], status: MessageStatus) -> None:
        self._change(key, messages, status, self._read(key, None))

    def _delete(self, records: Sequence[Record]) -> list[ChatMessage]:
        self._view.delete([record.id for record in records], hard=True)
        return [to_message(record) for record in records]

    def _archive(self, key: str, n: int) -> list[ChatMessage]:
        oldest = self._read(key, MessageStatus.ACTIVE)[:n]
        self._view.change(update={record.id: Revision(kind=ARCHIVED) for record in oldest})
        return [to_message(record) for record in oldest]

    def _find_keys(self) -> list[str]:
        return [self._find_key(session.id) for session in self._view.sessions() if session.scope == self._view.scope]

    def _find_key(self, session: str) -> str:
        first = self._view.records(where=self._select(None), session=session, limit=1) if is_derived(session) else []
        return key_of(first[0]) if first else session

    def _select(self, status: MessageStatus | None) -> Filter | None:
        kinds = list(_KINDS.values()) if status is None else [_KINDS[status]]
        return join_filters(Condition("@scope", "eq", self._view.scope), among("@kind", kinds))
