"""End to end through VectorStoreIndex, IngestionPipeline and Memory, offline."""

from __future__ import annotations

import asyncio

import pytest
from conformance import BigramEmbedding, O, f, fs
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import Memory, VectorMemoryBlock
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

DOCS = [
    Document(id_="kettle", text="Red kettle whistles at dawn.", metadata={"kind": "home"}),
    Document(id_="bicycle", text="Blue bicycle leans on the fence.", metadata={"kind": "sport"}),
    Document(id_="beijing", text="北京的冬天很冷，需要穿羽绒服。", metadata={"kind": "travel"}),
]


def build(store, docs=DOCS, **kw):
    return VectorStoreIndex.from_documents(
        docs,
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=BigramEmbedding(),
        transformations=[SentenceSplitter(chunk_size=128, chunk_overlap=0)],
        **kw,
    )


def texts(nodes):
    return [n.node.get_content() for n in nodes]


def test_index_retrieve(store):
    got = build(store).as_retriever(similarity_top_k=1).retrieve("Blue bicycle leans")
    assert texts(got) == [DOCS[1].text]
    assert isinstance(got[0].score, float)
    assert got[0].node.ref_doc_id == "bicycle"
    assert got[0].node.metadata == {"kind": "sport"}


def test_index_retrieve_with_filters(store):
    r = build(store).as_retriever(similarity_top_k=5, filters=fs(f("kind", O.EQ, "home")))
    assert texts(r.retrieve("bicycle")) == [DOCS[0].text]


def test_index_aretrieve_equals_retrieve(store):
    r = build(store).as_retriever(similarity_top_k=3)
    assert texts(asyncio.run(r.aretrieve("kettle"))) == texts(r.retrieve("kettle"))


def test_index_no_match_returns_empty_list(store):
    r = build(store).as_retriever(filters=fs(f("kind", O.EQ, "nothing")))
    assert r.retrieve("kettle") == []


def test_index_mmr(store):
    r = build(store).as_retriever(
        similarity_top_k=2, vector_store_query_mode="mmr", vector_store_kwargs={"mmr_threshold": 0.5}
    )
    assert len(r.retrieve("kettle")) == 2


def test_index_insert_and_delete_ref_doc(store):
    ix = build(store)
    ix.insert(Document(id_="new", text="Green tractor ploughs the field."))
    assert "Green tractor ploughs the field." in texts(ix.as_retriever(similarity_top_k=9).retrieve("tractor"))
    ix.delete_ref_doc("new", delete_from_docstore=True)
    assert "Green tractor ploughs the field." not in texts(ix.as_retriever(similarity_top_k=9).retrieve("tractor"))


def test_index_update_ref_doc(store):
    ix = build(store)
    ix.update_ref_doc(Document(id_="kettle", text="Copper pot simmers."))
    got = texts(ix.as_retriever(similarity_top_k=9).retrieve("pot"))
    assert "Copper pot simmers." in got
    assert DOCS[0].text not in got
    assert len(got) == 3


def test_index_async_insert_delete(store):
    ix = build(store)

    async def go():
        await ix.ainsert_nodes([TextNode(id_="x1", text="Async node text")])
        a = texts(await ix.as_retriever(similarity_top_k=9).aretrieve("Async node"))
        await ix.adelete_nodes(["x1"], delete_from_docstore=True)
        b = texts(await ix.as_retriever(similarity_top_k=9).aretrieve("Async node"))
        return a, b

    a, b = asyncio.run(go())
    assert "Async node text" in a
    assert "Async node text" not in b


def test_index_use_async_build(store):
    assert len(build(store, use_async=True).as_retriever(similarity_top_k=9).retrieve("x")) == 3


def test_index_query_engine(store):
    resp = build(store).as_query_engine(llm=MockLLM(), similarity_top_k=1).query("Blue bicycle leans")
    assert DOCS[1].text in str(resp)
    assert len(resp.source_nodes) == 1


@pytest.mark.parametrize("mode", ["context", "condense_plus_context", "condense_question"])
def test_index_chat_engine(store, mode):
    ce = build(store).as_chat_engine(chat_mode=mode, llm=MockLLM(), similarity_top_k=1)
    resp = ce.chat("Blue bicycle leans")
    assert DOCS[1].text in str(resp)


def test_index_storage_context_persist(store, tmp_path):
    build(store).storage_context.persist(persist_dir=str(tmp_path / "p"))


def test_index_from_vector_store(store):
    build(store)
    ix = VectorStoreIndex.from_vector_store(store, embed_model=BigramEmbedding())
    r = ix.as_retriever(similarity_top_k=9)
    assert len(r.retrieve("kettle")) == 3  # as_retriever passes node_ids=[]


def test_index_from_vector_store_query_engine(store):
    build(store)
    ix = VectorStoreIndex.from_vector_store(store, embed_model=BigramEmbedding())
    assert DOCS[0].text in str(ix.as_query_engine(llm=MockLLM(), similarity_top_k=1).query("Red kettle whistles"))


def test_index_from_vector_store_delete_and_update(store):
    build(store)
    ix = VectorStoreIndex.from_vector_store(store, embed_model=BigramEmbedding())
    ix.delete_ref_doc("kettle")
    assert len(ix.as_retriever(similarity_top_k=9).retrieve("kettle")) == 2


def test_index_hybrid(store):
    r = build(store).as_retriever(vector_store_query_mode="hybrid", similarity_top_k=2, sparse_top_k=2, alpha=0.0)
    assert texts(r.retrieve("fence"))[:1] == [DOCS[1].text]


def test_index_hybrid_chinese(store):
    r = build(store).as_retriever(vector_store_query_mode="hybrid", similarity_top_k=2, alpha=0.3)
    assert texts(r.retrieve("羽绒服"))[:1] == [DOCS[2].text]


def test_index_text_search_needs_no_embedding(store):
    ix = build(store)
    em = BigramEmbedding()
    r = VectorIndexRetriever(ix, vector_store_query_mode="text_search", embed_model=em)
    assert texts(r.retrieve("fence")) == [DOCS[1].text]
    assert em.calls == 0


def test_ingestion_pipeline_upserts(store):
    def run(docs, pipe):
        return pipe.run(documents=docs)

    pipe = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=128, chunk_overlap=0), BigramEmbedding()],
        docstore=SimpleDocumentStore(),
        vector_store=store,
        docstore_strategy=DocstoreStrategy.UPSERTS,
    )
    run(DOCS, pipe)
    run(DOCS, pipe)
    from conformance import q

    em = BigramEmbedding()

    def count():
        return len(store.query(q(vec=em._vec("kettle"), k=99)).ids)

    assert count() == 3
    run([Document(id_="kettle", text="Changed text.")], pipe)
    assert count() == 3


def test_memory_block_recall(store):
    em = BigramEmbedding()
    # top_k 9: the block's query is the last 5 messages joined, so with a small k the
    # filler chatter, not the question, decides what is recalled (core behaviour)
    block = VectorMemoryBlock(name="recall", vector_store=store, embed_model=em, similarity_top_k=9)
    mem = Memory.from_defaults(
        session_id="s1", token_limit=60, token_flush_size=20, chat_history_token_ratio=0.5, memory_blocks=[block]
    )

    async def go():
        await mem.aput(ChatMessage(role="user", content="My bicycle is blue and parked by the fence."))
        await mem.aput(ChatMessage(role="assistant", content="Noted: blue bicycle by the fence."))
        for i in range(6):
            await mem.aput(ChatMessage(role="user", content=f"filler question number {i} about weather"))
            await mem.aput(ChatMessage(role="assistant", content=f"filler answer number {i} about weather"))
        return await mem.aget(input="where is my bicycle?")

    msgs = asyncio.run(go())
    assert msgs[0].role == "system"
    assert "bicycle" in (msgs[0].content or "")


def test_memory_block_sessions_do_not_mix(store):
    em = BigramEmbedding()

    async def go():
        for s, txt in (("s1", "Alice likes tea"), ("s2", "Bob likes coffee")):
            blk = VectorMemoryBlock(name="recall", vector_store=store, embed_model=em, similarity_top_k=5)
            await blk.aput([ChatMessage(role="user", content=txt)], session_id=s)
        blk = VectorMemoryBlock(name="recall", vector_store=store, embed_model=em, similarity_top_k=5)
        return await blk.aget([ChatMessage(role="user", content="likes")], session_id="s2")

    got = asyncio.run(go())
    assert "Bob" in got
    assert "Alice" not in got
