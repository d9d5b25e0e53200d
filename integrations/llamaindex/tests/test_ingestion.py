"""Chinese documents through an IngestionPipeline: found in every mode, and nothing is left of what is gone."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest
from conformance import M, O, f, fs
from handbook import QUESTIONS, TEXTS, make_documents
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore

from recall_core import Memory
from recall_llamaindex import RecallEmbedding, RecallVectorStore

MODES = {
    M.DEFAULT: {},
    M.TEXT_SEARCH: {},
    M.SPARSE: {"sparse_top_k": 2},
    M.HYBRID: {},
    M.SEMANTIC_HYBRID: {"alpha": 0.5},
    M.MMR: {"vector_store_kwargs": {"mmr_threshold": 0.8}},
}
every_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)


@pytest.fixture(scope="module")
def model():
    return RecallEmbedding()


class Archive:
    """A pipeline into one file, with what was indexed."""

    def __init__(self, path, model, strategy=DocstoreStrategy.UPSERTS):
        self.store = RecallVectorStore(path)
        splitter = SentenceSplitter(chunk_size=96, chunk_overlap=16)
        self.pipeline = IngestionPipeline(
            transformations=[splitter, model],
            docstore=SimpleDocumentStore(),
            vector_store=self.store,
            docstore_strategy=strategy,
        )
        self.index = VectorStoreIndex.from_vector_store(self.store, embed_model=model)

    def run(self, documents):
        return self.pipeline.run(documents=documents)

    def retrieve(self, question, mode, **arguments):
        retriever = self.index.as_retriever(
            vector_store_query_mode=mode, **{"similarity_top_k": 2, **MODES[mode], **arguments}
        )
        return retriever.retrieve(question)

    def find_all(self, question):
        """Return the nodes that any mode finds, with all that the store lists."""
        found = [hit.node for mode in MODES for hit in self.retrieve(question, mode, similarity_top_k=99)]
        return found + self.store.get_nodes()


@pytest.fixture(scope="module")
def shared(tmp_path_factory, model):
    """Return an archive that is only read."""
    archive = Archive(tmp_path_factory.mktemp("shared") / "memory.db", model)
    archive.run(make_documents())
    yield archive
    archive.store.close()


@pytest.fixture
def archive(tmp_path, model, opened):
    archive = Archive(tmp_path / "memory.db", model)
    opened.append(archive.store)
    archive.run(make_documents())
    return archive


def count_rows(path):
    with sqlite3.connect(path) as file:
        tables = ("record", "chunk", "embedding")
        counts = [file.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
    file.close()
    return counts


@every_mode
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_finds_its_document(shared, mode, question):
    hits = shared.retrieve(question, mode)
    assert hits[0].node.ref_doc_id == QUESTIONS[question]
    assert hits[0].node.metadata["topic"] == QUESTIONS[question]


def test_documents_are_split_and_nothing_of_them_is_missing(shared):
    nodes = shared.store.get_nodes()
    assert len(nodes) > len(TEXTS)
    for name, text in TEXTS.items():
        parts = [node.get_content() for node in nodes if node.ref_doc_id == name]
        assert all(part in text for part in parts)
        assert text.startswith(parts[0])
        assert text.endswith(parts[-1])


@every_mode
def test_filters_hold_in_every_mode(shared, mode):
    topic = fs(f("topic", O.IN, ["leave", "canteen"]))
    hits = shared.retrieve("数据库什么时候备份，病假怎么请，午餐时间", mode, filters=topic, similarity_top_k=9)
    assert {hit.node.ref_doc_id for hit in hits} == {"leave", "canteen"}


def test_what_has_not_changed_is_not_stored_again(archive):
    before = [node.node_id for node in archive.store.get_nodes()]
    assert archive.run(make_documents()) == []
    assert [node.node_id for node in archive.store.get_nodes()] == before


def test_of_a_changed_document_nothing_old_is_left(archive, tmp_path):
    archive.run([Document(id_="canteen", text="食堂搬到了三号楼，每天供应清真窗口。", metadata={"topic": "canteen"})])
    assert archive.retrieve("清真窗口在哪里", M.HYBRID)[0].node.ref_doc_id == "canteen"
    nodes = archive.find_all("素食窗口是哪一天？刷工牌付费，余额不足可以在前台充值")
    assert not [node for node in nodes if "素食" in node.get_content() or "工牌" in node.get_content()]
    assert_no_ghost(archive, tmp_path, "素食窗口")


@pytest.mark.parametrize("delete", [
    lambda archive: archive.store.delete("security"),
    lambda archive: archive.index.delete_ref_doc("security"),
    lambda archive: archive.store.delete_nodes(filters=fs(f("doc_id", O.EQ, "security"))),
    lambda archive: archive.store.delete_nodes(
        [node.node_id for node in archive.store.get_nodes() if node.ref_doc_id == "security"]
    ),
], ids=["store", "index", "filter", "ids"])  # fmt: skip
def test_of_a_deleted_document_nothing_is_left(archive, tmp_path, delete):
    delete(archive)
    nodes = archive.find_all("收到钓鱼邮件怎么办")
    assert {node.ref_doc_id for node in nodes} == TEXTS.keys() - {"security"}
    assert_no_ghost(archive, tmp_path, "钓鱼邮件")


def assert_no_ghost(archive, folder, words):
    """Neither recall_core nor a reader of the plain file finds anything more than the nodes."""
    left = len(archive.store.get_nodes())
    with Memory.open(folder / "memory.db", embedder=None) as memory:
        assert memory.count() == left
        assert not [hit for hit in memory.search(words) if words in hit.record.text]
        (space,) = memory.stats().spaces
        assert space.vectors == left
    assert count_rows(folder / "memory.db") == [left] * 3


def test_documents_that_are_not_given_any_more_are_deleted_if_the_strategy_says_so(tmp_path, model, opened):
    archive = Archive(tmp_path / "memory.db", model, DocstoreStrategy.UPSERTS_AND_DELETE)
    opened.append(archive.store)
    archive.run(make_documents())
    archive.run([document for document in make_documents() if document.id_ not in ("leave", "travel")])
    assert {node.ref_doc_id for node in archive.find_all("婚假有多少天")} == TEXTS.keys() - {"leave", "travel"}
    assert_no_ghost(archive, tmp_path, "婚假")


def test_a_cleared_store_can_be_filled_again(archive, tmp_path):
    archive.store.clear()
    assert archive.find_all("怎么部署服务？") == []
    assert count_rows(tmp_path / "memory.db") == [0, 0, 0]
    archive.pipeline.docstore = SimpleDocumentStore()
    archive.run(make_documents())
    assert archive.retrieve("怎么部署服务？", M.HYBRID)[0].node.ref_doc_id == "deploy"


async def run_async(archive):
    return await archive.pipeline.arun(documents=make_documents())


def test_an_async_run_stores_the_same(tmp_path, model, opened, shared):
    other = Archive(tmp_path / "other.db", model)
    opened.append(other.store)
    asyncio.run(run_async(other))
    texts = [[node.get_content() for node in store.get_nodes()] for store in (shared.store, other.store)]
    assert texts[0] == texts[1]
