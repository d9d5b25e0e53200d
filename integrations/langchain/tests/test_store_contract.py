"""langgraph BaseStore contract. No such suite is published (langgraph keeps its store tests
inside its repository), so this one states the interface's documented semantics; every test
runs twice, through the sync and through the async methods.
"""

import asyncio
from datetime import datetime

import pytest
import pytest_asyncio
import target
from fakes import CharEmbeddings
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)


class Facade:
    """Same call for a sync and an async store."""

    def __init__(self, raw, is_async):
        self.raw, self.is_async = raw, is_async

    def __getattr__(self, name):
        raw, is_async = self.raw, self.is_async

        async def call(*a, **k):
            if is_async:
                return await getattr(raw, "a" + name)(*a, **k)
            return getattr(raw, name)(*a, **k)

        return call


def _maker(index=None, ttl=None):
    @pytest_asyncio.fixture(params=["sync", "async"])
    async def fx(request, tmp_path):
        idx = index and {"dims": 64, "embed": CharEmbeddings(64), **index}
        if request.param == "sync":
            with target.store(tmp_path, idx, ttl) as s:
                yield Facade(s, False)
        else:
            async with target.astore(tmp_path, idx, ttl) as s:
                yield Facade(s, True)

    return fx


store = _maker()
vstore = _maker(index={"fields": ["text"]})
tstore = _maker(ttl={"default_ttl": None, "refresh_on_read": False})


# ---- get / put / delete -----------------------------------------------------------------
async def test_put_get(store):
    await store.put(("u", "1"), "k", {"a": 1, "中文": "值", "n": None, "l": [1, {"b": 2}]})
    it = await store.get(("u", "1"), "k")
    assert isinstance(it, Item)
    assert it.value == {"a": 1, "中文": "值", "n": None, "l": [1, {"b": 2}]}
    assert (it.namespace, it.key) == (("u", "1"), "k")
    assert isinstance(it.created_at, datetime)
    assert isinstance(it.updated_at, datetime)
    assert it.updated_at >= it.created_at


async def test_timestamps_are_timezone_aware(store):
    await store.put(("u",), "k", {"a": 1})
    assert (await store.get(("u",), "k")).created_at.tzinfo is not None


async def test_get_missing_is_none(store):
    assert await store.get(("no",), "k") is None


async def test_put_replaces_whole_value(store):
    await store.put(("u",), "k", {"a": 1, "b": 2})
    await store.put(("u",), "k", {"a": 3})
    assert (await store.get(("u",), "k")).value == {"a": 3}


async def test_put_keeps_created_at(store):
    await store.put(("u",), "k", {"a": 1})
    first = (await store.get(("u",), "k")).created_at
    await asyncio.sleep(1.1)
    await store.put(("u",), "k", {"a": 2})
    it = await store.get(("u",), "k")
    assert it.created_at == first
    assert it.updated_at > first


async def test_delete(store):
    await store.put(("u",), "k", {"a": 1})
    await store.delete(("u",), "k")
    assert await store.get(("u",), "k") is None
    await store.delete(("u",), "k")  # missing: no error


async def test_put_none_value_deletes(store):
    await store.put(("u",), "k", {"a": 1})
    await store.batch([PutOp(("u",), "k", None)])
    assert await store.get(("u",), "k") is None


async def test_same_key_in_other_namespace(store):
    await store.put(("a",), "k", {"v": 1})
    await store.put(("a", "b"), "k", {"v": 2})
    assert (await store.get(("a",), "k")).value == {"v": 1}
    assert (await store.get(("a", "b"), "k")).value == {"v": 2}


async def test_returned_value_is_not_live(store):
    await store.put(("u",), "k", {"a": 1})
    (await store.get(("u",), "k")).value["a"] = 99
    assert (await store.get(("u",), "k")).value == {"a": 1}


async def test_unserialisable_value_is_rejected(store):
    with pytest.raises((TypeError, ValueError)):
        await store.put(("u",), "k", {"o": object()})
    assert await store.get(("u",), "k") is None


@pytest.mark.parametrize("ns", [(), ("",), ("a.b",), ("langgraph", "x"), ("a", 1), ("a\x00b",)])
async def test_invalid_namespace_on_put(store, ns):
    with pytest.raises(InvalidNamespaceError):
        await store.put(ns, "k", {"a": 1})


async def test_invalid_namespace_in_batch(store):
    with pytest.raises(InvalidNamespaceError):
        await store.batch([GetOp(("a.b",), "k")])


# ---- batch ------------------------------------------------------------------------------
async def test_batch_result_order(store):
    await store.put(("t",), "k1", {"d": 1})
    r = await store.batch(
        [
            GetOp(("t",), "k1"),
            PutOp(("t",), "k2", {"d": 2}),
            SearchOp(("t",), limit=10),
            ListNamespacesOp(max_depth=10),
            GetOp(("t",), "nope"),
        ]
    )
    assert r[0].value == {"d": 1}
    assert r[1] is None
    assert isinstance(r[2], list)
    assert r[3] == [("t",)]
    assert r[4] is None
    assert len(r) == 5


async def test_batch_reads_see_the_state_before_its_writes(store):
    await store.put(("t",), "k", {"d": 1})
    r = await store.batch([PutOp(("t",), "k", {"d": 2}), GetOp(("t",), "k")])
    assert r[1].value == {"d": 1}
    assert (await store.get(("t",), "k")).value == {"d": 2}


async def test_batch_last_put_wins(store):
    await store.batch([PutOp(("t",), "k", {"d": i}) for i in range(5)])
    assert (await store.get(("t",), "k")).value == {"d": 4}


async def test_batch_empty(store):
    assert await store.batch([]) == []


# ---- search without a query -------------------------------------------------------------
async def _fill(store):
    for i in range(6):
        await store.put(
            ("docs", "x" if i % 2 else "y"),
            f"k{i}",
            {"n": i, "s": f"v{i}", "flag": i % 2 == 0, "f": i + 0.5, "none": None},
        )
    await store.put(("docs2",), "other", {"n": 99})


async def test_search_prefix_and_segment_boundary(store):
    await _fill(store)
    assert {i.key for i in await store.search(("docs",))} == {f"k{i}" for i in range(6)}
    assert {i.key for i in await store.search(("docs", "x"))} == {"k1", "k3", "k5"}
    assert len(await store.search((), limit=100)) == 7
    assert all(isinstance(i, SearchItem) and i.score is None for i in await store.search(("docs",)))


async def test_search_limit_offset(store):
    await _fill(store)
    assert len(await store.search(("docs",), limit=2)) == 2
    seen = [i.key for o in range(0, 6, 2) for i in await store.search(("docs",), limit=2, offset=o)]
    assert sorted(seen) == [f"k{i}" for i in range(6)]
    assert await store.search(("docs",), offset=100) == []


@pytest.mark.parametrize(
    ("flt", "want"),
    [
        ({"n": 3}, {3}),
        ({"s": "v2"}, {2}),
        ({"flag": True}, {0, 2, 4}),
        ({"f": 1.5}, {1}),
        ({"n": {"$gt": 3}}, {4, 5}),
        ({"n": {"$gte": 3, "$lt": 5}}, {3, 4}),
        ({"n": {"$lte": 0}}, {0}),
        ({"n": {"$ne": 3}}, {0, 1, 2, 4, 5}),
        ({"n": {"$eq": 3}}, {3}),
        ({"n": 3, "flag": False}, {3}),
        ({"n": 3, "flag": True}, set()),
        ({"missing": 1}, set()),
    ],
)
async def test_search_filter(store, flt, want):
    await _fill(store)
    assert {i.value["n"] for i in await store.search(("docs",), filter=flt)} == want


async def test_filter_key_injection_is_harmless(store):
    await _fill(store)
    try:
        r = await store.search(("docs",), filter={"n') = 1 OR 1=1 --": 1})
    except Exception:
        r = []
    assert r == []


@pytest.mark.parametrize("label", ["%", "_", "*", "[a]", "a b", "中文", "a'b", 'a"b', "a\\b", "A"])
async def test_metacharacter_labels_are_literal(store, label):
    await store.put(("p", label), "k", {"v": 1})
    await store.put(("p", "zzz"), "k", {"v": 2})
    assert [i.value for i in await store.search(("p", label))] == [{"v": 1}]
    assert (await store.get(("p", label), "k")).namespace == ("p", label)


async def test_namespace_is_case_sensitive(store):
    await store.put(("A",), "k", {"v": 1})
    assert await store.search(("a",)) == []


async def test_query_without_index_is_ignored(store):
    await _fill(store)
    assert len(await store.search(("docs",), query="anything")) == 6


# ---- list_namespaces --------------------------------------------------------------------
async def _tree(store):
    for ns in [
        ("a", "b", "c"),
        ("a", "b", "d", "e"),
        ("a", "b", "d", "i"),
        ("a", "b", "f"),
        ("a", "c", "f"),
        ("ab", "x"),
    ]:
        await store.put(ns, "k", {"v": 1})


async def test_list_namespaces(store):
    await _tree(store)
    assert len(await store.list_namespaces()) == 6
    assert sorted(await store.list_namespaces(prefix=("a", "b"), max_depth=3)) == [
        ("a", "b", "c"),
        ("a", "b", "d"),
        ("a", "b", "f"),
    ]
    assert sorted(await store.list_namespaces(suffix=("f",))) == [("a", "b", "f"), ("a", "c", "f")]
    assert sorted(await store.list_namespaces(prefix=("a", "*", "f"))) == [("a", "b", "f"), ("a", "c", "f")]
    assert len(await store.list_namespaces(prefix=("a",))) == 5  # not ("ab", ...)
    p1, p2 = await store.list_namespaces(limit=4), await store.list_namespaces(limit=4, offset=4)
    assert len(p1) == 4
    assert len(p2) == 2
    assert not set(p1) & set(p2)
    r = await store.batch([ListNamespacesOp((MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("f",))))])
    assert sorted(r[0]) == [("a", "b", "f"), ("a", "c", "f")]


# ---- semantic search --------------------------------------------------------------------
async def _vfill(s):
    await s.put(("m",), "tea", {"text": "用户喜欢喝乌龙茶", "kind": "pref"})
    await s.put(("m",), "k8s", {"text": "the deployment runs on kubernetes", "kind": "fact"})
    await s.put(("m",), "err", {"text": "error code E-4042 in parser.py", "kind": "fact"})
    await s.put(("m2",), "tea2", {"text": "乌龙茶", "kind": "pref"})


async def test_vector_ranking_and_scores(vstore):
    await _vfill(vstore)
    r = await vstore.search(("m",), query="乌龙茶")
    assert r[0].key == "tea"
    assert all(i.score is not None for i in r)
    assert [i.score for i in r] == sorted((i.score for i in r), reverse=True)
    assert {i.namespace for i in r} == {("m",)}


async def test_vector_filter_and_paging(vstore):
    await _vfill(vstore)
    r = await vstore.search(("m",), query="乌龙茶", filter={"kind": "fact"})
    assert {i.key for i in r} == {"k8s", "err"}
    pages = [(await vstore.search(("m",), query="乌龙茶", limit=1, offset=o))[0].key for o in range(3)]
    assert sorted(pages) == ["err", "k8s", "tea"]
    assert pages[0] == "tea"


async def test_vector_update_replaces_and_delete_removes(vstore):
    await _vfill(vstore)
    await vstore.put(("m",), "tea", {"text": "zzz qqq xxx"})
    assert (await vstore.search(("m",), query="zzz qqq xxx"))[0].key == "tea"
    await vstore.delete(("m",), "tea")
    assert "tea" not in {i.key for i in await vstore.search(("m",), query="zzz qqq xxx")}


async def test_index_false_and_index_paths(vstore):
    await vstore.put(("m",), "hidden", {"text": "乌龙茶"}, index=False)
    await vstore.put(("m",), "shown", {"text": "none", "deep": {"t": ["铁观音", "龙井"]}}, index=["deep.t[*]"])
    assert (await vstore.get(("m",), "hidden")).value == {"text": "乌龙茶"}
    r = await vstore.search(("m",), query="铁观音")
    assert r[0].key == "shown"
    assert [i.key for i in r].count("shown") == 1
    assert not [i for i in r if i.key == "hidden" and i.score is not None]


async def test_many_vectors_per_item_do_not_starve_limit(vstore):
    """langgraph#8977: LIMIT applied before de-duplication returns too few items."""
    for k in range(5):
        await vstore.put(("m",), f"k{k}", {"parts": [f"乌龙茶 {k} {j}" for j in range(12)]}, index=["parts[*]"])
    assert len(await vstore.search(("m",), query="乌龙茶", limit=5)) == 5


async def test_empty_query_and_special_characters(vstore):
    await _vfill(vstore)
    for q in ['"', "a AND", "NEAR(", "*", "乌龙茶\"'", "-", "col:x", "x" * 2000, "😀"]:
        assert isinstance(await vstore.search(("m",), query=q), list)


# ---- ttl --------------------------------------------------------------------------------
async def test_ttl_is_accepted(tstore):
    assert tstore.raw.supports_ttl
    await tstore.put(("t",), "k", {"v": 1}, ttl=60)
    assert (await tstore.get(("t",), "k")).value == {"v": 1}


# ---- concurrency / atomicity ------------------------------------------------------------
async def test_parallel_puts(store):
    await asyncio.gather(*(store.put(("c",), f"k{i}", {"i": i}) for i in range(50)))
    assert len(await store.search(("c",), limit=100)) == 50


async def test_failed_batch_changes_nothing(store):
    """All or nothing (langgraph#8590: SqliteStore commits in `finally`)."""
    await store.put(("t",), "k", {"v": 1})
    with pytest.raises((TypeError, ValueError)):
        await store.batch([PutOp(("t",), "k", {"v": 2}), PutOp(("t",), "bad", {"v": object()})])
    assert (await store.get(("t",), "k")).value == {"v": 1}
    await store.put(("t",), "after", {"v": 3})  # still usable
    assert (await store.get(("t",), "after")).value == {"v": 3}


def test_persistence(tmp_path):
    with target.store(tmp_path, None, None) as s:
        s.put(("a",), "k", {"v": 1})
    with target.store(tmp_path, None, None) as s:
        assert s.get(("a",), "k").value == {"v": 1}
