"""What was said earlier, for LlamaIndex's `Memory`: found again by what the user asks now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.utils import get_tokenizer

from recall_core import DEFAULT, NewRecord, derive_name
from recall_core.context import shorten_context
from recall_core.errors import StoreError
from recall_core.forks import Lock
from recall_core.hosting import split_text
from recall_core.opening import Closing, Opened, Source, find_path

from .arguments import check_names
from .messages import MESSAGE, role_of, text_of

logger = logging.getLogger("recall_llamaindex")


class RecallMemoryBlock(Closing, BaseMemoryBlock[str]):
    """Keeps the messages that leave the short-term memory and recalls those that the last message of the user is about.

    The first argument is the path of the file, made if missing and opened with `embedder` (the bundled model by
    default), or an open `Memory` or `View`, which stays open when the block is closed. A session recalls what was said
    in it, and with `across_sessions` what was said in any session of the `scope`: give each user a scope of their own.

    What is recalled is quoted in a block of text that tells the model not to obey it. With a `priority` other than 0,
    a block over the budget of tokens loses its least relevant messages first.
    """

    name: str = "recall"
    path: str | None = None
    scope: str = "llamaindex/memory"
    across_sessions: bool = False
    similarity_top_k: int = Field(default=5, description="How many messages are recalled at most.")
    max_chars: int = Field(default=2000, description="How long the block of recalled messages may get.")
    min_relevance: float | None = Field(default=None, description="Least relevance; by default that of the settings.")
    recency: float | None = Field(default=None, description="The share of time decay in the order, from 0 to 1.")
    redact: bool = Field(default=True, description="Whether keys and passwords are taken out of what is kept.")
    tokenizer_fn: Callable[[str], Sequence[Any]] = Field(default_factory=get_tokenizer, exclude=True)

    _opened: Opened = PrivateAttr()
    _lock: Lock = PrivateAttr(default_factory=Lock)
    _unsaved: list[NewRecord] = PrivateAttr(default_factory=list)

    def __init__(
        self, path: Source, *, scope: str = "llamaindex/memory", embedder: Any = DEFAULT, **fields: Any
    ) -> None:
        check_names(type(self), fields, type(self).model_fields)
        super().__init__(**{**fields, "path": find_path(path), "scope": scope})
        self._opened = Opened(path, scope, embedder=embedder)

    def close(self) -> None:
        """Store what waits, then close the file if the block opened it."""
        self._keep([])
        super().close()

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the block without its least relevant messages, so many tokens shorter; None if nothing is left."""
        return await asyncio.to_thread(self._shorten, content, tokens_to_truncate)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        asked = [text_of(message) for message in messages or [] if message.role == MessageRole.USER]
        if not asked or not asked[-1].strip():
            return ""
        return await asyncio.to_thread(self._recall, asked[-1], block_kwargs.get("session_id"))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await asyncio.to_thread(self._keep, messages)

    def _recall(self, query: str, session: str | None) -> str:
        view = self._view
        if not view.records(limit=1):  # before the first message leaves the short-term memory
            return ""
        return view.context(
            query, nothing="", max_chars=self.max_chars, limit=self.similarity_top_k, recency=self.recency,
            min_relevance=self.min_relevance,
            session=None if self.across_sessions or session is None else derive_name(session),
        )  # fmt: skip

    def _keep(self, messages: Sequence[ChatMessage]) -> None:
        """Store messages. LlamaIndex gives them away once and for all, so what can't be stored now waits in here."""
        records = [record for message in messages for record in self._make(message)]
        with self._lock:
            waiting = [*self._unsaved, *records]
            if not waiting:
                return
            try:
                self._view.change(add=waiting)
            except StoreError as error:
                logger.warning("%d messages wait to be stored with the next ones: %s", len(waiting), error)
                self._unsaved = waiting
            else:
                self._unsaved = []

    def _make(self, message: ChatMessage) -> Iterator[NewRecord]:
        """Yield the records of what a message says, which is all that is recalled: one, unless it is longer than a
        record may be.
        """
        session = message.additional_kwargs.get("session_id")
        for part in split_text(self._view, text_of(message), redact=self.redact):
            if part.strip():
                yield NewRecord(
                    text=part,
                    session=None if session is None else derive_name(session),
                    role=role_of(message),
                    kind=MESSAGE,
                    redact=self.redact,
                )

    def _shorten(self, content: str, tokens: int) -> str | None:
        room = len(self.tokenizer_fn(content)) - tokens
        return shorten_context(content, lambda block: len(self.tokenizer_fn(block)) <= room)
