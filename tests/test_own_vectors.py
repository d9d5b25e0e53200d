"""Vectors that callers bring: stored, searched, changed, and never mixed with those of another model."""

from __future__ import annotations

import numpy as np
import pytest
from store_support import beside
from support import HashedEmbedder

from recall_core import Memory, Settings
from recall_core.errors import InvalidInputError, RecallError, VectorError
from recall_core.scope_cache import ScopeCache

EAST, NORTH, WEST = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]
BAD = [
    ([1.0, 0.0], "expected"),
    ([1.0, float("nan"), 0.0], "NaN|nan|infinit"),
    ([float("inf"), 0.0, 0.0], "NaN|nan|infinit"),
    ([0.0, 0.0, 0.0], "zero"),
    (["a", "b", "c"], "number"),
]


@pytest.fixture
def embedder():
    return HashedEmbedder(3)


@pytest.fixture
def memory(embedder, clock):
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        yield memory


def near(memory, vector, **arguments) -> list[tuple[str, float]]:
    """Return ids and cosines of the records by their vectors alone, nearest first."""
    hits = memory.search("", mode="semantic", fusion="plain", vector=vector, **arguments)
    assert hits.degraded is None
    return [(hit.record.id, round(hit.why.similarity, 3)) for hit in hits]


def dimensions(memory) -> dict[str, int]:
    return {space.name: space.dimensions for space in memory.stats().spaces}


# The memory's own space


def test_a_given_vector_is_stored_in_place_of_an_embedding(memory, embedder):
    memory.add("one", id="1", vector=EAST)
    memory.add("two", id="2", vector=NORTH)
    assert near(memory, EAST) == [("1", 1.0), ("2", 0.0)]
    assert (embedder.passages, memory.flush()) == ([], 0)


def test_a_given_query_vector_is_searched_with_in_place_of_an_embedding(memory, embedder):
    memory.add("one", id="1", vector=EAST)
    assert near(memory, WEST) == [("1", -1.0)]
    assert embedder.queries == []


@pytest.mark.parametrize(
    "kind", [tuple, np.array, lambda x: np.array(x, dtype=np.float32), lambda x: [int(n) for n in x]]
)
def test_a_vector_may_be_any_sequence_of_numbers(memory, kind):
    memory.add("one", id="1", vector=kind(EAST))
    assert near(memory, kind(EAST)) == [("1", 1.0)]


def test_a_vector_need_not_have_length_one(memory):
    memory.add("one", id="1", vector=[250.0, 0.0, 0.0])
    assert near(memory, [0.5, 0.0, 0.0]) == [("1", 1.0)]


def test_a_vector_stands_for_a_text_of_several_chunks(memory):
    memory.add("A sentence of some words. " * 200, id="1", vector=EAST)
    assert near(memory, EAST)[0] == ("1", 1.0)


def test_a_bulk_add_takes_vectors(memory):
    memory.add_many([{"text": "one", "id": "1", "vector": EAST}, {"text": "two", "id": "2", "vector": NORTH}])
    assert near(memory, NORTH) == [("2", 1.0), ("1", 0.0)]


def test_a_message_takes_a_vector(memory):
    memory.session("talk").append("user", "one", id="1", vector=EAST)
    assert near(memory, EAST) == [("1", 1.0)]


def test_without_an_embedder_given_vectors_are_searched_all_the_same(clock):
    with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        memory.add("one", id="1", vector=EAST)
        memory.add("two", id="2", vector=NORTH)
        assert near(memory, NORTH) == [("2", 1.0), ("1", 0.0)]


def test_a_given_vector_is_not_taken_for_that_of_the_same_text_elsewhere(memory, embedder):
    memory.add("the same text", id="1", scope="a", vector=EAST)
    memory.add("the same text", id="2", scope="b")
    assert embedder.passages == ["the same text"]


# Update


def test_an_update_replaces_a_vector(memory):
    memory.add("one", id="1", vector=EAST)
    memory.update("1", vector=NORTH)
    assert near(memory, NORTH) == [("1", 1.0)]


def test_an_update_replaces_a_vector_together_with_its_text(memory, embedder):
    memory.add("one", id="1", vector=EAST)
    memory.update("1", text="two", vector=NORTH)
    assert near(memory, NORTH) == [("1", 1.0)]
    assert embedder.passages == []


def test_a_new_text_without_a_vector_is_embedded(memory, embedder):
    memory.add("one", id="1", vector=EAST)
    memory.update("1", text="two")
    assert embedder.passages == ["two"]


def test_an_update_gives_a_vector_to_a_record_that_had_none(memory):
    memory.add("one", id="1")
    memory.update("1", vector=EAST, space="host")
    assert near(memory, EAST, space="host") == [("1", 1.0)]


def test_replacing_a_record_replaces_its_vector(memory):
    memory.add("one", id="1", vector=EAST)
    memory.add("one", id="1", vector=NORTH, on_duplicate="replace")
    assert near(memory, NORTH) == [("1", 1.0)]


def test_a_change_beside_the_text_keeps_a_given_vector(memory):
    memory.add("one", id="1", vector=EAST, space="host")
    memory.update("1", tags=["new"], metadata={"k": "v"}, source="wiki")
    assert near(memory, EAST, space="host") == [("1", 1.0)]


def test_another_speaker_of_the_same_text_keeps_a_given_vector(memory):
    memory.add("one", id="1", vector=EAST, space="host")
    memory.update("1", role="Bob")
    assert near(memory, EAST, space="host") == [("1", 1.0)]


# Named spaces


def test_spaces_never_mix(memory):
    memory.add("one", id="1", vector=EAST)
    memory.add("two", id="2", vector=EAST, space="host")
    memory.add("three", id="3", vector=WEST, space="other")
    assert near(memory, EAST, space="host") == [("2", 1.0)]
    assert near(memory, EAST, space="other") == [("3", -1.0)]
    assert ("1", 1.0) in near(memory, EAST)
    assert ("3", -1.0) not in near(memory, EAST)


def test_spaces_may_have_different_dimensions(memory):
    memory.add("one", id="1", vector=[1.0] * 5, space="host")
    assert near(memory, [1.0] * 5, space="host") == [("1", 1.0)]
    assert dimensions(memory) == {"host": 5, "memory": 3}


def test_a_record_has_its_own_vector_beside_one_in_a_named_space(memory, embedder):
    memory.add("one", id="1", vector=EAST, space="host")
    assert embedder.passages == ["one"]
    assert [hit.record.id for hit in memory.search("one", mode="semantic")] == ["1"]


@pytest.mark.parametrize("size", [3, 5])
def test_a_named_space_is_never_searched_with_the_memory_s_own_embedding(memory, size):
    memory.add("one", id="1", vector=[1.0] * size, space="host")
    hits = memory.search("one", space="host")
    assert [(hit.record.id, hit.why.similarity) for hit in hits] == [("1", None)]
    assert "host" in hits.degraded


def test_deleting_a_record_deletes_its_vectors_in_all_spaces(memory):
    memory.add("one", id="1", vector=EAST, space="host")
    memory.update("1", vector=EAST, space="other")
    memory.delete("1")
    assert (near(memory, EAST, space="host"), near(memory, EAST, space="other"), near(memory, EAST)) == ([], [], [])
    assert {space.vectors for space in memory.stats().spaces} == {0}


# What is refused


@pytest.mark.parametrize("space", [None, "host"])
@pytest.mark.parametrize(("vector", "message"), BAD)
def test_a_vector_that_can_not_be_stored_is_refused_and_nothing_is_stored(memory, space, vector, message):
    memory.add("first", id="1", vector=EAST, space=space)
    with pytest.raises(VectorError, match=message):
        memory.add("second", vector=vector, space=space)
    assert memory.count() == 1


@pytest.mark.parametrize("space", [None, "host"])
@pytest.mark.parametrize(("vector", "message"), BAD)
def test_a_query_vector_that_can_not_be_compared_is_refused(memory, space, vector, message):
    memory.add("first", id="1", vector=EAST, space=space)
    with pytest.raises(VectorError, match=message):
        memory.search("first", vector=vector, space=space)


@pytest.mark.parametrize("space", [None, "host"])
@pytest.mark.parametrize(("vector", "message"), BAD)
def test_an_update_to_a_vector_that_can_not_be_stored_changes_nothing(memory, space, vector, message):
    record = memory.add("first", id="1", vector=EAST, space=space)
    with pytest.raises(VectorError, match=message):
        memory.update("1", text="second", vector=vector, space=space)
    assert memory.get("1") == [record]
    assert near(memory, EAST, space=space) == [("1", 1.0)]


@pytest.mark.parametrize("vector", [[0.0, 0.0], [float("nan")] * 2, ["a", "b"], [], 5, "abc", [[1.0], [2.0]]], ids=repr)
def test_a_refused_vector_makes_no_space(memory, vector):
    with pytest.raises((VectorError, InvalidInputError), match="vector"):
        memory.add("first", vector=vector, space="host")
    memory.add("second", id="2", vector=EAST, space="host")
    assert near(memory, EAST, space="host") == [("2", 1.0)]


def test_a_refused_batch_makes_no_space(memory):
    with pytest.raises(RecallError):
        memory.add_many([{"text": "one", "vector": [1.0] * 7, "space": "host"}, {"text": 5}])
    assert "host" not in dimensions(memory)


@pytest.mark.parametrize("space", [5, "", "\ud800", "a\nb"], ids=repr)
def test_a_space_with_a_name_that_can_not_be_printed_is_refused(memory, space):
    with pytest.raises(InvalidInputError, match="space"):
        memory.add("text", vector=EAST, space=space)


def test_a_space_without_a_vector_to_put_there_is_refused(memory):
    with pytest.raises(InvalidInputError, match="space"):
        memory.add("text", space="host")


def test_a_search_near_a_vector_in_a_space_that_is_not_there_finds_by_keywords_and_says_so(memory):
    memory.add("text", id="1")
    hits = memory.search("text", vector=EAST, space="typo")
    assert ([hit.record.id for hit in hits], hits.mode) == (["1"], "keyword")
    assert "'typo'" in hits.degraded


def test_a_search_near_a_vector_in_an_empty_memory_finds_nothing(memory):
    hits = memory.search("text", vector=EAST, space="host")
    assert (len(hits), hits.degraded) == (0, None)


def test_a_vector_can_be_changed_but_not_taken_away(memory):
    memory.add("text", id="1", vector=EAST)
    with pytest.raises(InvalidInputError, match="vector"):
        memory.update("1", vector=None)


def test_a_vector_that_was_brought_stays_where_another_program_has_its_record_cut_anew(db_path, embedder):
    text = "The first sentence is here. The second one is not far away. And then there is a third."
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add(text, id="one", vector=EAST)
    beside(db_path, "UPDATE record SET text = text")
    small = Settings(chunk_size=30, chunk_overlap=0, chunk_unit="characters")
    with Memory.open(db_path, embedder=embedder, settings=small) as memory:
        assert memory.stats().chunks > 1
        with memory._engine.store.database.read() as connection:
            sql = "SELECT place FROM embedding JOIN chunk ON chunk.key = chunk_key WHERE given"
            assert connection.execute(sql).fetchall() == [(0,)]


# One vector for a whole record


FILLER = "A sentence of some words. " * 200


@pytest.fixture(params=["held", "large"])
def scope_size(request, monkeypatch):
    """Let scopes be held in memory, or be taken for large ones."""
    if request.param == "large":
        monkeypatch.setitem(ScopeCache.__init__.__kwdefaults__, "most_chunks", 0)


@pytest.mark.parametrize("before", [True, False], ids=["stored before", "stored after a search"])
def test_a_vector_counts_for_every_chunk_of_its_record(scope_size, clock, before):
    with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        memory.add_many({"text": f"note {number}", "vector": NORTH, "space": "host"} for number in range(20))
        if not before:
            memory.search("note", vector=EAST, space="host")
        memory.add(FILLER + "The lighthouse stands there.", id="long", vector=EAST, space="host")
        memory.add("A lighthouse", id="short", vector=WEST, space="host")
        for fusion in ("plain", "default"):
            hits = memory.search("lighthouse", vector=EAST, space="host", alpha=0.5, fusion=fusion, limit=2)
            assert hits[0].record.id == "long"
            assert "lighthouse" in hits[0].chunk.text
            assert hits[0].why.similarity == pytest.approx(1.0)
            assert hits[0].why.keyword_weight == 0.5
            if fusion == "plain":
                assert hits[0].score == pytest.approx(0.5 * hits[0].why.coverage + 0.5)


def test_a_long_record_counts_once_in_what_is_typical(scope_size, clock):
    meanings = []
    for text in ("one", FILLER):
        with Memory.open(":memory:", embedder=None, clock=clock) as memory:
            for number, vector in enumerate((EAST, NORTH, [0.6, 0.8, 0.0], [0.0, 0.6, 0.8])):
                memory.add(text if number == 0 else f"note {number}", id=str(number), vector=vector, space="host")
            hits = memory.search("", mode="semantic", vector=[0.8, 0.6, 0.1], space="host")
            meanings.append({hit.record.id: hit.why.meaning for hit in hits})
    assert meanings[0] == pytest.approx(meanings[1])
