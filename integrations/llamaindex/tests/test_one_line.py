"""The one line that LlamaIndex's users expect, with engines on it, offline."""

from __future__ import annotations

import asyncio

import pytest
from handbook import QUESTIONS, TEXTS, make_documents
from llama_index.core import Settings, StorageContext, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import IndexNode, TextNode

from recall_llamaindex import RecallChatStore, RecallEmbedding, RecallMemoryBlock, RecallVectorStore

MODES = ("default", "text_search", "sparse", "hybrid", "semantic_hybrid", "mmr")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    store = RecallVectorStore(folder / "memory.db")
    VectorStoreIndex.from_documents(
        make_documents(),
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=RecallEmbedding(),
        transformations=[SentenceSplitter(chunk_size=256)],
    )
    store.close()
    again = RecallVectorStore(folder / "memory.db")
    yield VectorStoreIndex.from_vector_store(again, embed_model=RecallEmbedding())
    again.close()


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_one_line_finds_what_was_indexed_before(index, question):
    retriever = index.as_retriever(vector_store_query_mode="hybrid")
    assert retriever.retrieve(question)[0].node.ref_doc_id == QUESTIONS[question]


@pytest.mark.parametrize("mode", MODES)
def test_a_query_engine_answers_in_every_mode(index, mode):
    engine = index.as_query_engine(llm=MockLLM(), vector_store_query_mode=mode, similarity_top_k=1)
    response = engine.query("收到钓鱼邮件怎么办？")
    assert TEXTS["security"] in str(response)
    assert TEXTS["security"] in str(asyncio.run(engine.aquery("收到钓鱼邮件怎么办？")))


@pytest.mark.parametrize("mode", ["context", "condense_plus_context", "condense_question", "best"])
def test_a_chat_engine_answers_with_the_memory_in_the_same_file(index, mode, tmp_path, opened, monkeypatch):
    monkeypatch.setattr(Settings, "_llm", MockLLM())
    store, block = RecallChatStore(tmp_path / "chat.db"), RecallMemoryBlock(tmp_path / "chat.db")
    opened.extend([store, block])
    memory = Memory.from_defaults(session_id="s", chat_store=store, memory_blocks=[block])
    engine = index.as_chat_engine(
        chat_mode=mode, llm=MockLLM(), memory=memory, vector_store_query_mode="hybrid", similarity_top_k=1
    )
    response = engine.chat("住酒店每晚最多能报销多少钱")
    assert [hit.node.ref_doc_id for hit in response.source_nodes] == ["travel"]
    said = [message.content for message in asyncio.run(store.get_messages("s"))]
    assert said[0] == "住酒店每晚最多能报销多少钱"
    assert len(said) == 2


def test_index_nodes_hide_no_others_from_an_index_that_is_opened_as_the_readme_says(tmp_path, opened):
    nodes = [TextNode(id_="a", text="The red kettle"), IndexNode(id_="i", text="Table of kettles", index_id="t")]
    for scope, arguments in (("a", {}), ("b", {"store_nodes_override": True})):
        opened.append(RecallVectorStore(tmp_path / "memory.db", scope=scope))
        context = StorageContext.from_defaults(vector_store=opened[-1])
        index = VectorStoreIndex(nodes, storage_context=context, embed_model=RecallEmbedding(), **arguments)
        if not arguments:
            index = VectorStoreIndex.from_vector_store(opened[-1], embed_model=RecallEmbedding())
        found = index.as_retriever(similarity_top_k=9).retrieve("kettle")
        assert {hit.node.node_id for hit in found} == {"a", "i"}
