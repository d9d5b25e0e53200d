"""Copies and pickled ones: LlamaIndex sends an embedding model to other processes, and copies indexes and memories."""

from __future__ import annotations

import asyncio
import copy
import pickle

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage

from recall_core import Memory
from recall_llamaindex import RecallChatStore, RecallEmbedding, RecallMemoryBlock, RecallRetriever, RecallVectorStore

TEA = "My favourite tea is oolong."
QUESTION = "Which tea do I like best?"


def index(store):
    return VectorStoreIndex.from_vector_store(store, embed_model=RecallEmbedding())


# How something is stored with each class, and how it is found.
CLASSES = [
    pytest.param(
        RecallVectorStore,
        lambda store: index(store).insert(Document(text=TEA)),
        lambda store: index(store).as_retriever().retrieve(QUESTION)[0].get_content(),
        id="vector store",
    ),
    pytest.param(
        RecallRetriever,
        lambda retriever: retriever._opened.view.add(TEA),
        lambda retriever: retriever.retrieve(QUESTION)[0].get_content(),
        id="retriever",
    ),
    pytest.param(
        RecallMemoryBlock,
        lambda block: asyncio.run(block.aput([ChatMessage(TEA)])),
        lambda block: asyncio.run(block.aget([ChatMessage(QUESTION)])),
        id="memory block",
    ),
    pytest.param(
        RecallChatStore,
        lambda store: asyncio.run(store.add_message("s", ChatMessage(TEA))),
        lambda store: asyncio.run(store.get_messages("s"))[0].content,
        id="chat store",
    ),
]
COPIES = [
    pytest.param(copy.deepcopy, id="copied"),
    pytest.param(lambda thing: pickle.loads(pickle.dumps(thing)), id="pickled"),
]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize(("make", "fill", "find"), CLASSES)
def test_a_copy_of_what_was_opened_by_a_path_works_on_the_same_file(tmp_path, make, fill, find, copied):
    with make(tmp_path / "memory.db") as original:
        fill(original)
        twin = copied(original)
    with twin:
        assert "oolong" in find(twin)
        fill(twin)


@pytest.mark.parametrize(("make", "fill", "find"), CLASSES)
def test_a_copy_of_what_was_given_a_memory_shares_it_and_can_not_be_pickled(tmp_path, make, fill, find):
    with Memory.open(tmp_path / "memory.db") as memory:
        original = make(memory)
        twin = copy.deepcopy(original)
        fill(twin)
        twin.close()
        assert "oolong" in find(original)
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(original)


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_the_embedding_model_embeds_the_same(copied):
    model = RecallEmbedding()
    assert copied(model).get_query_embedding("tea") == model.get_query_embedding("tea")
