"""RecallRetriever finds what a memory holds, whoever stored it."""

from __future__ import annotations

import pytest
from conformance import O, f, fs
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import IndexNode, MetadataMode, TextNode

from recall_core import Memory
from recall_llamaindex import RecallEmbedding, RecallRetriever, RecallVectorStore


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "memory.db") as memory:
        memory.add(
            "项目部署统一使用 Docker Compose，不再使用虚拟机", id="deploy", scope="user/1", metadata={"lang": "zh"}
        )
        memory.add("午饭吃了牛肉面", id="lunch", scope="user/1", metadata={"lang": "zh"}, tags=["food"])
        memory.add(
            "The boiler is in the cellar.", id="boiler", scope="user/2", metadata={"lang": "en"}, role="user",
            session="s", source="notes.md", created_at="2026-01-31T09:30:00Z",
        )  # fmt: skip
        yield memory


def retrieve(source, question, **arguments):
    return RecallRetriever(source, **arguments).retrieve(question)


def test_a_question_is_answered_by_words_and_by_meaning(memory):
    hits = retrieve(memory, "怎么部署服务？")
    assert hits[0].node.node_id == "deploy"
    assert 0.5 < hits[0].score <= 1
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    (hit,) = retrieve(memory, "Where does the heating stand?", similarity_top_k=1, mode="semantic")
    assert hit.node.node_id == "boiler"


def test_the_arguments_of_search_hold(memory):
    assert {hit.node.node_id for hit in retrieve(memory, "boiler 部署", scope="user/1")} == {"deploy", "lunch"}
    assert [hit.node.node_id for hit in retrieve(memory, "牛肉面", tags=["food"], mode="keyword")] == ["lunch"]
    assert retrieve(memory, "how old is the universe", min_relevance=0.9) == []
    assert len(retrieve(memory, "boiler", similarity_top_k=2)) == 2
    assert len(retrieve(memory, "boiler", limit=1)) == 1


def test_filters_of_llamaindex_hold(memory):
    hits = retrieve(memory, "boiler", filters=fs(f("lang", O.EQ, "zh")))
    assert {hit.node.node_id for hit in hits} == {"deploy", "lunch"}


def test_filters_are_given_in_one_way_only(memory):
    with pytest.raises(ValueError, match="filters and where"):
        RecallRetriever(memory, filters=fs(f("lang", O.EQ, "zh")), where={"lang": "zh"})


def test_an_argument_that_search_does_not_take_is_refused(memory):
    with pytest.raises(TypeError, match="filter"):
        RecallRetriever(memory, filter=fs(f("lang", O.EQ, "zh")))


def test_something_else_than_a_memory_is_refused():
    with pytest.raises(ValueError, match=r"path of a file.*42"):
        RecallRetriever(42)


def test_a_memory_becomes_a_node_that_tells_when_it_was_made_and_by_whom(memory):
    (hit,) = retrieve(memory, "boiler", similarity_top_k=1)
    node = hit.node
    assert type(node) is TextNode
    assert (node.node_id, node.text) == ("boiler", "The boiler is in the cellar.")
    assert node.metadata == {
        "lang": "en", "role": "user", "session": "s", "source": "notes.md", "created_at": "2026-01-31T09:30:00+00:00",
    }  # fmt: skip
    shown = node.get_content(MetadataMode.LLM)
    assert "2026-01-31" in shown
    assert "notes.md" not in shown


def test_nodes_of_a_vector_store_come_back_as_they_were(memory, tmp_path):
    store = RecallVectorStore(tmp_path / "memory.db")
    node = IndexNode(id_="t", text="Table of the prices of tea", index_id="tea", embedding=[1.0, 0.0])
    store.add([node])
    (hit,) = retrieve(memory, "what does tea cost", similarity_top_k=1, mode="keyword")
    assert hit.node == node.model_copy(update={"embedding": None})
    memory.flush()
    (hit,) = retrieve(memory, "a drink made of leaves", similarity_top_k=1, mode="semantic")
    assert hit.node.node_id == "t"
    store.close()


def test_a_file_is_opened_and_closed(tmp_path):
    retriever = RecallRetriever(tmp_path / "new.db", embedder=None)
    assert retriever.retrieve("anything") == []
    retriever.close()


def test_a_view_bounds_what_is_found(memory):
    found = retrieve(memory.scoped("user/2"), "部署 boiler")
    assert [hit.node.node_id for hit in found] == ["boiler"]


def test_engines_answer_from_a_memory(memory):
    retriever = RecallRetriever(memory, similarity_top_k=1)
    response = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query("怎么部署服务")
    assert "Docker Compose" in str(response)
    assert [hit.node.node_id for hit in response.source_nodes] == ["deploy"]
    chat = ContextChatEngine.from_defaults(retriever=retriever, llm=MockLLM()).chat("Where is the boiler?")
    assert [hit.node.node_id for hit in chat.source_nodes] == ["boiler"]


def test_vectors_of_the_bundled_model_are_the_same_in_both_worlds(memory):
    model = RecallEmbedding()
    hits = memory.search("", vector=model.get_query_embedding("怎么部署服务"), mode="semantic", limit=1)
    assert hits[0].record.id == "deploy"
