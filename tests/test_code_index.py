"""The codes of a space follow its vectors, whoever changes these or them, and whatever is undone."""

from __future__ import annotations

import subprocess
import tracemalloc

import numpy as np
import pytest
from store_support import beside, faults, run_python, vector_faults
from support import FixedClock, HashedEmbedder
from vector_support import (
    HOST,
    INDEX_FROM,
    D,
    add,
    add_expired,
    ask,
    coded,
    coded_keys,
    expect,
    find,
    make_vectors,
    names,
    open_with,
    read,
    refresh,
    select,
    sort_keys,
    write,
)

from recall_core import Memory
from recall_core.store import nearest
from recall_core.store.nearest import CodeIndex, ExactIndex


@pytest.fixture
def coded_memory(db_path):
    yield from open_with(db_path, coded)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


# Finding


def test_expired_records_are_no_reason_to_look_at_all_others(coded_memory, rng, monkeypatch):
    (query,) = make_vectors(rng, 1)
    add_expired(coded_memory, names("gone", 30), [query] * 30)
    add(coded_memory, names("kept", 30), make_vectors(rng, 30))
    asked, select_keys = [], nearest.select_keys
    monkeypatch.setattr(nearest, "select_keys", lambda *a: asked.append(a[-1] is None) or select_keys(*a))
    assert len(ask(coded_memory, query, limit=5).keys) >= 5
    assert asked == [False, False]


def test_the_nearest_vectors_of_a_cluster_are_found_through_their_codes(db_path, rng):
    size = 64
    topics = rng.normal(size=(30, size)) * 0.7 + 3  # as those of real models: in one narrow cone
    vectors = (np.repeat(topics, 20, axis=0) + rng.normal(size=(600, size)) * 0.5).astype(np.float32)
    with Memory.open(db_path, embedder=None, clock=FixedClock()) as memory:
        store = memory._engine.store
        indexes = [ExactIndex(store.database), CodeIndex(store.database, index_from=100)]
        store.index = indexes[1]
        add(memory, names("r", 600), vectors)
        space, shares = store.vectors.find_space(HOST), []
        for query in vectors[::40]:
            direction = query / np.linalg.norm(query) - vectors.mean(axis=0) / np.linalg.norm(vectors.mean(axis=0))
            best = set(indexes[0].nearest(space, direction, select(), 10).keys)
            shares.append(len(best & set(indexes[1].nearest(space, direction, select(), 40).keys)) / 10)
    assert np.mean(shares) >= 0.98


# Changing


def test_of_many_changes_that_the_index_has_not_seen_only_the_nearest_are_returned(coded_memory, rng, monkeypatch):
    add(coded_memory, names("r", 60), make_vectors(rng, 60))
    monkeypatch.setattr(coded_memory._engine.store.index, "refresh", lambda space: False)
    late = dict(zip(names("late", 100), make_vectors(rng, 100), strict=True))
    add(coded_memory, late.keys(), late.values())
    found = ask(coded_memory, late["late050"], limit=5)
    assert len(found.keys) < 40 < found.compared
    assert sort_keys(coded_memory, found.keys, late["late050"])[0] == "late050"


def test_a_chunk_whose_vector_is_gone_is_found_no_more(coded_memory, rng):
    vectors = make_vectors(rng, 60)
    add(coded_memory, names("r", 60), vectors)
    write(coded_memory, "DELETE FROM embedding WHERE chunk_key <= 10")
    assert min(ask(coded_memory, vectors[0], limit=60).keys) == 11


def test_a_vector_that_moves_to_another_chunk_leaves_no_code_behind(coded_memory, rng):
    add(coded_memory, names("r", 60), make_vectors(rng, 60))
    coded_memory.add("without a vector", id="bare")
    write(coded_memory, "UPDATE embedding SET chunk_key = 61 WHERE chunk_key = 1")
    add(coded_memory, names("s", 20), make_vectors(rng, 20))
    assert (vector_faults(coded_memory), 1 in coded_keys(coded_memory), 61 in coded_keys(coded_memory)) == (
        [], False, True
    )  # fmt: skip


def test_a_space_of_few_vectors_gets_no_codes_however_often_they_change(coded_memory, rng):
    for _ in range(6):
        add(coded_memory, names("r", 10), make_vectors(rng, 10))
        coded_memory.delete(names("r", 10))
    add(coded_memory, names("r", 10), make_vectors(rng, 10))
    refresh(coded_memory)
    assert read(coded_memory, "SELECT * FROM code_index") == []
    assert len(read(coded_memory, "SELECT * FROM vector_change")) < 2 * INDEX_FROM


def test_codes_are_made_and_refreshed_in_batches(coded_memory, rng, monkeypatch):
    monkeypatch.setattr(nearest, "REFRESH_BATCH", 7)
    index = coded_memory._engine.store.index
    monkeypatch.setattr(index, "refresh", lambda space: False)
    vectors = make_vectors(rng, 60)
    add(coded_memory, names("r", 60), vectors)
    monkeypatch.undo()
    monkeypatch.setattr(nearest, "REFRESH_BATCH", 7)
    space = coded_memory._engine.store.vectors.find_space(HOST)
    left = [60]
    while index.refresh(space):
        left.append(read(coded_memory, "SELECT count(*) FROM vector_change")[0][0])
        assert find(coded_memory, vectors[3])[0] == "r003"
        assert vector_faults(coded_memory) == []
    assert left == [60, 53, 46, 39, 32, 25, 18]  # the last ones are fewer than are worth it


# Transactions, openers, processes


@pytest.mark.parametrize("kind", ["file", "RAM"])
def test_codes_seen_in_a_transaction_that_is_rolled_back_are_forgotten(db_path, rng, kind):
    with Memory.open(db_path if kind == "file" else ":memory:", embedder=None, clock=FixedClock()) as memory:
        store = memory._engine.store
        store.index = coded(store.database)
        vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
        add(memory, vectors.keys(), vectors.values())
        moved = dict(zip(names("r", 30), make_vectors(rng, 30), strict=True))

        def move_and_fail():
            with store.records.transaction():
                for id, vector in moved.items():
                    memory.update(id, vector=vector, space=HOST)
                assert find(memory, moved["r007"]) == expect(vectors | moved, moved["r007"])
                raise KeyError

        find(memory, vectors["r000"])
        with pytest.raises(KeyError):
            move_and_fail()
        more = dict(zip(names("s", 30), make_vectors(rng, 30), strict=True))
        add(memory, more.keys(), more.values())
        fresh = coded(store.database)
        space = store.vectors.find_space(HOST)
        for query in vectors.values():
            assert ask(memory, query) == fresh.nearest(space, query, select(), 5)


def test_codes_that_went_back_to_an_earlier_version_are_read_anew(coded_memory, rng):
    """As they do where the log is lost that had the later one."""
    add(coded_memory, names("r", 60), make_vectors(rng, 60))
    before = coded_keys(coded_memory)
    tables = ("code_index", "code_page")
    for table in tables:
        write(coded_memory, f"CREATE TEMP TABLE {table}_before AS SELECT * FROM {table}")
    add(coded_memory, names("s", 60), make_vectors(rng, 60))
    (query,) = make_vectors(rng, 1)
    assert len(ask(coded_memory, query, limit=200).keys) == 120
    for table in tables:
        write(coded_memory, f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM temp.{table}_before")
    write(coded_memory, "DELETE FROM vector_change")
    assert coded_keys(coded_memory) == before
    assert len(ask(coded_memory, query, limit=200).keys) == 60


def test_codes_that_another_opener_makes_and_changes_are_followed(db_path, rng):
    with Memory.open(db_path, embedder=None) as one, Memory.open(db_path, embedder=None) as other:
        for memory in (one, other):
            memory._engine.store.index = coded(memory._engine.store.database)
        vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
        add(one, vectors.keys(), vectors.values())
        for turn in range(4):
            for query in list(vectors.values())[:5]:
                assert find(one, query) == find(other, query) == expect(vectors, query)
            writer = (one, other)[turn % 2]
            more = dict(zip(names(f"s{turn}", 30), make_vectors(rng, 30), strict=True))
            add(writer, more.keys(), more.values())
            vectors |= more
            gone = list(vectors)[:20]
            writer.delete(gone)
            vectors = {id: vector for id, vector in vectors.items() if id not in gone}


CHANGED_BY_A_PROCESS = """
import sys
import numpy as np
from recall_core import Memory
from recall_core.store.nearest import CodeIndex

with Memory.open(sys.argv[1], embedder=None) as memory:
    memory._engine.store.index = CodeIndex(memory._engine.store.database, index_from=20)
    for turn, line in enumerate(sys.stdin):
        vectors = np.random.default_rng(int(line)).normal(size=(30, 12)).astype(np.float32)
        memory.add_many({"text": f"{turn} {n}", "id": f"p{turn}{n:03}", "vector": v, "space": "host"}
                        for n, v in enumerate(vectors))
        memory.delete([f"p{turn - 1}{n:03}" for n in range(20)])
        print("done", flush=True)
"""


def test_codes_that_another_process_makes_and_changes_are_followed(coded_memory, rng, db_path):
    vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
    add(coded_memory, vectors.keys(), vectors.values())
    worker = run_python(["-c", CHANGED_BY_A_PROCESS, str(db_path)], stdin=subprocess.PIPE)
    for turn in range(4):
        find(coded_memory, vectors["r000"])
        worker.stdin.write(f"{turn}\n")
        worker.stdin.flush()
        assert worker.stdout.readline() == "done\n"
        added = np.random.default_rng(turn).normal(size=(30, D)).astype(np.float32)
        vectors |= dict(zip(names(f"p{turn}", 30), added, strict=True))
        vectors = {id: vector for id, vector in vectors.items() if id not in names(f"p{turn - 1}", 20)}
        for query in list(vectors.values())[::9]:
            assert find(coded_memory, query) == expect(vectors, query)
        assert vector_faults(coded_memory) == []
    assert worker.communicate() == ("", "")


def test_a_search_goes_on_with_the_codes_of_its_moment(coded_memory, rng, db_path):
    add(coded_memory, names("r", 60), make_vectors(rng, 60))
    (query,) = make_vectors(rng, 1)
    with coded_memory._engine.store.database.read():
        before = ask(coded_memory, query, limit=60)
        worker = run_python(["-c", CHANGED_BY_A_PROCESS, str(db_path)], stdin=subprocess.PIPE)
        assert worker.communicate("1\n") == ("done\n", "")
        assert ask(coded_memory, query, limit=60) == before
    assert ask(coded_memory, query, limit=60) != before


# Keys


@pytest.mark.parametrize("keys", [
    [1024 * n for n in range(1, 61)],
    [2**53 * n + 1023 for n in range(1, 61)],
    [1023, 1024, 1025, 2047, 2048, *range(5_000, 5_055)],
    [2**63 - 1 - 100 * n for n in range(60)],
    [-1025, -1024, -1023, -1, 0, *range(1, 56)],
], ids=["one for each page", "far apart", "at the edges of pages", "the largest", "negative"])  # fmt: skip
def test_any_chunk_key_has_its_place(coded_memory, rng, keys):
    vectors = make_vectors(rng, 60)
    coded_memory.add_many({"text": f"text {n}", "id": f"r{n:03}"} for n in range(60))
    coded_memory._engine.store.vectors.ensure_space(HOST, "external", D)
    with coded_memory._engine.store.database.write() as connection:
        connection.execute("DELETE FROM pending; UPDATE chunk SET key = -100000 - key")
        for n, (key, vector) in enumerate(zip(keys, vectors, strict=True)):
            connection.execute("UPDATE chunk SET key = ? WHERE key = ?", (key, -100001 - n))
            connection.execute(
                "INSERT INTO embedding(chunk_key, space_id, vector) VALUES (?, 1, ?)", (key, vector.tobytes())
            )
    refresh(coded_memory)
    assert sorted(coded_keys(coded_memory)) == sorted(keys)
    assert vector_faults(coded_memory) == []
    for query in make_vectors(rng, 3):
        found = find(coded_memory, query, limit=60)
        assert found == expect(dict(zip(names("r", 60), vectors, strict=True)), query, 60)


def test_codes_in_memory_take_no_room_for_keys_without_one(coded_memory, rng):
    add(coded_memory, names("r", 60), make_vectors(rng, 60))
    page = bytes([1]) + bytes(127)
    with coded_memory._engine.store.database.write() as connection:
        connection.executemany(
            "INSERT INTO code_page VALUES (1, ?, 9223372036854775807, ?, ?)",
            [(1000 * n, page, bytes(8)) for n in range(1, 2000)],
        )
        connection.execute("UPDATE code_index SET version = version + 1")
    tracemalloc.start()
    ask(coded_memory, make_vectors(rng, 1)[0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    (held,) = coded_memory._engine.store.index._held.values()
    assert (held.planes.shape, held.keys.shape) == ((1, 60 + 1999), (60 + 1999,))
    assert peak < 5_000_000


def test_pages_whose_records_are_all_deleted_take_no_room(coded_memory, rng):
    for turn in range(3):
        add(coded_memory, names(f"r{turn}", 60), make_vectors(rng, 60))
        ask(coded_memory, make_vectors(rng, 1)[0])
        coded_memory.delete(names(f"r{turn}", 60))
    refresh(coded_memory)
    ask(coded_memory, make_vectors(rng, 1)[0])
    (held,) = coded_memory._engine.store.index._held.values()
    assert (held.keys.size, read(coded_memory, "SELECT sum(length(codes)) FROM code_page")) == (0, [(0,)])


# What other programs store


def test_a_space_that_another_program_deletes_leaves_nothing(coded_memory, rng, db_path):
    for space in ("one", "two"):
        add(coded_memory, names(space, 60), make_vectors(rng, 60), space=space)
    add(coded_memory, names("late", 5), make_vectors(rng, 5), space="one")
    beside(db_path, "DELETE FROM space WHERE name = 'one'")
    for table in ("embedding", "code_index", "code_page", "vector_change"):
        assert read(coded_memory, f"SELECT DISTINCT space_id FROM {table}") in ([(2,)], [])
    assert (vector_faults(coded_memory), faults(db_path)) == ([], [])
    add(coded_memory, names("new", 60), vectors := make_vectors(rng, 60), space="one")
    assert find(coded_memory, vectors[7], space="one")[0] == "new007"


def test_a_file_whose_own_space_is_deleted_gets_new_vectors_of_any_model(db_path):
    with Memory.open(db_path, embedder=HashedEmbedder(32)) as memory:
        memory.add("Rockets fly to the moon", id="r")
    beside(db_path, "DELETE FROM space WHERE name = 'memory'")
    with Memory.open(db_path, embedder=HashedEmbedder(16)) as memory:
        assert (memory.flush(), vector_faults(memory)) == (0, [])
        assert [space.vectors for space in memory.stats().spaces] == [1]
    assert faults(db_path) == []


DAMAGE = {
    "too few codes": "UPDATE code_page SET codes = substr(codes, 1, 8 * 7)",
    "half a code": "UPDATE code_page SET codes = zeroblob(length(codes) + 1)",
    "no codes": "UPDATE code_page SET codes = x''",
    "other places": "UPDATE code_page SET present = zeroblob(128)",
    "a short centre": "UPDATE code_index SET centre = x'00'",
    "a centre of another space": "UPDATE code_index SET centre = zeroblob(64)",
    "a centre of NaN": f"UPDATE code_index SET centre = x'{'0000c07f' * D}'",
    "no pages": "DELETE FROM code_page",
    "no index": "DELETE FROM code_index",
    "a version far ahead": "UPDATE code_index SET version = version + 1000",
    "a version before": "UPDATE code_index SET version = 1",
}


@pytest.mark.parametrize("sql", DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_codes_break_nothing_and_are_made_anew(coded_memory, rng, db_path, sql):
    vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
    add(coded_memory, vectors.keys(), vectors.values())
    find(coded_memory, vectors["r000"])
    beside(db_path, sql, "UPDATE code_index SET version = version + 1")
    find(coded_memory, vectors["r000"])
    late = dict(zip(names("s", 30), make_vectors(rng, 30), strict=True))
    add(coded_memory, late.keys(), late.values())
    vectors |= late
    for query in make_vectors(rng, 3):
        assert find(coded_memory, query) == expect(vectors, query)
    coded_memory.delete(names("s", 30))
    assert set(find(coded_memory, late["s000"], limit=60)) == set(names("r", 60))
    assert (vector_faults(coded_memory), faults(db_path)) == ([], [])


def test_a_page_of_no_use_is_passed_over(coded_memory, rng):
    vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
    add(coded_memory, vectors.keys(), vectors.values())
    write(coded_memory, f"INSERT INTO code_page VALUES (1, {1 << 52}, 9000000000000000000, zeroblob(128), x'0011')")
    write(coded_memory, f"INSERT INTO code_page VALUES (1, 7, 9000000000000000000, x'{'ff' * 128}', zeroblob(8192))")
    write(coded_memory, "UPDATE code_index SET version = version + 1")
    for query in make_vectors(rng, 3):
        assert find(coded_memory, query) == expect(vectors, query)


@pytest.mark.parametrize(
    "values",
    ["(1, 0, 1, zeroblob(127), x'')", "(1, 0, 1, 'text', x'')", "(1, 'a', 1, zeroblob(128), x'')",
     "(1, 0, 1, zeroblob(128), 'text')", "(1, 9007199254740992, 1, zeroblob(128), x'')"],
)  # fmt: skip
def test_what_can_be_no_page_is_refused(coded_memory, values):
    with pytest.raises(Exception, match="CHECK constraint failed"):
        write(coded_memory, f"INSERT INTO code_page VALUES {values}")


def test_vectors_of_chunks_that_are_none_are_passed_over(coded_memory, rng, db_path):
    vectors = dict(zip(names("r", 60), make_vectors(rng, 60), strict=True))
    add(coded_memory, vectors.keys(), vectors.values())
    strange = ["'text'", "1.5", "x'00'", "9223372036854775807", "-7"]
    rows = ", ".join(f"({key}, 1, x'{vectors['r000'].tobytes().hex()}')" for key in strange)
    beside(db_path, f"INSERT INTO embedding(chunk_key, space_id, vector) VALUES {rows}")
    late = dict(zip(names("s", 40), make_vectors(rng, 40), strict=True))
    add(coded_memory, late.keys(), late.values())
    for query in list(vectors.values())[:5]:
        assert find(coded_memory, query, limit=100) == expect(vectors | late, query, 100)
