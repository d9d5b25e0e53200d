"""The store beyond the contract: found by meaning without any setting up, filters, expiry, spaces, agents, graphs."""

from __future__ import annotations

import asyncio
import datetime
import logging

import pytest
from agents import ask, calling, scripted
from fakes import CharEmbeddings
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp, SearchOp

from recall_core import Memory
from recall_langchain import RecallStore


class Clock:
    def __init__(self) -> None:
        self.seconds = datetime.datetime.now(datetime.UTC).timestamp()

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def memory(tmp_path, clock):
    with Memory.open(tmp_path / "memory.db", clock=clock) as memory:
        yield memory


@pytest.fixture
def store(memory):
    return RecallStore(memory)


def keys(items) -> list[str]:
    return [item.key for item in items]


# Found by meaning and by keyword


def test_items_are_found_by_meaning_without_any_setting_up(store):
    store.put(("alice",), "diet", {"text": "She does not eat meat or fish."})
    store.put(("alice",), "deploy", {"text": "The service is deployed with Docker Compose."})
    found = store.search(("alice",), query="is she a vegetarian?")
    assert keys(found) == ["diet", "deploy"]
    assert found[0].score > found[1].score
    assert store.degraded is None


def test_what_the_query_does_not_find_follows_without_a_score(store):
    store.put(("a",), "seen", {"text": "tea"})
    store.put(("a",), "hidden", {"text": "tea"}, index=False)
    found = store.search(("a",), query="tea")
    assert [(item.key, item.score is None) for item in found] == [("seen", False), ("hidden", True)]
    pages = [keys(store.search(("a",), query="tea", limit=1, offset=offset)) for offset in range(3)]
    assert pages == [["seen"], ["hidden"], []]


def test_hidden_items_are_not_found_by_any_other_search_of_the_memory(memory, store):
    store.put(("a",), "hidden", {"text": "zanzibar", "tags": ["zanzibar"]}, index=False)
    assert len(memory.search("zanzibar")) == 0


def test_the_whole_value_is_searched_by_default_and_named_paths_otherwise(tmp_path):
    value = {"title": "Zanzibar", "body": {"parts": ["clove", "pepper"]}, "number": 7}
    with RecallStore(tmp_path / "whole.db") as store:
        store.put(("a",), "k", value)
        assert all(store.search(("a",), query=word)[0].score > 0.5 for word in ("Zanzibar", "clove", "pepper"))
    with Memory.open(tmp_path / "parts.db", embedder=None) as memory:
        store = RecallStore(memory, index={"dims": 64, "embed": CharEmbeddings(64), "fields": ["body.parts[*]"]})
        store.put(("a",), "k", value)
        assert len(memory.search("clove")) == 1
        assert len(memory.search("Zanzibar")) == 0


def test_paths_can_be_named_for_the_memorys_own_model(memory):
    store = RecallStore(memory, index={"fields": ["text"]})
    store.put(("a",), "k", {"text": "clove", "note": "Zanzibar"})
    assert store.search(("a",), query="clove")[0].score is not None
    assert len(memory.search("Zanzibar", mode="keyword")) == 0


def test_embeddings_that_fail_leave_the_keywords_and_that_is_said(memory, caplog):
    class Failing(CharEmbeddings):
        def embed_query(self, text):
            raise ConnectionError("no network")

    store = RecallStore(memory, index={"dims": 64, "embed": Failing(64)})
    store.put(("a",), "tea", {"text": "oolong"})
    store.put(("a",), "other", {"text": "water"})
    found = store.search(("a",), query="oolong")
    assert [(item.key, item.score is None) for item in found] == [("tea", False), ("other", True)]
    assert "keywords only" in store.degraded
    assert "no network" in caplog.text


def test_vectors_of_a_host_have_a_space_of_their_own(memory):
    RecallStore(memory).put(("a",), "own", {"text": "tea"})
    RecallStore(memory, index={"dims": 64, "embed": CharEmbeddings(64)}).put(("a",), "theirs", {"text": "tea"})
    assert {space.name: space.dimensions for space in memory.stats().spaces} == {
        "memory": 384,
        "langgraph:CharEmbeddings": 64,
    }


def test_embedding_functions_sync_and_async_are_models_too(tmp_path):
    async def embed(texts):
        return [[1.0, float(len(text))] for text in texts]

    async def run():
        with RecallStore(tmp_path / "memory.db", index={"dims": 2, "embed": embed}) as store:
            await store.aput(("a",), "k", {"text": "tea"})
            return await store.asearch(("a",), query="tea")

    assert keys(asyncio.run(run())) == ["k"]


# Order, pages, filters


def test_items_are_listed_by_their_last_change(store, clock):
    for number in range(5):
        store.put(("a",), f"k{number}", {"n": number})
        clock.seconds += 1
    store.put(("a",), "k1", {"n": 10})
    assert keys(store.search(("a",))) == ["k1", "k4", "k3", "k2", "k0"]
    assert keys(store.search(("a",), limit=2, offset=2)) == ["k3", "k2"]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"who": {"name": "Ann"}}, ["nested"]),
        ({"who": {"name": "Ann", "age": {"$gt": 30}}}, ["nested"]),
        ({"who": {"age": {"$lt": 30}}}, []),
        ({"tags": ["a", "b"]}, ["list"]),
        ({"tags": ["b", "a"]}, []),
        ({"none": None}, ["none", "nested", "list", "odd"]),
        ({"none": {"$ne": None}}, ["empty"]),
        ({"@id": "x"}, ["odd"]),
        ({"$key": 1}, ["odd"]),
        ({"a/b": True}, ["odd"]),
        ({"who": {"$eq": 3}}, []),
    ],
    ids=str,
)
def test_filters_reach_any_depth_and_take_keys_literally(store, filter, expected):
    store.put(("a",), "nested", {"who": {"name": "Ann", "age": 42}})
    store.put(("a",), "list", {"tags": ["a", "b"]})
    store.put(("a",), "none", {"none": None})
    store.put(("a",), "empty", {"none": ""})
    store.put(("a",), "odd", {"@id": "x", "$key": 1, "a/b": True})
    assert sorted(keys(store.search(("a",), filter=filter))) == sorted(expected)


def test_an_operator_that_there_is_not_says_which_there_are(store):
    with pytest.raises(ValueError, match=r"'\$like' is no operator.*\$eq"):
        store.search(("a",), filter={"k": {"$like": "x"}})


def test_keys_and_labels_may_be_any_text(store):
    for number, key in enumerate(["", " ", "a/b", "%2F", "\x07", "键", "k" * 2000]):
        store.put(("x/y", "%", "*"), key, {"n": number})
        assert store.get(("x/y", "%", "*"), key).value == {"n": number}
    assert store.list_namespaces() == [("x/y", "%", "*")]


# Expiry


def test_an_item_expires_and_a_read_gives_it_a_new_term(memory, clock):
    store = RecallStore(memory, ttl={"default_ttl": 10, "refresh_on_read": True})
    for namespace in ("got", "found", "listed", "left"):
        store.put((namespace,), "k", {"text": "tea"})
    store.put(("kept",), "k", {"text": "tea"}, ttl=None)
    stored = store.get(("got",), "k").updated_at
    clock.seconds += 9 * 60
    store.get(("got",), "k")
    store.search(("found",), query="tea")
    store.search(("listed",))
    store.get(("left",), "k", refresh_ttl=False)
    clock.seconds += 9 * 60
    assert store.list_namespaces() == [("found",), ("got",), ("kept",), ("listed",)]
    assert store.get(("got",), "k").updated_at == stored


def test_what_has_expired_is_seen_nowhere_and_swept_for_good(memory, clock):
    store = RecallStore(memory, ttl={"default_ttl": 10, "refresh_on_read": False, "sweep_interval_minutes": 0})
    store.put(("a",), "k", {"text": "tea"})
    clock.seconds += 11 * 60
    assert store.get(("a",), "k") is None
    assert store.search(("a",)) == store.search(("a",), query="tea") == store.list_namespaces() == []
    store.put(("a",), "k", {"text": "new"})
    assert store.get(("a",), "k").created_at == memory.records()[0].updated_at


def test_sweeping_says_how_many_items_it_deleted(tmp_path):
    with Memory.open(tmp_path / "memory.db", clock=(clock := Clock())) as memory:
        clock.seconds -= 3600
        store = RecallStore(memory)
        store.put(("a",), "old", {"v": 1}, ttl=1)
        store.put(("a",), "new", {"v": 1}, ttl=600)
        memory.add("another record", ttl=1)
        clock.seconds += 3600
        assert store.sweep_ttl() == 1
        assert keys(store.search(())) == ["new"]


# Batches


def test_a_batch_is_all_or_nothing_and_its_reads_see_what_was_before(store):
    store.put(("a",), "gone", {"v": 1})
    results = store.batch([PutOp(("a",), "gone", None), PutOp(("a",), "new", {"v": 2}), SearchOp(("a",))])
    assert keys(results[2]) == ["gone"]
    with pytest.raises(ValueError, match="record 1"):
        store.batch([PutOp(("a",), "new", None), PutOp(("a",), "x", {"v": 1}), PutOp(("a",), "y", {"v": float("nan")})])
    assert keys(store.search(("a",))) == ["new"]


def test_two_stores_in_one_file_are_apart(memory):
    one, other = RecallStore(memory, scope="one"), RecallStore(memory, scope="other")
    one.put(("a",), "k", {"v": 1})
    other.put(("a",), "k", {"v": 2})
    assert (one.get(("a",), "k").value, other.get(("a",), "k").value) == ({"v": 1}, {"v": 2})


async def test_sync_and_async_calls_may_be_mixed_in_one_loop(store):
    await store.aput(("a",), "k", {"v": 1})
    assert store.get(("a",), "k").value == {"v": 1}
    store.put(("a",), "k", {"v": 2})
    assert (await store.aget(("a",), "k")).value == {"v": 2}


# In agents and graphs


async def test_tools_of_an_agent_reach_the_store(store):
    def save(text: str, runtime: ToolRuntime) -> str:
        """Save a note."""
        runtime.store.put(("notes",), "k", {"text": text})
        return runtime.store.search(("notes",), query="tea")[0].value["text"]

    agent = create_agent(scripted(calling("save", text="tea at four"), "ok"), [save], store=store)
    out = await agent.ainvoke(ask("Save it."))
    assert out["messages"][2].content == "tea at four"
    assert store.get(("notes",), "k").value == {"text": "tea at four"}


async def test_nodes_of_a_graph_reach_the_store(store):
    async def node(state: dict, runtime: Runtime) -> dict:
        await runtime.store.aput(("notes",), "k", {"text": "tea"})
        return {"found": [item.key for item in await runtime.store.asearch(("notes",), query="tea")]}

    graph = StateGraph(dict).add_node("node", node).add_edge(START, "node").compile(store=store)
    assert (await graph.ainvoke({}))["found"] == ["k"]


def test_values_stay_out_of_the_log(store, caplog):
    caplog.set_level(logging.INFO)
    store.put(("a",), "k", {"text": "a secret"})
    store.search(("a",), query="a secret")
    assert "secret" not in caplog.text


def test_a_value_longer_than_a_record_is_kept_whole_and_found_by_its_beginning(tmp_path):
    long = "The boiler is in the cellar. " + "x" * 1_500_000
    with RecallStore(tmp_path / "memory.db", scope="s") as store:
        store.put(("a",), "long", {"text": long, "more": [long]})
        store.put(("a",), "other", {"text": long + "x"})
        assert store.get(("a",), "long").value == {"text": long, "more": [long]}
        assert store.search(("a",), query="Where is the boiler?")[0].score is not None
        assert [item.key for item in store.search(("a",), filter={"text": long})] == ["long"]
        assert [item.key for item in store.search(("a",), filter={"text": {"$ne": long}})] == ["other"]
        assert len(store.search(("a",), filter={"text": {"$gt": "The boiler"}})) == 2


def test_a_list_is_not_what_it_is_written_as(tmp_path):
    with RecallStore(tmp_path / "memory.db") as store:
        store.put(("a",), "list", {"x": [1, 2]})
        store.put(("a",), "text", {"x": "[1, 2]"})
        assert [item.key for item in store.search(("a",), filter={"x": [1, 2]})] == ["list"]
        assert [item.key for item in store.search(("a",), filter={"x": "[1, 2]"})] == ["text"]
