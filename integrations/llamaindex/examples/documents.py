"""Chinese documents: split, embedded and kept in one file, changed and deleted, asked in several ways. No network."""

from __future__ import annotations

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilters

from recall_llamaindex import RecallEmbedding, RecallVectorStore

DOCUMENTS = {
    "部署": "所有服务统一使用 Docker Compose 部署，不再使用虚拟机。上线之前必须在预发布环境完成回归测试。",
    "请假": "请年假需要提前三个工作日在系统里提交申请。婚假为十五天，产假按照当地政策执行。",
    "食堂": "午餐供应时间为十一点半到一点，周三提供素食窗口。刷工牌付费，余额不足可以在前台充值。",
}

store, model = RecallVectorStore("handbook.db"), RecallEmbedding()
pipeline = IngestionPipeline(
    transformations=[SentenceSplitter(chunk_size=256), model],
    docstore=SimpleDocumentStore(),
    docstore_strategy=DocstoreStrategy.UPSERTS,
    vector_store=store,
)
pipeline.run(documents=[Document(id_=name, text=text, metadata={"topic": name}) for name, text in DOCUMENTS.items()])
index = VectorStoreIndex.from_vector_store(store, embed_model=model)


def show(question: str, mode: str = "hybrid", **arguments: object) -> None:
    hits = index.as_retriever(vector_store_query_mode=mode, similarity_top_k=1, **arguments).retrieve(question)
    found = [f"{hit.score:.2f} {hit.node.get_content()}" for hit in hits] or ["nothing"]
    print(f"{mode:12} {question} -> {found[0]}")


for mode in ("default", "text_search", "hybrid", "mmr"):
    show("怎么部署服务？", mode)
show(
    "婚假有多少天", filters=MetadataFilters.from_dicts([{"key": "topic", "value": ["请假", "食堂"], "operator": "in"}])
)

pipeline.run(documents=[Document(id_="食堂", text="食堂搬到了三号楼，每天都有清真窗口。", metadata={"topic": "食堂"})])
show("素食窗口", "text_search")
show("食堂在哪里？")
index.delete_ref_doc("食堂")
show("食堂", "text_search")
store.close()
