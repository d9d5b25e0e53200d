"""The retriever: everything in a file is found by it, within its scope, as calls want it."""

from __future__ import annotations

import pytest
from fakes import CharEmbeddings
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import ValidationError

from recall_core import Memory
from recall_core.errors import InvalidInputError
from recall_langchain import RecallChatMessageHistory, RecallRetriever, RecallStore, RecallVectorStore


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "memory.db") as memory:
        memory.add(
            "Ann prefers green tea.", id="ann", scope="user/ann", tags=["taste"], metadata={"n": 1}, source="form"
        )
        memory.add("Bob prefers black coffee.", id="bob", scope="user/bob", metadata={"n": 2})
        memory.add("The release is on Friday.", id="release", metadata={"n": 3})
        yield memory


def ids(documents) -> list[str]:
    return [document.id for document in documents]


def test_a_document_says_how_relevant_it_is_and_what_is_known_of_it(memory):
    (document,) = RecallRetriever(memory=memory, k=1).invoke("What does Ann like to drink?")
    about = document.metadata.pop("recall")
    assert document.metadata.pop("relevance_score") > 0.5
    assert (document.id, document.page_content, document.metadata) == ("ann", "Ann prefers green tea.", {"n": 1})
    assert (about["scope"], about["tags"], about["source"]) == ("user/ann", ["taste"], "form")
    assert about["excerpt"] == "Ann prefers green tea."


def test_scores_can_be_left_out(memory):
    (document,) = RecallRetriever(memory=memory, k=1, add_score=False).invoke("release")
    assert document.metadata == {"n": 3}


def test_a_scope_of_a_call_lies_below_that_of_the_retriever(memory):
    everything, users = RecallRetriever(memory=memory), RecallRetriever(memory=memory, scope="user")
    assert len(everything.invoke("prefers")) == 3
    assert ids(everything.invoke("prefers", scope="user/bob")) == ["bob"]
    assert sorted(ids(users.invoke("prefers"))) == ["ann", "bob"]
    assert ids(users.invoke("prefers", scope="ann")) == ["ann"]
    assert users.invoke("release", scope="user/ann") == []
    with pytest.raises(InvalidInputError, match="scope"):
        users.invoke("release", scope="../release")


async def test_fields_hold_unless_a_call_says_otherwise(memory):
    retriever = RecallRetriever(memory=memory, k=1, filter={"n": {"$gt": 1}}, mode="keyword")
    assert ids(retriever.invoke("prefers tea coffee Friday release")) != ["ann"]
    assert ids(await retriever.ainvoke("prefers", k=3, filter=lambda document: document.id == "ann")) == ["ann"]
    assert len(retriever.invoke("a beverage", k=3)) == 0
    assert len(retriever.invoke("a beverage", k=3, mode="semantic")) == 2
    assert RecallRetriever(memory=memory, min_relevance=0.99).invoke("a quite different matter") == []
    assert retriever.batch(["coffee", "release"])[1][0].id == "release"


def test_a_field_that_there_is_not_is_refused(memory):
    with pytest.raises(ValidationError, match="top_k"):
        RecallRetriever(memory=memory, top_k=3)
    with pytest.raises(TypeError, match="top_k"):
        RecallRetriever(memory=memory).invoke("tea", top_k=3)


def test_callbacks_and_traces_see_the_query_its_tags_and_what_was_found(memory):
    class Noting(BaseCallbackHandler):
        def on_retriever_start(self, serialized, query, *, tags=None, metadata=None, **kwargs):
            self.started = (query, tags, metadata["ls_retriever_name"], metadata["ls_vector_store_provider"])

        def on_retriever_end(self, documents, **kwargs):
            self.found = ids(documents)

    noting = Noting()
    RecallRetriever(memory=memory, k=1, tags=["mine"]).invoke("release", {"callbacks": [noting]})
    assert noting.started == ("release", ["mine"], "recall", "recall_core")
    assert noting.found == ["release"]


def test_one_file_serves_all_at_once(tmp_path):
    path = tmp_path / "memory.db"
    with RecallVectorStore(path, CharEmbeddings()) as store:
        store.add_texts(["The manual says: turn the valve to the left."], ids=["manual"])
    with Memory.open(path) as memory:
        memory.flush()
        RecallStore(memory).put(("facts", "ann"), "valve", {"text": "Ann repaired the valve in May."})
        history = RecallChatMessageHistory("talk", memory, scope="user/ann")
        history.add_messages([HumanMessage("The valve is leaking again."), AIMessage("I will send somebody.")])
        memory.add("A valve costs 40 euros.")
        found = RecallRetriever(memory=memory, k=10, min_relevance=0.3).invoke("valve")
        kinds = {document.metadata["recall"]["kind"] for document in found}
        assert kinds == {"document", "item", "message", "memory"}
        assert "manual" in ids(found)
        assert ids(RecallVectorStore(memory, CharEmbeddings()).similarity_search("valve", k=10)) == ["manual"]


def test_a_retriever_opens_and_closes_a_file_of_its_own(tmp_path):
    path = tmp_path / "memory.db"
    with Memory.open(path) as memory:
        memory.add("tea")
    with RecallRetriever(memory=path) as retriever:
        assert len(retriever.invoke("tea")) == 1
    with pytest.raises(Exception, match="closed"):
        retriever.invoke("tea")


def test_the_where_of_the_core_holds_as_well_as_a_filter(memory):
    retriever = RecallRetriever(memory=memory, filter={"n": {"$lt": 3}})
    assert ids(retriever.invoke("Who prefers tea or coffee?", where={"n": 1})) == ["ann"]
    assert retriever.invoke("Who prefers tea or coffee?", where={"n": 3}) == []
