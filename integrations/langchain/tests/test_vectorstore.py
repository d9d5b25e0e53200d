"""The vector store beyond the contract: models, spaces, filters, deletion, diversity, keywords."""

from __future__ import annotations

import pytest
from fakes import CharEmbeddings
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from recall_core import And, Condition, Memory
from recall_langchain import RecallEmbeddings, RecallVectorStore

TEXTS = {"tea": "用户喜欢喝乌龙茶", "k8s": "the deployment runs on kubernetes", "err": "error code E-4042 in parser.py"}


class Directions(Embeddings):
    """Gives the texts "n" to vectors of n degrees apart."""

    model = "directions/v1"

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        import math

        angle = math.radians(float(text))
        return [math.cos(angle), math.sin(angle)]


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "memory.db") as memory:
        yield memory


def fill(store: RecallVectorStore) -> RecallVectorStore:
    store.add_texts(list(TEXTS.values()), [{"n": n, "even": n % 2 == 0} for n in range(3)], ids=list(TEXTS))
    return store


def ids(documents) -> list[str]:
    return [document.id for document in documents]


# Models and spaces


def test_without_a_model_of_langchain_the_memorys_own_embeds(memory):
    store = fill(RecallVectorStore(memory))
    assert store.embeddings is None
    assert ids(store.similarity_search("what does the user like to drink?", k=1)) == ["tea"]
    assert [space.name for space in memory.stats().spaces] == ["memory"]


def test_vectors_of_each_model_have_a_space_named_after_it(memory):
    RecallVectorStore(memory, CharEmbeddings(32), scope="chars").add_texts(["1"])
    RecallVectorStore(memory, Directions(), scope="directions").add_texts(["1"])
    RecallVectorStore(memory, RecallEmbeddings(), scope="named", space="mine").add_texts(["1"])
    names = {space.name for space in memory.stats().spaces}
    assert names == {"memory", "langchain:CharEmbeddings", "langchain:Directions:directions/v1", "mine"}


def test_a_file_opened_with_a_model_of_langchain_loads_no_other(tmp_path):
    path = tmp_path / "memory.db"
    with RecallVectorStore(path, CharEmbeddings()) as store:
        fill(store)
        assert [space.name for space in store._view._engine.store.vectors.spaces()] == ["langchain:CharEmbeddings"]
    with Memory.open(path) as memory:
        assert memory.flush() == 0
        assert memory.search("what does the user like to drink?")[0].record.text == TEXTS["tea"]


def test_documents_of_the_same_id_in_two_scopes_are_two(memory):
    one, other = RecallVectorStore(memory, scope="one"), RecallVectorStore(memory, scope="other")
    one.add_texts(["one"], ids=["1"])
    other.add_texts(["other"], ids=["1"])
    assert one.get_by_ids(["1"])[0].page_content == "one"
    other.delete()
    assert len(one.similarity_search("one")) == 1


def test_what_a_search_of_the_scope_finds_are_documents_only(memory):
    memory.add("not a document", scope="documents")
    store = fill(RecallVectorStore(memory))
    assert len(store.similarity_search("document", k=10)) == 3
    store.delete()
    assert memory.count() == 1


def test_a_mode_can_be_chosen_for_the_store_and_for_a_search(memory):
    store = fill(RecallVectorStore(memory, CharEmbeddings(), mode="keyword"))
    assert ids(store.similarity_search("E-4042", k=3)) == ["err"]
    assert len(store.similarity_search("E-4042", k=3, mode="semantic")) == 3


def test_an_exact_code_is_first_though_vectors_say_otherwise(memory):
    store = RecallVectorStore(memory)
    store.add_texts([f"error code E-{4000 + number} in module {number}" for number in range(100)])
    assert store.similarity_search("E-4042", k=1)[0].page_content.startswith("error code E-4042")


# Filters


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"n": {"$in": [0, 2]}}, ["err", "tea"]),
        ({"$or": [{"n": 1}, {"n": {"$gte": 2, "$lt": 3}}]}, ["err", "k8s"]),
        ({"$and": [{"even": True}, {"n": {"$ne": 0}}, {"n": {"$lte": 2}}]}, ["err"]),
        ({"$not": {"even": True}}, ["k8s"]),
        ({"n": {"$exists": True, "$lt": 1}}, ["tea"]),
        ({"missing": {"$exists": False}}, ["err", "k8s", "tea"]),
        (Condition("n", "eq", 1), ["k8s"]),
        (lambda document: document.id == "tea" or document.metadata["n"] == 1, ["k8s", "tea"]),
        (lambda document: False, []),
    ],
    ids=["in", "or", "and", "not", "exists", "missing", "Filter", "function", "nothing"],
)
async def test_a_filter_holds_before_the_best_are_taken(memory, filter, expected):
    store = fill(RecallVectorStore(memory, CharEmbeddings()))
    store.add_texts([f"乌龙茶 {number}" for number in range(20)], [{"n": 99, "even": True, "missing": 1}] * 20)
    query = {"k": 3, "filter": filter}
    for found in (
        store.similarity_search("乌龙茶", **query),
        await store.asimilarity_search("乌龙茶", **query),
        store.similarity_search_by_vector(CharEmbeddings().embed_query("乌龙茶"), **query),
        store.max_marginal_relevance_search("乌龙茶", **query),
        [document for document, _ in store.similarity_search_with_score("乌龙茶", **query)],
        store.as_retriever(search_kwargs=query).invoke("乌龙茶"),
    ):
        assert sorted(ids(found)) == expected


def test_a_filter_that_is_none_is_refused_and_nothing_is_deleted(memory):
    store = fill(RecallVectorStore(memory))
    for filter, said in (({"n": {"$near": 1}}, "near"), ({"$nor": []}, "nor"), ("n = 1", "filter")):
        with pytest.raises(ValueError, match=said):
            store.similarity_search("x", filter=filter)
        with pytest.raises(ValueError, match=said):
            store.delete(filter=filter)
    assert len(store.get_by_ids(list(TEXTS))) == 3


# Deletion and upserts


async def test_documents_are_deleted_by_filter_by_id_and_by_both(memory):
    store = fill(RecallVectorStore(memory))
    store.delete(["tea", "k8s"], filter={"even": True})
    assert ids(store.get_by_ids(list(TEXTS))) == ["k8s", "err"]
    await store.adelete(filter=lambda document: document.id == "k8s")
    assert store.delete(["missing"]) is True
    assert ids(store.get_by_ids(list(TEXTS))) == ["err"]
    assert store.delete([]) is True
    assert memory.count() == 1


def test_a_document_that_is_deleted_can_not_be_restored(memory):
    store = fill(RecallVectorStore(memory))
    store.delete(["tea"])
    store.delete(filter={"n": 1})
    assert memory.deleted() == []


def test_a_replaced_document_is_found_by_its_new_text_alone(memory):
    store = fill(RecallVectorStore(memory, CharEmbeddings()))
    store.add_documents([Document("zzz qqq", id="tea", metadata={"new": True})])
    assert store.get_by_ids(["tea"]) == [Document("zzz qqq", id="tea", metadata={"new": True})]
    assert ids(store.similarity_search("zzz qqq", k=1)) == ["tea"]
    assert store.similarity_search_by_vector(CharEmbeddings().embed_query(TEXTS["tea"]), k=3)[-1].id == "tea"


def test_a_document_without_text_is_kept_and_found_by_its_id(memory):
    store = RecallVectorStore(memory, CharEmbeddings())
    store.add_documents([Document("", id="blank", metadata={"page": 1}), Document("text", id="text")])
    assert store.get_by_ids(["blank"])[0].metadata == {"page": 1}
    assert ids(store.similarity_search("text", k=4)) == ["text"]


def test_metadata_that_is_no_json_is_refused_and_says_where(memory):
    store = RecallVectorStore(memory)
    with pytest.raises(ValueError, match="record 1"):
        store.add_texts(["a", "b"], [{"n": 1}, {"n": object()}])
    assert memory.count() == 0


def test_what_a_search_returns_may_be_changed(memory):
    store = RecallVectorStore(memory)
    store.add_documents([Document("tea", id="1", metadata={"deep": {"list": [1]}})])
    store.similarity_search("tea")[0].metadata["deep"]["list"].append(2)
    assert store.get_by_ids(["1"])[0].metadata == {"deep": {"list": [1]}}


# Scores and diversity


def test_scores_are_relevances_that_tell_an_answer_from_what_is_none(memory):
    store = fill(RecallVectorStore(memory))
    scores = {doc.id: score for doc, score in store.similarity_search_with_score("where does the deployment run?", k=3)}
    assert scores["k8s"] > 0.7
    assert scores["tea"] < 0.3
    assert store.similarity_search_with_relevance_scores("where does the deployment run?", score_threshold=0.5)[0][0].id


async def test_diversity_is_chosen_among_the_nearest(memory):
    store = RecallVectorStore(memory, Directions())
    store.add_texts(["0", "1", "2", "40", "80"], ids=["0", "1", "2", "40", "80"])

    def choose(**arguments):
        return ids(store.max_marginal_relevance_search_by_vector([1.0, 0.0], k=2, **arguments))

    assert choose(lambda_mult=1.0) == ["0", "1"]
    assert choose(lambda_mult=0.0) == ["0", "80"]
    assert choose(lambda_mult=0.0, fetch_k=3) == ["0", "2"]
    assert ids(await store.amax_marginal_relevance_search_by_vector([1.0, 0.0], k=2, lambda_mult=0.0)) == ["0", "80"]


def test_nearest_documents_come_with_their_relevance(memory):
    store = RecallVectorStore(memory, Directions())
    store.add_texts(["0", "90"], ids=["0", "90"])
    (near, high), (far, low) = store.similarity_search_by_vector_with_score([1.0, 0.0])
    assert (near.id, far.id) == ("0", "90")
    assert 1 >= high > low >= 0


# Making one


async def test_a_store_is_made_of_texts_or_documents(tmp_path):
    store = RecallVectorStore.from_texts(["a"], CharEmbeddings(), ids=["1"], memory=tmp_path / "one.db")
    assert ids(store.similarity_search("a")) == ["1"]
    store = await RecallVectorStore.afrom_texts(["a"], CharEmbeddings(), ids=["1"])
    assert ids(await store.asimilarity_search("a")) == ["1"]
    store = RecallVectorStore.from_documents([Document("a", id="1")], CharEmbeddings(), memory=":memory:", scope="x")
    assert ids(store.similarity_search("a")) == ["1"]


def test_thousands_of_texts_are_added_in_batches(tmp_path):
    calls = []

    class Counting(CharEmbeddings):
        def embed_documents(self, texts):
            calls.append(len(texts))
            return super().embed_documents(texts)

    with RecallVectorStore(tmp_path / "memory.db", Counting(8)) as store:
        assert len(store.add_texts(f"text {number}" for number in range(600))) == 600
    assert calls == [256, 256, 88]


@pytest.mark.parametrize("where", [{"n": 1}, Condition("n", "eq", 1)], ids=["mapping", "filter"])
def test_the_where_of_the_core_holds_as_well_as_a_filter(memory, where):
    store = fill(RecallVectorStore(memory, CharEmbeddings()))
    query = TEXTS["k8s"]
    assert [document.id for document in store.similarity_search(query, where=where)] == ["k8s"]
    assert [document.id for document in store.max_marginal_relevance_search(query, where=where)] == ["k8s"]
    assert store.similarity_search(query, where=where, filter={"even": True}) == []


def test_a_store_holds_what_lies_below_its_scope_and_nothing_beside_it(memory):
    scopes = ("team", "team/anna", "team2")
    team, anna, beside = stores = [RecallVectorStore(memory, CharEmbeddings(), scope=scope) for scope in scopes]
    for store in stores:
        store.add_texts(["tea"], ids=["1"])
    assert [len(store.similarity_search("tea")) for store in stores] == [2, 1, 1]
    team.delete()
    assert [len(store.get_by_ids(["1"])) for store in (anna, beside)] == [0, 1]


@pytest.mark.parametrize("filter", [{}, {"$and": []}, {"$and": [{}, {"$and": []}]}, And([])])
async def test_a_filter_without_a_condition_deletes_nothing(tmp_path, filter):
    with RecallVectorStore(tmp_path / "memory.db", CharEmbeddings()) as store:
        store.add_texts(["one", "two"], ids=["1", "2"])
        for ids in (None, ["1"]):
            with pytest.raises(ValueError, match="no condition"):
                store.delete(ids, filter=filter)
            with pytest.raises(ValueError, match="no condition"):
                await store.adelete(ids, filter=filter)
        assert len(store.get_by_ids(["1", "2"])) == 2
