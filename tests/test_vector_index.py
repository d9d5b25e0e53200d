"""Both vector indexes find what a plain comparison of all vectors finds, whatever was changed before."""

from __future__ import annotations

import numpy as np
import pytest
from store_support import beside, faults, use_small_index, vector_faults
from support import HashedEmbedder
from vector_support import (
    HOST,
    D,
    add,
    add_expired,
    ask,
    coded,
    exact,
    expect,
    find,
    make_vectors,
    names,
    open_with,
    read,
    refresh,
    select,
    sort_keys,
)

from recall_core import Memory
from recall_core.store import nearest


@pytest.fixture(params=[exact, coded], ids=["exact", "codes"])
def make_index(request):
    return request.param


@pytest.fixture
def memory(db_path, make_index):
    yield from open_with(db_path, make_index)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


# Finding


@pytest.mark.parametrize("count", [1, 10, 11, 19, 20, 21, 300])
def test_the_nearest_are_found_whatever_the_size_of_the_space(memory, rng, count):
    vectors = dict(zip(names("r", count), make_vectors(rng, count), strict=True))
    add(memory, vectors.keys(), vectors.values())
    for query in make_vectors(rng, 5):
        assert find(memory, query) == expect(vectors, query)


@pytest.mark.parametrize("limit", [1, 10, 60, 4096, 5000])
def test_as_many_are_found_as_were_asked_for(memory, rng, limit):
    vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
    add(memory, vectors.keys(), vectors.values())
    (query,) = make_vectors(rng, 1)
    assert find(memory, query, limit=limit) == expect(vectors, query, limit)


def test_few_selected_vectors_are_all_that_is_compared(memory, rng):
    add(memory, names("a", 50), make_vectors(rng, 50), scope="a")
    add(memory, names("b", 30), make_vectors(rng, 30), scope="b")
    (query,) = make_vectors(rng, 1)
    found = [ask(memory, query, select(scope=scope), 100) for scope in ("", "a", "b", "c")]
    assert [(len(nearest.keys), nearest.compared) for nearest in found] == [(80, 80), (50, 50), (30, 30), (0, 0)]


def test_more_were_compared_than_are_returned_if_there_is_more_to_ask_for(memory, rng):
    add(memory, names("a", 50), make_vectors(rng, 50))
    nearest = ask(memory, make_vectors(rng, 1)[0], limit=10)
    assert 10 <= len(nearest.keys) < nearest.compared


SELECTIONS = {
    "scope": {"scope": "user/2"},
    "subtree": {"scope": "user"},
    "session": {"session": "s1"},
    "roles": {"roles": ["Anna"]},
    "tags": {"tags": ["t0", "t1"]},
    "time": {"since": "2026-01-02", "until": "2026-01-20"},
    "metadata": {"where": {"n": {"$gte": 40}}},
    "all at once": {"scope": "user", "session": "s0", "roles": ["Bob"], "where": {"n": {"$lt": 150}}},
    "nothing": {"scope": "nowhere"},
}


@pytest.mark.parametrize("arguments", SELECTIONS.values(), ids=SELECTIONS.keys())
def test_a_selection_is_applied_before_the_nearest_are_taken(memory, rng, arguments):
    vectors = make_vectors(rng, 200)
    memory.add_many(
        {
            "text": f"text {n}", "id": f"r{n:03}", "vector": vector, "space": HOST, "scope": f"user/{n % 3}",
            "session": f"s{n % 2}", "role": ("Anna", "Bob")[n % 5 > 0], "tags": [f"t{n % 7}"], "metadata": {"n": n},
            "created_at": f"2026-01-{n % 28 + 1:02}",
        }
        for n, vector in enumerate(vectors)
    )  # fmt: skip
    selection = select(**arguments)
    selected = {record.id for record in memory._engine.store.records.page(selection, 1000, None)}
    for query in make_vectors(rng, 3):
        known = {f"r{n:03}": vector for n, vector in enumerate(vectors) if f"r{n:03}" in selected}
        assert find(memory, query, selection) == expect(known, query)


@pytest.mark.parametrize("probes", [(2_000, 20_000), (10, 100), (10, 400), (1,), (600,)])
def test_few_records_of_one_scope_are_found_behind_hundreds_of_nearer_ones(memory, rng, monkeypatch, probes):
    monkeypatch.setattr(nearest, "PROBES", probes)
    (query,) = make_vectors(rng, 1)
    near = query + rng.normal(size=(500, D)).astype(np.float32) * 0.01
    add(memory, names("near", 500), near, scope="user/1")
    add(memory, names("far", 5), -query + make_vectors(rng, 5), scope="user/2")
    for limit in (1, 5, 6, 100):
        found = ask(memory, query, select(scope="user/2"), limit).keys
        assert len(found) >= min(limit, 5)
        assert set(sort_keys(memory, found, query)) <= set(names("far", 5))
    assert sorted(find(memory, query, select(scope="user/2"))) == names("far", 5)


@pytest.mark.parametrize("share", [1, 2, 5, 20, 100])
def test_as_many_pass_a_filter_as_were_asked_for_whatever_its_share(memory, rng, monkeypatch, share):
    monkeypatch.setattr(nearest, "PROBES", (20, 100))
    memory.add_many(
        {"text": f"text {n}", "id": f"r{n:03}", "vector": vector, "space": HOST, "metadata": {"n": n % share}}
        for n, vector in enumerate(make_vectors(rng, 400))
    )
    for query in make_vectors(rng, 3):
        found = ask(memory, query, select(where={"n": 0}), 10).keys
        assert len(found) >= min(10, 400 // share)
        assert all(int(id[1:]) % share == 0 for id in sort_keys(memory, found, query))


def test_expired_records_are_passed_over(memory, rng):
    (query,) = make_vectors(rng, 1)
    add_expired(memory, names("gone", 30), [query] * 30)
    add(memory, names("kept", 30), make_vectors(rng, 30))
    assert all(id.startswith("kept") for id in find(memory, query))


# Changing


def test_deleted_records_leave_no_ghosts(memory, rng):
    vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
    add(memory, vectors.keys(), vectors.values())
    for query in list(vectors.values())[:20]:
        (nearest_one,) = find(memory, query, limit=1)
        memory.delete(nearest_one)
        del vectors[nearest_one]
        assert find(memory, query) == expect(vectors, query)
    refresh(memory)
    assert find(memory, query) == expect(vectors, query)
    assert vector_faults(memory) == []


def test_a_replaced_vector_is_found_where_it_is_now(memory, rng):
    vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
    add(memory, vectors.keys(), vectors.values())
    for id, vector in zip(names("r", 20), make_vectors(rng, 20), strict=True):
        old, vectors[id] = vectors[id], vector
        memory.update(id, vector=vector, space=HOST)
        assert find(memory, vector) == expect(vectors, vector)
        assert find(memory, old) == expect(vectors, old)
    assert vector_faults(memory) == []


def test_a_vector_goes_with_its_text(memory, rng):
    vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
    add(memory, vectors.keys(), vectors.values())
    memory.update("r007", text="another text")
    query = vectors.pop("r007")
    assert find(memory, query) == expect(vectors, query)


def test_a_change_that_the_index_has_not_seen_is_found_all_the_same(memory, rng, monkeypatch):
    vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
    add(memory, vectors.keys(), vectors.values())
    monkeypatch.setattr(memory._engine.store.index, "refresh", lambda space: False)
    late = dict(zip(names("late", 30), make_vectors(rng, 30), strict=True))
    add(memory, late.keys(), late.values())
    memory.delete("r000")
    (moved,) = make_vectors(rng, 1)
    memory.update("r001", vector=moved, space=HOST)
    known = {**vectors, **late, "r001": moved}
    del known["r000"]
    for query in (moved, vectors["r000"], vectors["r001"], *late.values()):
        assert find(memory, query, limit=30) == expect(known, query, 30)


def test_a_refresh_more_changes_nothing(memory, rng):
    vectors = make_vectors(rng, 60)
    add(memory, names("r", 60), vectors)
    before = find(memory, vectors[0], limit=60)
    version = memory._engine.store.database.version()
    refresh(memory)
    refresh(memory)
    assert memory._engine.store.database.version() == version
    assert (find(memory, vectors[0], limit=60), vector_faults(memory)) == (before, [])


# Transactions, openers, processes


def test_an_index_is_rolled_back_with_its_transaction(memory, rng):
    vectors = dict(zip(names("r", 19), make_vectors(rng, 19), strict=True))
    add(memory, vectors.keys(), vectors.values())

    def fail_after_adding():
        with memory._engine.store.records.transaction():
            add(memory, names("x", 30), make_vectors(rng, 30))
            memory.delete("r000")
            refresh(memory)
            raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            fail_after_adding()
        query = vectors["r000"]
        assert find(memory, query) == expect(vectors, query)
        assert (read(memory, "SELECT * FROM code_index"), vector_faults(memory)) == ([], [])
    more = dict(zip(names("y", 30), make_vectors(rng, 30), strict=True))
    add(memory, more.keys(), more.values())
    with pytest.raises(KeyError):
        fail_after_adding()
    assert find(memory, query) == expect({**vectors, **more}, query)
    assert vector_faults(memory) == []


# Spaces


def test_spaces_of_different_dimensions_are_apart(memory, rng):
    spaces = {name: dict(zip(names(name, 60), make_vectors(rng, 60, size), strict=True)) for name, size in
              (("small", 3), ("large", 700), ("other", 3), ("words", 64), ("more", 65), ("less", 63))}  # fmt: skip
    for name, vectors in spaces.items():
        add(memory, vectors.keys(), vectors.values(), space=name)
    for name, vectors in spaces.items():
        query = vectors[f"{name}030"]
        assert find(memory, query, space=name) == expect(vectors, query)
        memory.delete(f"{name}030")
        assert f"{name}030" not in find(memory, query, space=name)
    assert vector_faults(memory) == []


def test_a_record_may_have_a_vector_in_each_space(memory, rng):
    ids = names("r", 60)
    first, second = make_vectors(rng, 60, 3), make_vectors(rng, 60, 5)
    add(memory, ids, first, space="first")
    for id, vector in zip(ids, second, strict=True):
        memory.update(id, vector=vector, space="second")
    assert find(memory, first[7], space="first")[0] == find(memory, second[7], space="second")[0] == "r007"


# What other programs store


def test_blobs_that_are_no_vectors_are_passed_over(memory, rng, db_path):
    vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
    add(memory, vectors.keys(), vectors.values())
    strange = {"r001": "x''", "r002": "x'00'", "r003": "zeroblob(48)", "r004": "'text'", "r005": "7",
               "r006": "x'" + "ff" * 48 + "'", "r007": "x'" + "0000807f" * 12 + "'"}  # fmt: skip
    for id, value in strange.items():
        whose = f"(SELECT chunk.key FROM chunk JOIN record ON record.key = record_key WHERE record.id = '{id}')"
        beside(db_path, f"UPDATE embedding SET vector = {value} WHERE chunk_key = {whose}")
    known = {id: vector for id, vector in vectors.items() if id not in strange}
    for query in make_vectors(rng, 5):
        assert find(memory, query, limit=60) == expect(known, query, 60)
    refresh(memory)
    for query in make_vectors(rng, 5):
        assert find(memory, query, limit=60) == expect(known, query, 60)


# Through the front door


def test_codes_are_made_once_and_change_no_result(db_path, monkeypatch):
    use_small_index(monkeypatch, index_from=100)
    texts = [f"{word} {number}" for number in range(50) for word in ("Rockets fly", "Turtles swim", "他每天喝茶")]
    queries = ["Rockets fly 7", "茶", "swim 49"]
    with Memory.open(db_path, embedder=HashedEmbedder(32)) as memory:
        memory.add_many({"text": text, "id": f"{place:03}"} for place, text in enumerate(texts[:99]))
        assert memory.stats().vector_index == "exact"
        before = [near(memory, query) for query in queries]
        memory.add_many({"text": text, "id": f"{place + 99:03}", "scope": "b"} for place, text in enumerate(texts[99:]))
        assert memory.stats().vector_index == "codes"
        memory.delete([f"{place + 99:03}" for place in range(51)])
        assert [near(memory, query) for query in queries] == before
        assert (memory.flush(), vector_faults(memory)) == (0, [])
    assert faults(db_path) == []


def near(memory, query):
    hits = memory.search(query, mode="semantic", fusion="plain", limit=20)
    return [(hit.record.id, round(hit.why.similarity, 5)) for hit in hits]
