"""What RecallVectorStore does beyond the contract that the conformance checks hold it to."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest
from conformance import ALL, M, make_nodes, q
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import MediaResource, Node, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilters

from recall_core import Memory, Settings
from recall_core.errors import InvalidInputError
from recall_llamaindex import RecallRetriever, RecallVectorStore

SECOND_PROCESS = """
import json, sys
from llama_index.core.vector_stores.types import VectorStoreQuery
from recall_llamaindex import RecallVectorStore
store = RecallVectorStore(sys.argv[1])
found = store.query(VectorStoreQuery(query_embedding=[1.0, 0, 0, 0], similarity_top_k=9))
texts = store.query(VectorStoreQuery(query_str="kettle", similarity_top_k=9, mode="text_search"))
nodes = {node.node_id: node.to_dict() for node in found.nodes}
store.delete("docA")
store.close()
print(json.dumps({"nodes": nodes, "similarities": found.similarities, "texts": texts.ids}))
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def full(path, opened):
    store = RecallVectorStore(path)
    opened.append(store)
    store.add(make_nodes())
    return store


def find(store, **query):
    return list(store.query(q(**{"k": 20, **query})).ids)


# One file, several processes and stores


def test_a_second_process_finds_and_deletes_what_the_first_has_stored(full, path):
    here = full.query(q(k=9))
    done = subprocess.run(
        [sys.executable, "-c", SECOND_PROCESS, str(path)], capture_output=True, text=True, encoding="utf-8", check=True
    )
    there = json.loads(done.stdout)
    assert there["nodes"] == json.loads(json.dumps({node.node_id: node.to_dict() for node in here.nodes}))
    assert there["similarities"] == here.similarities
    assert set(there["texts"]) == {"n1", "n5"}
    assert set(find(full)) == {"n4", "n5", "n6"}  # it deleted docA


def test_stores_of_different_scopes_may_have_the_same_nodes(path, opened):
    stores = [RecallVectorStore(path, scope=scope) for scope in ("user/1", "user/2")]
    opened.extend(stores)
    for number, store in enumerate(stores):
        store.add([TextNode(id_="n", text=f"said by user {number}", embedding=[1.0, 0.0])])
    stores[0].delete_nodes(["n"])
    assert stores[0].get_nodes() == []
    assert [node.text for node in stores[1].get_nodes(["n"])] == ["said by user 1"]


def test_a_store_sees_the_scopes_below_its_own(path, opened):
    below, above = RecallVectorStore(path, scope="user/1"), RecallVectorStore(path, scope="user")
    opened.extend([below, above])
    below.add(make_nodes())
    assert set(find(above)) == ALL
    above.delete("docA")
    assert set(find(below)) == {"n4", "n5", "n6"}


def test_two_models_keep_their_vectors_in_two_spaces(path, opened):
    small, large = RecallVectorStore(path, scope="a", space="small"), RecallVectorStore(path, scope="b", space="large")
    opened.extend([small, large])
    small.add([TextNode(id_="n", text="x", embedding=[1.0, 0.0])])
    large.add([TextNode(id_="n", text="x", embedding=[1.0, 0.0, 0.0])])
    assert find(small, vec=[1.0, 0.0]) == find(large, vec=[1.0, 0.0, 0.0]) == ["n"]
    with pytest.raises(ValueError, match=r"'small'.*another space="):
        small.query(q(vec=[1.0, 0.0, 0.0]))


def test_without_vectors_in_the_space_nothing_is_near_but_words_are_found(full, path, opened, caplog):
    store = RecallVectorStore(path, space="another model")
    opened.append(store)
    assert find(store) == []
    assert find(store, mode=M.MMR, query_str="kettle") == []
    assert set(find(store, mode=M.HYBRID, query_str="kettle")) == {"n1", "n5"}
    assert "no memory has a vector in the space" in caplog.text


def test_other_memories_of_the_scope_are_no_nodes_and_stay(full, path):
    with Memory.open(path, embedder=None) as memory:
        note = memory.add("a kettle of somebody else", scope="llamaindex", source="docA", metadata={"lang": "en"})
        assert set(find(full, mode=M.TEXT_SEARCH, query_str="kettle", vec=None)) == {"n1", "n5"}
        assert {node.node_id for node in full.get_nodes()} == ALL
        full.delete("docA")
        full.clear()
        assert memory.get(note.id) == [note]


def test_closing_a_store_leaves_a_memory_open_that_was_given(path):
    with Memory.open(path, embedder=None) as memory:
        store = RecallVectorStore(memory.scoped("user/1"))
        store.add(make_nodes())
        store.close()
        assert store.client.scope == "user/1/llamaindex"
        assert memory.count("user/1/llamaindex") == len(ALL)


def test_the_settings_of_a_memory_that_was_given_hold(path):
    with Memory.open(path, embedder=None, settings=Settings(redact=True)) as memory:
        RecallVectorStore(memory).add([TextNode(id_="n", text="password=hunter2horse", embedding=[1.0])])
        (node,) = RecallVectorStore(memory).get_nodes(["n"])
        assert "hunter2horse" not in node.text


@pytest.mark.parametrize("copy", [lambda s: pickle.loads(pickle.dumps(s)), lambda s: type(s).from_dict(s.to_dict())])
def test_a_copied_store_opens_the_same_file(full, opened, copy):
    again = copy(full)
    opened.append(again)
    assert set(find(again)) == ALL


def test_a_store_can_be_made_from_params(path, opened):
    store = RecallVectorStore.from_params(path, scope="user/1", space="model")
    opened.append(store)
    assert (store.path, store.scope, store.space, store.class_name()) == (
        str(path), "user/1", "model", "RecallVectorStore",
    )  # fmt: skip


# Nodes


def test_nodes_come_in_the_order_they_were_added(full):
    full.add([TextNode(id_="a", text="last", embedding=[1.0, 0, 0, 0])])
    assert [node.node_id for node in full.get_nodes()] == ["n1", "n2", "n3", "n4", "n5", "n6", "a"]


@pytest.mark.parametrize("id_", ["x" * 2000, "line\nbreak", " ", "/a/b:c?d=é", "derived:0"])
def test_ids_of_nodes_and_documents_may_be_anything(full, id_):
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=id_)}
    full.add([TextNode(id_=id_, text="odd", embedding=[0, 0, 0, 1.0], relationships=source)])
    assert [node.node_id for node in full.get_nodes([id_])] == [id_]
    assert find(full, doc_ids=[id_]) == [id_]
    full.delete(id_)
    assert full.get_nodes([id_]) == []


def test_a_node_without_text_is_found_by_its_vector(full):
    full.add([TextNode(id_="t", text="", embedding=[0, 0, 1.0, 1.0])])
    full.add([Node(id_="p", image_resource=MediaResource(url="http://x/y.png"), embedding=[0, 0, 1.0, 1.1])])
    assert find(full, vec=[0, 0, 1.0, 1.1], k=2) == ["p", "t"]
    (node,) = full.get_nodes(["p"])
    assert (node.text_resource, str(node.image_resource.url)) == (None, "http://x/y.png")


def test_what_changes_a_record_changes_its_node(full):
    record = next(record for record in full.client.records() if record.text.startswith("The red kettle"))
    full.client.update(record.id, text="The red pot", metadata={"author": "zoe"})
    (node,) = full.get_nodes(["n1"])
    assert (node.text, node.metadata) == ("The red pot", {"author": "zoe"})


def test_a_node_without_an_embedding_is_refused_and_nothing_is_stored(full):
    with pytest.raises(ValueError, match=r"'bare' has no embedding.*embed_model"):
        full.add([TextNode(id_="a", text="x", embedding=[1.0, 0, 0, 0]), TextNode(id_="bare", text="x")])
    assert full.get_nodes(["a"]) == []


@pytest.mark.parametrize("vector", [[0.0] * 4, [float("nan"), 0, 0, 1.0]])
def test_a_vector_without_direction_is_refused(full, vector):
    with pytest.raises(ValueError, match="the space 'llamaindex'"):
        full.add([TextNode(id_="a", text="x", embedding=vector)])


def test_a_long_node_is_found_by_its_end_and_by_its_vector_at_once(full):
    text = "Nothing of interest happens here. " * 400 + "At the end a lighthouse is mentioned."
    full.add([TextNode(id_="long", text=text, embedding=[0.6, 0.8, 0, 0])])
    full.add([TextNode(id_="words", text="A lighthouse at the end", embedding=[0, 0, 1.0, 0])])
    assert set(find(full, mode=M.TEXT_SEARCH, query_str="lighthouse", vec=None)) == {"long", "words"}
    assert find(full, mode=M.HYBRID, query_str="lighthouse", vec=[0.6, 0.8, 0, 0], alpha=0.5, k=1) == ["long"]
    assert find(full).count("long") == 1


# Modes


@pytest.mark.parametrize("mode", [M.SVM, M.LINEAR_REGRESSION, M.LOGISTIC_REGRESSION])
def test_a_mode_that_is_not_supported_is_refused_by_name(full, mode):
    with pytest.raises(ValueError, match=rf"{mode.value!r} is not supported; use one of default, text_search"):
        full.query(q(mode=mode, query_str="kettle"))


@pytest.mark.parametrize("mode", [M.DEFAULT, M.MMR, M.HYBRID, M.SEMANTIC_HYBRID])
def test_a_mode_that_needs_a_vector_says_so(full, mode):
    with pytest.raises(ValueError, match=f"mode {mode.value} needs query_embedding"):
        full.query(q(vec=None, mode=mode, query_str="kettle"))


@pytest.mark.parametrize("mode", [M.TEXT_SEARCH, M.SPARSE, M.HYBRID, M.SEMANTIC_HYBRID])
def test_a_mode_that_needs_a_text_says_so(full, mode):
    with pytest.raises(ValueError, match=f"mode {mode.value} needs query_str"):
        full.query(q(mode=mode))


@pytest.mark.parametrize("alpha", [-0.1, 1.5])
def test_an_alpha_out_of_range_is_refused(full, alpha):
    with pytest.raises(InvalidInputError, match="alpha"):
        full.query(q(mode=M.HYBRID, query_str="kettle", alpha=alpha))


def test_an_mmr_threshold_out_of_range_is_refused(full):
    with pytest.raises(ValueError, match="mmr_threshold"):
        full.query(q(mode=M.MMR), mmr_threshold=2)


def test_alpha_moves_hybrid_search_from_the_words_to_the_vector(full):
    first = [
        find(full, mode=M.HYBRID, query_str="bicycle", vec=[0, 1.0, 0, 0], alpha=alpha)[0] for alpha in (0.05, 0.95)
    ]
    assert first == ["n2", "n3"]


def test_hybrid_at_the_ends_of_alpha_is_what_each_leg_says(full):
    words, vector = {"query_str": "kettle month"}, {"vec": [0.2, 0.9, 0.1, 0.3]}
    text = full.query(q(mode=M.TEXT_SEARCH, **words))
    dense = full.query(q(**vector))
    for alpha, leg in ((0, text), (0.0, text), (1, dense), (1.0, dense)):
        found = full.query(q(mode=M.HYBRID, alpha=alpha, **words, **vector))
        assert (found.ids, found.similarities) == (leg.ids, leg.similarities)


@pytest.mark.parametrize(("mode", "vec"), [(M.TEXT_SEARCH, None), (M.SPARSE, None), (M.HYBRID, (1.0, 0, 0, 0))])
def test_scores_are_relevances_where_words_count(full, mode, vec):
    similarities = full.query(q(mode=mode, vec=vec, query_str="The red kettle whistles at dawn")).similarities
    assert similarities[0] > 0.8
    assert all(0 <= one <= 1 for one in similarities)


def test_scores_are_cosines_where_vectors_count_alone(full):
    for mode in (M.DEFAULT, M.MMR):
        found = full.query(q(mode=mode))
        similarity = dict(zip(found.ids, found.similarities, strict=True))
        assert similarity["n1"] == pytest.approx(1.0)
        assert similarity["n6"] == pytest.approx(0.5)


def test_sparse_top_k_limits_what_the_words_bring_and_similarity_top_k_what_the_vectors_do(full):
    query = {"mode": M.HYBRID, "query_str": "kettle", "vec": [0, 0, 1.0, 0], "k": 1, "hybrid_top_k": 9}
    assert set(find(full, **query, sparse_top_k=5)) == {"n4", "n1", "n5"}
    assert len(find(full, **query, sparse_top_k=1)) == 2
    assert find(full, **query, sparse_top_k=0) == ["n4"]


def test_hybrid_search_by_punctuation_is_one_by_the_vector(full):
    assert find(full, mode=M.HYBRID, query_str="？！", k=1) == ["n1"]


def test_nodes_come_back_without_their_embedding(full):
    for node in full.query(q()).nodes:
        assert node.embedding is None


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("condition", list(FilterCondition))
def test_filters_without_a_condition_delete_nothing(full, depth, condition):
    filters = MetadataFilters(filters=[], condition=condition)
    for _ in range(depth):
        filters = MetadataFilters(filters=[filters, MetadataFilters(filters=[])], condition=condition)
    before = len(full.get_nodes())
    with pytest.raises(ValueError, match="clear"):
        full.delete_nodes(filters=filters)
    assert len(full.get_nodes()) == before


def test_equal_ids_of_nodes_in_two_scopes_are_two_nodes_to_llamaindex(path, opened):
    model = MockEmbedding(embed_dim=4)
    team, anna, ben = (RecallVectorStore(path, scope=scope) for scope in ("team", "team/anna", "team/ben"))
    opened.extend([team, anna, ben])
    for store, text in ((team, "kettle of the team"), (anna, "kettle of Anna"), (ben, "kettle of Ben")):
        store.add([TextNode(id_="x", text=text, embedding=[0.5] * 4)])
    retriever = VectorStoreIndex.from_vector_store(team, embed_model=model).as_retriever(similarity_top_k=9)
    found = {hit.node.get_content(): hit.node.node_id for hit in retriever.retrieve("kettle")}
    assert set(found) == {"kettle of the team", "kettle of Anna", "kettle of Ben"}
    assert found["kettle of the team"] == "x"
    assert {node.get_content(): node.node_id for node in team.get_nodes()} == found
    with Memory.open(path) as memory:
        assert len(RecallRetriever(memory, scope="team").retrieve("kettle")) == 3
    assert [node.get_content() for node in team.get_nodes([found["kettle of Anna"]])] == ["kettle of Anna"]
    assert find(team, node_ids=[found["kettle of Ben"]]) == ["x"]  # it is the only one of this name there
    team.delete_nodes([found["kettle of Ben"], "x"])
    assert [(node.node_id, node.get_content()) for node in team.get_nodes()] == [("x", "kettle of Anna")]
    assert anna.get_nodes(["x"]) != []
