"""Store level: add, query, filters, modes, delete, get, async, persistence."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from conformance import ALL, FILTER_CASES, M, O, f, fs, make_nodes, q
from llama_index.core.schema import (
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import BasePydanticVectorStore


def ids(res):
    return list(res.ids or [])


@pytest.fixture
def full(store):
    store.add(make_nodes())
    return store


# ---- surface ---------------------------------------------------------------


def test_is_pydantic_vector_store(store):
    assert isinstance(store, BasePydanticVectorStore)
    assert isinstance(store.stores_text, bool)
    assert isinstance(store.is_embedding_query, bool)
    assert type(store).class_name() not in ("", "base_component")
    assert store.client is not None


def test_empty_store_query(store):
    res = store.query(q())
    assert ids(res) == []
    assert list(res.similarities or []) == []


def test_add_returns_ids_in_order_and_leaves_nodes_alone(store):
    nodes = make_nodes()
    before = [n.model_dump() for n in nodes]
    assert store.add(nodes) == [n.node_id for n in nodes]
    assert [n.model_dump() for n in nodes] == before


def test_add_nothing(store):
    assert store.add([]) == []


def test_unsupported_dimension_raises(full):
    with pytest.raises(ValueError, match="another space="):
        full.add([TextNode(id_="bad", text="x", embedding=[1.0, 2.0])])


# ---- default mode ----------------------------------------------------------


def test_default_order_and_shape(full):
    res = full.query(q(k=3))
    assert ids(res)[:2] == ["n1", "n2"]
    assert len(ids(res)) == 3
    s = res.similarities
    assert len(s) == 3
    assert all(isinstance(x, float) and math.isfinite(x) for x in s)
    assert s == sorted(s, reverse=True)
    assert s[0] == pytest.approx(1.0, abs=1e-4)


def test_result_nodes_present(full):
    res = full.query(q(k=2))
    assert [n.node_id for n in res.nodes] == ids(res)
    assert res.nodes[0].get_content().startswith("The red kettle")


def test_top_k_larger_than_corpus(full):
    assert set(ids(full.query(q(k=100)))) == ALL


def test_query_node_ids(full):
    assert set(ids(full.query(q(node_ids=["n3", "n5", "zzz"])))) == {"n3", "n5"}


def test_query_node_ids_empty_is_no_restriction_for_text_stores(full):
    got = ids(full.query(q(node_ids=[])))
    assert set(got) == (ALL if full.stores_text else set())


def test_query_doc_ids(full):
    assert set(ids(full.query(q(doc_ids=["docA"])))) == {"n1", "n2", "n3"}


def test_query_doc_ids_empty_matches_nothing(full):
    assert ids(full.query(q(doc_ids=[]))) == []


@pytest.mark.parametrize(("filters", "expected"), [c[1:] for c in FILTER_CASES], ids=[c[0] for c in FILTER_CASES])
def test_filter(full, filters, expected):
    assert set(ids(full.query(q(filters=filters)))) == expected


def test_filter_is_applied_before_top_k(full):
    # the best match by vector is n1; only the far n5 passes the filter
    assert ids(full.query(q(k=1, filters=fs(f("author", O.EQ, "dave"))))) == ["n5"]


def test_filter_selective_in_a_large_store(store):
    store.add(
        [
            TextNode(
                id_=f"m{i}",
                text=f"row {i}",
                embedding=[1.0, i / 1000, 0.0, 0.0],
                metadata={"keep": "y" if i == 399 else "n"},
            )
            for i in range(400)
        ]
    )
    assert ids(store.query(q(k=5, filters=fs(f("keep", O.EQ, "y"))))) == ["m399"]


# ---- other modes -----------------------------------------------------------


def test_mmr(full):
    res = full.query(q(k=2, mode=M.MMR), mmr_threshold=0.1)
    assert ids(res)[0] == "n1"
    assert ids(res)[1] != "n2"


def test_query_mmr_threshold_from_query(full):
    # 1.0 is pure relevance, so the near copy comes second; 0.1 avoids it
    assert ids(full.query(q(k=2, mode=M.MMR, mmr_threshold=1.0))) == ["n1", "n2"]
    assert ids(full.query(q(k=2, mode=M.MMR, mmr_threshold=0.1)))[1] != "n2"


def test_mmr_with_filter(full):
    got = ids(full.query(q(k=3, mode=M.MMR, filters=fs(f("lang", O.EQ, "zh"))), mmr_threshold=0.5))
    assert set(got) == {"n3", "n4"}


def test_text_search_without_embedding(full):
    res = full.query(q(vec=None, mode=M.TEXT_SEARCH, query_str="kettle"))
    assert set(ids(res)) == {"n1", "n5"}
    assert len(res.similarities) == 2
    assert res.similarities == sorted(res.similarities, reverse=True)


@pytest.mark.parametrize(
    ("query", "expected"),
    [("羽绒服", "n3"), ("北京冬天", "n3"), ("向量检索", "n4"), ("全文检索", "n4")],
    ids=["zh1", "zh2", "zh3", "zh4"],
)
def test_text_search_chinese(full, query, expected):
    assert ids(full.query(q(vec=None, mode=M.TEXT_SEARCH, query_str=query)))[:1] == [expected]


@pytest.mark.parametrize(
    "s",
    [
        '"kettle',
        "kettle AND (",
        "kettle*",
        "NEAR(kettle",
        "title:kettle",
        "-kettle",
        "kettle^2",
        "'; DROP TABLE x; --",
        "",
        "   ",
        "。，！",
    ],
    ids=[f"s{i}" for i in range(11)],
)
def test_text_search_survives_any_query_string(full, s):
    assert len(ids(full.query(q(vec=None, mode=M.TEXT_SEARCH, query_str=s)))) <= 6


def test_text_search_with_filter(full):
    got = full.query(q(vec=None, mode=M.TEXT_SEARCH, query_str="kettle", filters=fs(f("author", O.EQ, "dave"))))
    assert ids(got) == ["n5"]


def test_sparse_mode(full):
    assert set(ids(full.query(q(vec=None, mode=M.SPARSE, query_str="kettle")))) == {"n1", "n5"}


def test_hybrid_uses_both_legs(full):
    got = ids(full.query(q(vec=(0, 1.0, 0, 0), k=3, mode=M.HYBRID, query_str="bicycle fence")))
    assert {"n2", "n3"} <= set(got)


def test_hybrid_alpha_one_is_dense(full):
    a = ids(full.query(q(k=4, mode=M.HYBRID, query_str="bicycle", alpha=1.0)))
    assert a == ids(full.query(q(k=4)))


def test_hybrid_alpha_zero_is_lexical(full):
    a = ids(full.query(q(k=4, mode=M.HYBRID, query_str="bicycle", alpha=0.0)))
    assert a == ["n2"]  # and not "alpha or 0.5"


def test_hybrid_top_k_and_sparse_top_k(full):
    got = ids(full.query(q(k=5, mode=M.HYBRID, query_str="kettle", sparse_top_k=1, hybrid_top_k=2)))
    assert len(got) == 2


def test_hybrid_filter_holds_on_both_legs(full):
    got = ids(full.query(q(k=6, mode=M.HYBRID, query_str="kettle", filters=fs(f("lang", O.EQ, "zh")))))
    assert set(got) <= {"n3", "n4"}


def test_hybrid_scores_sorted_and_no_duplicates(full):
    res = full.query(q(k=6, mode=M.HYBRID, query_str="kettle"))
    assert len(set(ids(res))) == len(ids(res)) == len(res.similarities)
    assert res.similarities == sorted(res.similarities, reverse=True)


def test_hybrid_semantic_mode(full):
    assert "n2" in ids(full.query(q(k=3, mode=M.SEMANTIC_HYBRID, query_str="bicycle")))


def test_hybrid_aquery_equals_query(full):
    for alpha in (0.0, 0.3, 1.0, None):
        query = q(k=4, mode=M.HYBRID, query_str="kettle", alpha=alpha)
        assert ids(asyncio.run(full.aquery(query))) == ids(full.query(query))


# ---- round trip ------------------------------------------------------------


def test_round_trip(store):
    n = TextNode(
        id_="rt",
        text="multi\nline 文本 🙂",
        embedding=[1.0, 0, 0, 0],
        metadata={"a": 1, "b": [1, "x"], "c": {"d": None}, "t": True},
        excluded_embed_metadata_keys=["a"],
        excluded_llm_metadata_keys=["b"],
        start_char_idx=3,
        end_char_idx=9,
        metadata_template="{key}={value}",
        relationships={
            NodeRelationship.SOURCE: RelatedNodeInfo(node_id="D", metadata={"z": 1}),
            NodeRelationship.NEXT: RelatedNodeInfo(node_id="other"),
        },
    )
    store.add([n])
    got = store.query(q(k=1)).nodes[0]
    assert type(got) is TextNode
    a, b = n.model_dump(exclude={"embedding"}), got.model_dump(exclude={"embedding"})
    assert a == b
    assert got.hash == n.hash
    assert got.ref_doc_id == "D"


def test_round_trip_node_classes(store):
    store.add(
        [
            IndexNode(id_="ix", text="table summary", index_id="t1", embedding=[1.0, 0, 0, 0]),
            ImageNode(id_="im", text="caption", image_url="http://x/y.png", embedding=[0, 1.0, 0, 0]),
            Node(id_="mm", text_resource=MediaResource(text="plain node"), embedding=[0, 0, 1.0, 0]),
        ]
    )
    got = {n.node_id: n for n in store.query(q(k=3)).nodes}
    assert type(got["ix"]) is IndexNode
    assert got["ix"].index_id == "t1"
    assert type(got["im"]) is ImageNode
    assert got["im"].image_url == "http://x/y.png"
    assert type(got["mm"]) is Node
    assert got["mm"].get_content() == "plain node"


def test_upsert_same_id_is_one_row(full):
    full.add([TextNode(id_="n1", text="replaced", embedding=[0, 0, 0, 1.0])])
    got = ids(full.query(q(k=20)))
    assert got.count("n1") == 1
    assert len(got) == 6
    assert got[0] == "n2"


def test_upsert_replaces_text(full):
    full.add([TextNode(id_="n1", text="replaced wording", embedding=[1.0, 0, 0, 0], metadata={"author": "zed"})])
    top = full.query(q(k=1)).nodes[0]
    assert top.get_content() == "replaced wording"
    assert top.metadata == {"author": "zed"}


def test_text_search_has_no_stale_terms_after_upsert_and_delete(full):
    full.add([TextNode(id_="n1", text="replaced wording", embedding=[1.0, 0, 0, 0])])
    full.delete_nodes(["n5"])
    assert ids(full.query(q(vec=None, mode=M.TEXT_SEARCH, query_str="kettle"))) == []
    assert ids(full.query(q(vec=None, mode=M.TEXT_SEARCH, query_str="replaced"))) == ["n1"]


# ---- delete, get, clear ----------------------------------------------------


def test_delete_by_ref_doc_id(full):
    full.delete("docA")
    assert set(ids(full.query(q(k=20)))) == {"n4", "n5", "n6"}
    full.delete("docA")  # again: no error
    full.delete("never-there")
    assert len(ids(full.query(q(k=20)))) == 3


def test_delete_sourceless_sentinel(full):
    full.delete("None")
    assert "n6" in ids(full.query(q(k=20)))


def test_delete_nodes_by_id(full):
    full.delete_nodes(["n1", "n2", "zzz"])
    assert set(ids(full.query(q(k=20)))) == {"n3", "n4", "n5", "n6"}


def test_delete_nodes_by_filter(full):
    full.delete_nodes(filters=fs(f("lang", O.EQ, "zh")))
    assert set(ids(full.query(q(k=20)))) == {"n1", "n2", "n5", "n6"}


def test_delete_nodes_ids_and_filter_intersect(full):
    full.delete_nodes(["n1", "n3"], fs(f("lang", O.EQ, "zh")))
    assert set(ids(full.query(q(k=20)))) == ALL - {"n3"}


def test_delete_nodes_empty_list_deletes_nothing(full):
    full.delete_nodes([])
    assert set(ids(full.query(q(k=20)))) == ALL


def test_delete_nodes_without_arguments_keeps_data(full):
    with contextlib.suppress(ValueError):
        full.delete_nodes()
    assert set(ids(full.query(q(k=20)))) == ALL


def test_get_nodes_by_id(full):
    assert {n.node_id for n in full.get_nodes(["n2", "n4", "zzz"])} == {"n2", "n4"}


def test_get_nodes_by_filter(full):
    assert {n.node_id for n in full.get_nodes(filters=fs(f("lang", O.EQ, "zh")))} == {"n3", "n4"}


def test_get_nodes_both_and_none(full):
    assert {n.node_id for n in full.get_nodes(["n1", "n3"], fs(f("lang", O.EQ, "zh")))} == {"n3"}
    assert {n.node_id for n in full.get_nodes()} == ALL
    assert full.get_nodes([]) == []


def test_clear_then_reuse(full):
    full.clear()
    assert ids(full.query(q())) == []
    full.add(make_nodes()[:2])
    assert len(ids(full.query(q()))) == 2


# ---- async and threads -------------------------------------------------------


def test_async_round(store):
    async def go():
        assert await store.async_add(make_nodes()) == [n.node_id for n in make_nodes()]
        assert ids(await store.aquery(q(k=1))) == ["n1"]
        await store.adelete("docB")
        await store.adelete_nodes(["n1"])
        await store.adelete_nodes(filters=fs(f("author", O.EQ, "bob")))
        left = set(ids(await store.aquery(q(k=20))))
        await store.aclear()
        return left, ids(await store.aquery(q(k=20)))

    assert asyncio.run(go()) == ({"n3", "n6"}, [])


def test_aget_nodes(full):
    got = asyncio.run(full.aget_nodes(["n1"]))
    assert [n.node_id for n in got] == ["n1"]


def test_async_does_not_block_loop(full, monkeypatch):
    """Let the sync query wait for the loop, which must go on meanwhile. A native async path never calls it."""
    real, ticked = type(full).query, threading.Event()

    def slow(self, *a, **k):
        assert ticked.wait(120)
        return real(self, *a, **k)

    monkeypatch.setattr(type(full), "query", slow)

    async def go():
        task = asyncio.ensure_future(full.aquery(q()))
        await asyncio.sleep(0)  # the task begins
        ticked.set()
        return await task

    assert asyncio.run(go()).ids


def test_async_concurrent_mix(store):
    async def go():
        await asyncio.gather(*[store.async_add([n]) for n in make_nodes()])
        res = await asyncio.gather(*[store.aquery(q(k=6)) for _ in range(20)])
        return [set(ids(r)) for r in res]

    assert asyncio.run(go()) == [ALL] * 20


def test_two_event_loops(full):
    for _ in range(2):
        assert ids(asyncio.run(full.aquery(q(k=1)))) == ["n1"]


def test_threads(full):
    def work(i):
        full.add([TextNode(id_=f"t{i}", text=f"thread {i}", embedding=[0, 0, 0.2, 0.1])])
        return ids(full.query(q(k=1)))

    with ThreadPoolExecutor(4) as ex:
        assert list(ex.map(work, range(24))) == [["n1"]] * 24
    assert len(ids(full.query(q(k=100)))) == 30


# ---- persistence -------------------------------------------------------------


def test_reopen(spec, full, tmp_path):
    full.delete("docB")
    again = spec.reopen(tmp_path)
    assert set(ids(again.query(q(k=20)))) == {"n1", "n2", "n3", "n6"}
    assert ids(again.query(q(k=9, filters=fs(f("author", O.EQ, "bob"))))) == ["n2"]
    again.delete("docA")
    assert ids(again.query(q(k=20))) == ["n6"]


def test_reopen_keeps_text(spec, full, tmp_path):
    again = spec.reopen(tmp_path)
    assert again.query(q(k=1)).nodes[0].get_content().startswith("The red kettle")


def test_persist_call_is_harmless(full, tmp_path):
    # StorageContext.persist() calls it on every vector store
    full.persist(str(tmp_path / "sub" / "x__vector_store.json"))
