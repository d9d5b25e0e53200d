"""Both vector indexes answer alike, and as a plain scan would."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from support import HashedEmbedder

from recall_core import Memory
from recall_core.filters import make_selection
from recall_core.store import nearest
from recall_core.store.nearest import ExactIndex, Vec0Index

DIMENSIONS = 16
SPACE = "host"


@pytest.fixture(params=["exact", "vec0"])
def memory(request, db_path, clock, monkeypatch):
    """A memory whose index serves from a few dozen vectors on."""
    monkeypatch.setattr(nearest, "INDEX_FROM", 50)
    monkeypatch.setattr(nearest, "EXACT_UP_TO", 20)
    with Memory.open(db_path, embedder=None, clock=clock) as memory:
        store = memory._engine.store
        if request.param == "exact":
            store.index = ExactIndex(store.database, exact_up_to=20)
        else:
            store.index = Vec0Index(store.database, index_from=50, exact_up_to=20)
        yield memory


def make_vectors(count: int, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def fill(memory, vectors, scope="large", start=0):
    memory.add_many(
        {
            "text": f"text {start + number}",
            "id": f"{start + number:04}",
            "scope": scope,
            "metadata": {"kind": number % 10},
            "vector": vector,
            "space": SPACE,
        }
        for number, vector in enumerate(vectors)
    )


def find(memory, query, limit=10, **arguments) -> list[str]:
    """Return the ids of the nearest by cosine."""
    hits = memory.search("", mode="semantic", fusion="plain", vector=query, space=SPACE, limit=limit, **arguments)
    return [hit.record.id for hit in hits]


def expect(vectors, query, ids, limit=10) -> list[str]:
    order = np.argsort(-(vectors @ query), kind="stable")[:limit]
    return [ids[place] for place in order]


@pytest.mark.parametrize("count", [10, 49, 51, 300])
def test_the_nearest_are_those_of_a_scan(memory, count):
    vectors = make_vectors(count)
    fill(memory, vectors)
    ids = [f"{number:04}" for number in range(count)]
    for query in make_vectors(5, seed=1):
        assert find(memory, query) == expect(vectors, query, ids)


def test_a_scope_is_chosen_before_the_nearest_are(memory):
    query = make_vectors(1, seed=2)[0]
    fill(memory, query + 0.01 * make_vectors(500, seed=3), scope="a")
    fill(memory, make_vectors(5, seed=4), scope="ab", start=600)
    assert sorted(find(memory, query, scope="ab")) == [f"{number:04}" for number in range(600, 605)]


def test_a_filter_is_applied_before_the_nearest_are_taken(memory):
    vectors = make_vectors(400)
    fill(memory, vectors)
    chosen = [number for number in range(400) if number % 10 == 3]
    query = make_vectors(1, seed=5)[0]
    expected = expect(vectors[chosen], query, [f"{number:04}" for number in chosen])
    assert find(memory, query, where={"kind": 3}) == expected


def test_what_is_deleted_updated_or_replaced_leaves_no_ghost(memory):
    vectors = make_vectors(200)
    fill(memory, vectors)
    query = vectors[7]
    assert find(memory, query, limit=1) == ["0007"]
    memory.delete("0007")
    assert "0007" not in find(memory, query, limit=200)
    memory.update("0008", vector=query, space=SPACE)
    assert find(memory, query, limit=1) == ["0008"]
    memory.add("new", id="0008", scope="large", vector=-query, space=SPACE, on_duplicate="replace")
    assert find(memory, query, limit=200)[-1] == "0008"
    assert len(find(memory, query, limit=500)) == 199


def test_vectors_need_not_have_length_one(memory):
    vectors = make_vectors(100)
    fill(memory, vectors * np.linspace(0.1, 50, 100, dtype=np.float32)[:, None])
    query = make_vectors(1, seed=6)[0]
    ids = [f"{number:04}" for number in range(100)]
    assert find(memory, query) == expect(vectors, query, ids)


def test_a_rolled_back_write_leaves_the_index_as_it_was(memory):
    vectors = make_vectors(100)
    fill(memory, vectors)
    with suppress(RuntimeError), memory._engine.store.records.transaction():
        memory.add("late", id="late", vector=make_vectors(1, seed=7)[0], space=SPACE)
        raise RuntimeError
    assert "late" not in find(memory, make_vectors(1, seed=7)[0], limit=100)
    memory.add("after", id="after", vector=make_vectors(1, seed=7)[0], space=SPACE)
    assert find(memory, make_vectors(1, seed=7)[0], limit=1) == ["after"]


def test_refreshing_twice_changes_nothing(memory):
    vectors = make_vectors(100)
    fill(memory, vectors)
    store = memory._engine.store
    space = store.vectors.find_space(SPACE)
    before = store.index.nearest(space, vectors[0], make_selection(now=memory._engine.clock()), 30)
    store.index.refresh(space)
    store.index.refresh(space)
    after = store.index.nearest(space, vectors[0], make_selection(now=memory._engine.clock()), 30)
    assert before.keys == after.keys


def test_spaces_of_different_sizes_have_indexes_of_their_own(memory):
    fill(memory, make_vectors(100))
    memory.add_many(
        {"text": f"other {number}", "id": f"other-{number}", "vector": [float(number), 1.0, 0.0], "space": "small"}
        for number in range(100)
    )
    hits = memory.search("", mode="semantic", fusion="plain", vector=[1.0, 0.0, 0.0], space="small", limit=3)
    assert [hit.record.id for hit in hits] == ["other-99", "other-98", "other-97"]
    assert len(find(memory, make_vectors(1)[0], limit=300)) == 100


def test_a_file_without_the_extension_is_searched_exactly_and_says_so(db_path, clock, monkeypatch):
    embedder = HashedEmbedder()
    with Memory.open(db_path, embedder=embedder, clock=clock) as memory:
        memory.add("docker deploys the services", id="deploy")
    monkeypatch.setattr("recall_core.store.database.load_vec0", lambda connection: False)
    with Memory.open(db_path, embedder=embedder, clock=clock) as memory:
        assert [hit.record.id for hit in memory.search("docker", mode="semantic")] == ["deploy"]
        memory.add("more", id="more")
        stats = memory.stats()
    assert (stats.vector_index, len(stats.notes)) == ("exact", 1)
    with Memory.open(db_path, embedder=embedder, clock=clock) as memory:
        assert len(memory.search("docker", mode="semantic")) == 2
