"""What the conformance tests are run on: each class of the adapter, on a file below a folder of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from recall_core import Memory
from recall_langchain import (
    RecallChatMessageHistory,
    RecallMiddleware,
    RecallRetriever,
    RecallStore,
    RecallVectorStore,
)

FILE = "memory.db"


@dataclass(frozen=True)
class RetrieverCase:
    cls: type
    params: dict[str, Any]
    query: str
    k_arg: str = "k"


@contextmanager
def vectorstore(embeddings: Embeddings, path: Path) -> Iterator[RecallVectorStore]:
    with RecallVectorStore(path / FILE, embeddings) as store:
        yield store


@contextmanager
def retriever(path: Path) -> Iterator[RetrieverCase]:
    with Memory.open(path / FILE) as memory:
        memory.add_many([{"text": f"document number {i}", "metadata": {"i": i}} for i in range(6)])
        yield RetrieverCase(RecallRetriever, {"memory": memory}, "document number 2")


@contextmanager
def store(path: Path, index: Any, ttl: Any) -> Iterator[RecallStore]:
    with RecallStore(path / FILE, index=index, ttl=ttl) as opened:
        yield opened


@asynccontextmanager
async def astore(path: Path, index: Any, ttl: Any) -> AsyncIterator[RecallStore]:
    with RecallStore(path / FILE, index=index, ttl=ttl) as opened:
        yield opened


def chat_history(path: Path, session: str) -> RecallChatMessageHistory:
    return RecallChatMessageHistory(session, path / FILE)


@contextmanager
def middleware(path: Path) -> Iterator[RecallMiddleware]:
    with Memory.open(path / FILE) as memory:
        memory.add("用户喜欢喝乌龙茶", scope="user/u1")
        memory.add("用户讨厌香菜", scope="user/u2")
        yield RecallMiddleware(memory)
