"""The classes of the adapter, each with something to put in and a way to find it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents import ask, scripted, system
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from recall_langchain import (
    RecallChatMessageHistory,
    RecallMiddleware,
    RecallRetriever,
    RecallStore,
    RecallVectorStore,
)

TEA = "My favourite tea is oolong."
QUESTION = "Which tea do I like best?"
ALICE = {"user_id": "alice"}


@dataclass(frozen=True)
class Case:
    """How an object is made on a memory, how something is stored with it, and how it is found."""

    make: Callable[[Any], Any]
    fill: Callable[[Any], object]
    find: Callable[[Any], str]


def converse(recall: RecallMiddleware, text: str) -> str:
    """Return the system prompt of an agent that is told something."""
    model = scripted()
    create_agent(model, [], middleware=[recall]).invoke(ask(text), context=ALICE)
    return system(model.seen[0])


CASES = {
    "middleware": Case(
        lambda memory: RecallMiddleware(
            memory, timeout=120
        ),  # however busy the machine is, in a process of its own too
        lambda recall: converse(recall, TEA),
        lambda recall: converse(recall, QUESTION),
    ),
    "store": Case(
        RecallStore,
        lambda store: store.put(("a",), "k", {"text": TEA}),
        lambda store: store.search(("a",), query=QUESTION)[0].value["text"],
    ),
    "vectorstore": Case(
        RecallVectorStore,
        lambda store: store.add_texts([TEA]),
        lambda store: store.similarity_search(QUESTION)[0].page_content,
    ),
    "history": Case(
        lambda memory: RecallChatMessageHistory("s", memory),
        lambda history: history.add_messages([HumanMessage(TEA)]),
        lambda history: history.search(QUESTION)[0].content,
    ),
    "retriever": Case(
        lambda memory: RecallRetriever(memory=memory),
        lambda retriever: retriever._opened.view.add(TEA),
        lambda retriever: retriever.invoke(QUESTION)[0].page_content,
    ),
}
