"""What langchain-tests does not check but users rely on."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import target
from fakes import CharEmbeddings
from langchain_core.documents import Document

DOCS = [
    Document("用户喜欢喝乌龙茶", metadata={"user": "u1", "n": 1, "tags": ["a", "b"], "nested": {"x": 1}}, id="d1"),
    Document("the deployment runs on kubernetes", metadata={"user": "u2", "n": 2}, id="d2"),
    Document("error code E-4042 in parser.py", metadata={"user": "u1", "n": 3}, id="d3"),
    Document("会议定在下周三下午三点", metadata={"user": "u2", "n": 4}, id="d4"),
]


@pytest.fixture
def vs(tmp_path):
    with target.vectorstore(CharEmbeddings(), tmp_path) as v:
        yield v


def test_metadata_round_trips_exactly_and_no_score_is_added(vs):
    vs.add_documents(DOCS)
    got = {d.id: d for d in vs.similarity_search("乌龙茶", k=4)}
    assert got["d1"] == DOCS[0]


def test_empty_inputs(vs):
    assert vs.add_documents([]) == []
    assert vs.get_by_ids([]) == []
    assert vs.similarity_search("", k=2) == []


def test_returned_id_order_matches_input(vs):
    ids = vs.add_texts(["a1", "b2", "c3"], metadatas=[{"i": i} for i in range(3)])
    assert [vs.get_by_ids([i])[0].page_content for i in ids] == ["a1", "b2", "c3"]


def test_kwarg_ids_win_over_document_ids(vs):
    assert vs.add_documents([Document("x", id="own")], ids=["kw"]) == ["kw"]


def test_length_mismatch_raises(vs):
    with pytest.raises(ValueError, match="2 texts and 1 metadatas"):
        vs.add_texts(["a", "b"], metadatas=[{}])
    with pytest.raises(ValueError, match="2 texts and 1 ids"):
        vs.add_texts(["a", "b"], ids=["only-one"])


def test_with_score_shape_and_order(vs):
    vs.add_documents(DOCS)
    r = vs.similarity_search_with_score("乌龙茶", k=3)
    assert len(r) == 3
    assert r[0][0].id == "d1"
    assert all(isinstance(s, float) for _, s in r)


def test_relevance_scores_are_0_to_1_and_threshold_filters(vs, recwarn):
    vs.add_documents(DOCS)
    r = vs.similarity_search_with_relevance_scores("用户喜欢喝乌龙茶", k=4)
    assert all(0.0 <= s <= 1.0 for _, s in r), r
    assert [s for _, s in r] == sorted((s for _, s in r), reverse=True)
    top = r[0][1]
    assert all(
        s >= top for _, s in vs.similarity_search_with_relevance_scores("用户喜欢喝乌龙茶", k=4, score_threshold=top)
    )
    assert not [w for w in recwarn if "Relevance scores must be between" in str(w.message)]


def test_as_retriever_score_threshold(vs):
    vs.add_documents(DOCS)
    assert vs.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.0, "k": 2}
    ).invoke("乌龙茶")


def test_as_retriever_similarity_and_mmr(vs):
    vs.add_documents(DOCS)
    assert vs.as_retriever(search_kwargs={"k": 1}).invoke("乌龙茶")[0].id == "d1"
    assert len(vs.as_retriever(search_type="mmr", search_kwargs={"k": 2, "fetch_k": 4}).invoke("乌龙茶")) == 2


async def test_async_retriever(vs):
    await vs.aadd_documents(DOCS)
    assert (await vs.as_retriever(search_kwargs={"k": 1}).ainvoke("乌龙茶"))[0].id == "d1"
    assert len(await vs.amax_marginal_relevance_search("乌龙茶", k=2, fetch_k=3)) == 2


def test_embeddings_property(vs):
    assert vs.embeddings is not None


def test_filter_dict(vs):
    vs.add_documents(DOCS)
    assert {d.id for d in vs.similarity_search("e", k=4, filter={"user": "u1"})} == {"d1", "d3"}
    assert {d.id for d in vs.similarity_search("e", k=4, filter={"n": {"$gte": 3}})} == {"d3", "d4"}
    # a filter narrower than the nearest neighbours must still fill k (no post-filter starvation)
    vs.add_documents([Document(f"乌龙茶 {i}", metadata={"user": "other"}) for i in range(50)])
    assert len(vs.similarity_search("乌龙茶", k=2, filter={"user": "u1"})) == 2


def test_delete_none_clears_all(vs):
    vs.add_documents(DOCS)
    vs.delete()
    assert vs.similarity_search("乌龙茶", k=4) == []


def test_parallel_threads(vs):
    with ThreadPoolExecutor(8) as ex:
        list(ex.map(lambda i: vs.add_texts([f"text {i}"], ids=[f"t{i}"]), range(40)))
        rs = list(ex.map(lambda i: vs.similarity_search(f"text {i}", k=1), range(40)))
    assert len(vs.get_by_ids([f"t{i}" for i in range(40)])) == 40
    assert all(rs)


async def test_parallel_async(vs):
    await asyncio.gather(*(vs.aadd_texts([f"text {i}"], ids=[f"t{i}"]) for i in range(40)))
    rs = await asyncio.gather(*(vs.asimilarity_search(f"text {i}", k=1) for i in range(40)))
    assert all(rs)


def test_persistence(tmp_path):
    with target.vectorstore(CharEmbeddings(), tmp_path) as v:
        v.add_documents(DOCS)
    with target.vectorstore(CharEmbeddings(), tmp_path) as v:
        assert v.similarity_search("乌龙茶", k=1)[0].id == "d1"


def test_long_document_is_one_document(vs):
    """Chunking inside the store must stay invisible: same id, same text, returned once."""
    long = "\n\n".join(f"第{i}段：用户喜欢喝乌龙茶，也喜欢在周末爬山。Paragraph {i}." for i in range(300))
    vs.add_documents([Document(long, id="long", metadata={"a": 1}), Document("unrelated", id="u")])
    assert vs.get_by_ids(["long"]) == [Document(long, id="long", metadata={"a": 1})]
    got = vs.similarity_search("乌龙茶", k=5)
    assert [d.id for d in got].count("long") == 1
    assert got[0].page_content == long
    vs.delete(["long"])
    assert [d.id for d in vs.similarity_search("乌龙茶", k=5)] == ["u"]


def test_query_syntax_is_not_interpreted(vs):
    vs.add_documents(DOCS)
    for q in ['"', "a AND", "NEAR(", "*", "E-4042", "parser.py", "col:x", "(", "😀", "x" * 5000]:
        assert isinstance(vs.similarity_search(q, k=2), list)
