"""Async methods give what the sync ones give, and do no work on the thread of the event loop."""

from __future__ import annotations

import asyncio
import threading

import apsw
import pytest
from conformance import M, O, f, fs, make_nodes, q
from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import TextNode

from recall_core import Memory
from recall_core.embedding import load_bundled
from recall_llamaindex import RecallChatStore, RecallEmbedding, RecallMemoryBlock, RecallRetriever, RecallVectorStore

QUERIES = [
    q(k=4),
    q(k=2, mode=M.MMR, mmr_threshold=0.2),
    q(k=4, vec=None, mode=M.TEXT_SEARCH, query_str="kettle"),
    q(k=4, vec=None, mode=M.SPARSE, query_str="全文检索", sparse_top_k=1),
    *(q(k=4, mode=M.HYBRID, query_str="kettle", alpha=alpha) for alpha in (None, 0, 0.0, 0.3, 1, 1.0)),
    q(k=4, mode=M.SEMANTIC_HYBRID, query_str="bicycle"),
    q(k=4, filters=fs(f("lang", O.EQ, "zh")), doc_ids=["docA", "docB"]),
]


class Watched:
    """The bundled model, noting in which threads it works."""

    def __init__(self) -> None:
        self._model = load_bundled()
        self.model_id, self.dimensions = self._model.model_id, self._model.dimensions
        self.threads: set[int] = set()

    def embed_passages(self, texts):
        self.threads.add(threading.get_ident())
        return self._model.embed_passages(texts)

    def embed_queries(self, texts):
        self.threads.add(threading.get_ident())
        return self._model.embed_queries(texts)


@pytest.fixture
def statements():
    """Return the list of the threads in which statements of SQL run, on connections opened from now on."""
    threads: list[int] = []

    def watch(connection: apsw.Connection) -> None:
        connection.exec_trace = lambda *_: threads.append(threading.get_ident()) or True

    apsw.connection_hooks.append(watch)
    yield threads
    apsw.connection_hooks.remove(watch)


def run_on_watched_loop(make, statements, model=None):
    """Run a coroutine in a loop of its own and return what it gives; the thread of the loop does none of the work."""

    async def go():
        statements.clear()
        loop = threading.get_ident()
        result = await make()
        assert statements, "no statement was seen"
        assert loop not in statements
        if model is not None:
            assert model.threads, "the model did nothing"
            assert loop not in model.threads
        return result

    return asyncio.run(go())


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{query.mode.value}-{query.alpha}")
def test_an_async_query_finds_what_a_sync_one_finds(query, tmp_path, opened):
    store = RecallVectorStore(tmp_path / "memory.db")
    opened.append(store)
    store.add(make_nodes())
    here, there = store.query(query), asyncio.run(store.aquery(query))
    assert (here.ids, here.similarities, here.nodes) == (there.ids, there.similarities, there.nodes)
    assert here.ids


def test_fifty_concurrent_queries_leave_the_loop_alone(tmp_path, opened, statements):
    model = Watched()
    store = RecallVectorStore(tmp_path / "memory.db")
    opened.append(store)
    index = VectorStoreIndex.from_vector_store(store, embed_model=RecallEmbedding(model))
    texts = [f"Room {number} has the colour number {number}. 房间 {number}" for number in range(50)]
    index.insert_nodes([TextNode(id_=str(number), text=text) for number, text in enumerate(texts)])
    modes = ("default", "text_search", "sparse", "hybrid", "mmr")
    retrievers = [index.as_retriever(vector_store_query_mode=mode, similarity_top_k=3) for mode in modes]
    asked = [(retrievers[number % len(modes)], f"Which colour has room {number}?") for number in range(50)]
    wanted = [retriever.retrieve(text) for retriever, text in asked]
    model.threads.clear()

    async def ask():
        return await asyncio.gather(*(retriever.aretrieve(text) for retriever, text in asked))

    assert run_on_watched_loop(ask, statements, model) == wanted


def test_fifty_concurrent_aquery_leave_the_loop_alone(tmp_path, opened, statements):
    store = RecallVectorStore(tmp_path / "memory.db")
    opened.append(store)
    store.add(make_nodes())
    queries = [QUERIES[number % len(QUERIES)] for number in range(50)]

    async def ask():
        return await asyncio.gather(*map(store.aquery, queries))

    found = run_on_watched_loop(ask, statements)
    assert [result.ids for result in found] == [store.query(query).ids for query in queries]


def test_writing_leaves_the_loop_alone(tmp_path, opened, statements):
    store = RecallVectorStore(tmp_path / "memory.db")
    opened.append(store)

    async def write():
        await store.async_add(make_nodes())
        await store.adelete("docB")
        await store.adelete_nodes(["n1"])
        left = await store.aget_nodes()
        await store.aclear()
        return [node.node_id for node in left]

    assert run_on_watched_loop(write, statements) == ["n2", "n3", "n6"]
    assert store.get_nodes() == []


def test_a_retriever_leaves_the_loop_alone(tmp_path, opened, statements):
    model = Watched()
    retriever = RecallRetriever(tmp_path / "memory.db", embedder=model)
    opened.append(retriever)
    with Memory.open(tmp_path / "memory.db", embedder=model) as memory:
        memory.add("The boiler is in the cellar.")
    wanted = retriever.retrieve("Where is the boiler?")
    model.threads.clear()

    async def ask():
        return await asyncio.gather(*(retriever.aretrieve("Where is the boiler") for _ in range(50)))

    found = run_on_watched_loop(ask, statements, model)
    assert [[hit.node for hit in hits] for hits in found] == [[hit.node for hit in wanted]] * 50


def test_a_memory_block_and_a_chat_store_leave_the_loop_alone(tmp_path, opened, statements):
    model = Watched()
    block = RecallMemoryBlock(tmp_path / "memory.db", embedder=model)
    store = RecallChatStore(tmp_path / "memory.db")
    opened.extend([block, store])

    async def talk():
        said = [ChatMessage(role="user", content="My boiler is in the cellar.")]
        await store.add_messages("s", said)
        await store.archive_oldest_messages("s", 1)
        await block.aput(said, session_id="s")
        await store.delete_messages("s")
        return await block.aget([ChatMessage(role="user", content="Where is the boiler?")], session_id="s")

    assert "cellar" in run_on_watched_loop(talk, statements, model)


def test_the_watch_sees_work_on_the_loop(tmp_path, opened, statements):
    """A store whose async methods are LlamaIndex's own, which work on the loop, is caught."""

    class Blocking(RecallVectorStore):
        async def aquery(self, query, **kwargs):
            return self.query(query, **kwargs)

    store = Blocking(tmp_path / "memory.db")
    opened.append(store)
    store.add([TextNode(id_="a", text="x", embedding=MockEmbedding(4).get_text_embedding("x"))])
    with pytest.raises(AssertionError):
        run_on_watched_loop(lambda: store.aquery(q(k=1)), statements)
