"""What CrewAI's storage protocol asks for: the checks of the conformance drive, over each way to make a storage."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import datetime, timedelta

import numpy as np
import pytest
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend
from crewai.memory.types import MemoryRecord
from crews import EMBED, make_record
from stores import STORAGES

from recall_core.errors import InvalidInputError

KAMAL = "/crew/s/user/kamal"


@pytest.fixture(params=STORAGES.values(), ids=STORAGES)
def make(request, tmp_path, opened):
    def make():
        storage = request.param(tmp_path)
        opened.append(storage)
        return storage

    return make


@pytest.fixture
def storage(make):
    return make()


@pytest.fixture
def records(storage):
    records = [
        make_record(
            "the user loves sushi", KAMAL, categories=["food", "pref"], importance=0.9, metadata={"lang": "en"}
        ),
        make_record("the user writes python", KAMAL, categories=["tech"], metadata={"lang": "en"}),
        make_record("the user lives by the sea", KAMAL, categories=["place"], metadata={"lang": "fr"}),
        make_record("priya loves sushi", "/crew/s/user/priya", categories=["food"]),
        make_record("company policy remote work allowed", "/company", categories=["policy"]),
    ]
    storage.save(records)
    return records


def ago(**arguments):
    return datetime.utcnow() - timedelta(**arguments)


def test_it_is_a_storage_backend(storage):
    assert isinstance(storage, StorageBackend)


def test_a_record_comes_back_as_it_was_saved_with_naive_times_and_its_vector(storage):
    record = make_record(
        "hello", "/a/b", categories=["x"], importance=0.7, metadata={"k": 1, "n": {"z": [1, "二"]}}, source="u1",
        private=True, created_at=ago(days=3), last_accessed=ago(days=2),
    )  # fmt: skip
    storage.save([record])
    found = storage.get_record(record.id)
    assert found.model_dump() == record.model_dump()
    assert found.embedding == pytest.approx(record.embedding, abs=1e-6)
    ((searched, _),) = storage.search(record.embedding)
    assert (searched.model_dump(), searched.embedding) == (record.model_dump(), found.embedding)


def test_no_record_is_none(storage):
    assert storage.get_record("nope") is None
    assert storage.get_record("x' OR 1=1 --") is None


def test_an_empty_storage_holds_nothing(storage):
    assert storage.search(EMBED(["x"])[0]) == []
    assert (storage.count(), storage.list_records(), storage.list_scopes("/")) == (0, [], [])
    assert (storage.list_categories(), storage.delete(record_ids=["q"])) == ({}, 0)
    storage.reset()
    storage.save([])


def test_an_update_replaces_text_and_vector(storage):
    record = make_record("first version", "/a")
    storage.save([record])
    storage.update(
        record.model_copy(update={"content": "second", "importance": 0.99, "embedding": EMBED(["second"])[0]})
    )
    found, score = storage.search(EMBED(["second"])[0])[0]
    assert (found.id, found.content, found.importance) == (record.id, "second", 0.99)
    assert (score, storage.count()) == (pytest.approx(1.0), 1)


def test_an_update_of_what_is_not_there_saves_it(storage):
    storage.update(make_record("new", "/a"))
    assert storage.count("/a") == 1


def test_saving_an_id_again_replaces_the_record_also_in_another_scope(storage):
    record = make_record("dup", "/a")
    storage.save([record, record])
    storage.save([record.model_copy(update={"scope": "/b", "categories": ["x"]})])
    assert (storage.count(), storage.count("/b"), storage.get_record(record.id).categories) == (1, 1, ["x"])


def test_a_save_with_a_record_that_can_not_be_stored_stores_nothing(storage, records):
    before = [record.model_dump() for record in storage.list_records()]
    changed = records[0].model_copy(update={"content": "the user loves pizza"})
    too_long = records[1].model_copy(update={"content": "x" * 1_000_001})
    with pytest.raises(InvalidInputError):
        storage.save([make_record("new"), changed, too_long])
    assert [record.model_dump() for record in storage.list_records()] == before


@pytest.mark.parametrize("vector", [None, [], [0.0] * 64], ids=["none", "empty", "zeros"])
def test_a_record_needs_no_vector(storage, vector):
    record = make_record("no vector", "/a", embedding=vector)
    storage.save([record])
    assert (storage.count(), storage.get_record(record.id).content) == (1, "no vector")
    assert storage.search([0.0] * 64) == []


def test_records_are_deleted_by_id(storage, records):
    assert storage.delete(record_ids=[records[0].id, records[1].id]) == 2
    assert storage.count() == 3
    assert storage.delete(record_ids=[]) == storage.delete(categories=[]) == 0


def test_all_that_a_deletion_asks_for_has_to_hold(storage, records):
    storage.save([make_record("root fact"), make_record("ancient", KAMAL, created_at=ago(days=400))])
    assert storage.delete(scope_prefix=KAMAL, older_than=ago(days=30)) == 1
    assert (storage.count(KAMAL), storage.count()) == (3, 6)
    assert storage.delete(scope_prefix="/company", record_ids=[records[0].id]) == 0
    assert storage.delete(categories=["food"], record_ids=[records[1].id]) == 0
    assert storage.delete(scope_prefix="/crew", categories=["tech"]) == 1
    assert storage.delete(scope_prefix="/crew", metadata_filter={"lang": "fr"}) == 1
    assert storage.delete(scope_prefix="/company") == 1
    assert {record.content for record in storage.list_records()} == {
        "root fact", "the user loves sushi", "priya loves sushi"
    }  # fmt: skip


def test_a_scope_is_a_path_not_a_prefix(storage):
    storage.save([make_record(path, path) for path in ("/a", "/ab", "/a-x", "/a/c", "/a_b", "/aXb")])
    counts = [storage.count(path) for path in ("/a", "/ab", "/", None, "/a/", "a", "//a", "/a_b")]
    assert counts == [2, 1, 6, 6, 2, 2, 2, 1]
    found = storage.search(EMBED(["a"])[0], scope_prefix="/a", limit=10)
    assert {record.scope for record, _ in found} <= {"/a", "/a/c"}
    storage.reset("/a")
    assert storage.count() == 4


def test_any_text_is_a_scope(storage):
    paths = ["/o'brien/100%", "/用户/小明", "/研究团队", "/..", "/*", "/a/./b", "/tab\there", "/%2F"]
    storage.save([make_record(path, path) for path in paths])
    assert {record.scope for record in storage.list_records()} == set(paths)
    assert [storage.count(path) for path in paths] == [1] * len(paths)
    assert storage.list_scopes("/用户") == ["/用户/小明"]
    assert storage.delete(scope_prefix="/o'brien/100%") == 1


def test_scopes_and_categories_are_listed(storage, records):
    assert storage.list_scopes("/") == ["/company", "/crew"]
    assert storage.list_scopes("/crew/s/user") == [KAMAL, "/crew/s/user/priya"]
    assert storage.list_scopes("/none") == []
    assert storage.list_categories() == {"food": 2, "pref": 1, "tech": 1, "place": 1, "policy": 1}
    assert storage.list_categories("/company") == {"policy": 1}
    info = storage.get_scope_info("/crew/s/user/")
    assert (info.path, info.record_count, info.child_scopes) == ("/crew/s/user", 4, [KAMAL, "/crew/s/user/priya"])
    assert info.categories == ["food", "place", "pref", "tech"]
    times = sorted(record.created_at for record in records[:4])
    assert (info.oldest_record, info.newest_record) == (times[0], times[-1])
    assert storage.get_scope_info("/none").model_dump(exclude={"path"}) == {
        "record_count": 0, "categories": [], "oldest_record": None, "newest_record": None, "child_scopes": []
    }  # fmt: skip


def test_records_are_listed_by_when_they_were_made(storage):
    storage.save([make_record(f"r{age}", "/x", created_at=ago(minutes=age)) for age in (3, 1, 4, 0, 2)])
    storage.update(storage.list_records()[-1].model_copy(update={"importance": 0.9}))
    assert [record.content for record in storage.list_records("/x", limit=2)] == ["r0", "r1"]
    assert [record.content for record in storage.list_records("/x", limit=9, offset=2)] == ["r2", "r3", "r4"]


def test_a_search_is_ordered_by_similarity_and_filtered(storage, records):
    query = EMBED(["sushi user loves"])[0]
    found = storage.search(query, scope_prefix=KAMAL, limit=3)
    scores = [score for _, score in found]
    assert found[0][0].content == "the user loves sushi"
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert storage.search(EMBED(["the user loves sushi"])[0], limit=1)[0][1] == pytest.approx(1.0, abs=1e-5)
    assert len(storage.search(query, categories=["food"])) == 2
    assert len(storage.search(query, categories=[])) == 5
    assert len(storage.search(query, metadata_filter={"lang": "en"})) == 2
    assert len(storage.search(query, limit=2)) == 2
    assert storage.search(query, limit=0) == storage.search(query, min_score=0.9999) == []
    assert storage.search(query, scope_prefix="/none") == []


def test_metadata_of_any_shape_is_compared(storage):
    metadata = {"@id": "x", "list": [1, 2], "deep": {"a": None}, "none": None, "when": datetime(2026, 1, 1), "ok": True}
    storage.save([make_record("a", metadata=metadata), make_record("b", metadata={"list": [1]})])
    query = EMBED(["a"])[0]
    for key, value in metadata.items():
        found = storage.search(query, metadata_filter={key: value})
        assert [record.content for record, _ in found] == (["a", "b"] if value is None else ["a"]), key
    assert storage.delete(metadata_filter={"list": [1, 2], "@id": "x"}) == 1


def test_what_a_filter_wants_is_not_crowded_out(storage):
    many = [make_record(f"common words number {number}", "/big", categories=["bulk"]) for number in range(300)]
    storage.save([*many, make_record("totally different needle", "/big", categories=["rare"])])
    assert len(storage.search(EMBED(["common words number"])[0], categories=["rare"], limit=5)) == 1


def test_touching_changes_the_time_of_access_alone(storage):
    record = make_record("touch", "/t", last_accessed=ago(days=1))
    storage.save([record])
    time.sleep(0.01)
    storage.touch_records([record.id, "unknown"])
    found = storage.get_record(record.id)
    assert found.last_accessed > record.last_accessed + timedelta(hours=23)
    assert found.model_dump(exclude={"last_accessed"}) == record.model_dump(exclude={"last_accessed"})


def test_a_vector_of_another_length_is_refused_and_nothing_stored(storage):
    storage.save([make_record("dim", "/d")])
    with pytest.raises(EmbeddingDimensionMismatchError) as caught:
        storage.save([make_record("good", "/d"), MemoryRecord(content="bad", embedding=[1.0, 2.0, 3.0])])
    assert (caught.value.stored_dim, caught.value.new_dim) == (64, 3)
    assert storage.count() == 1
    with pytest.raises(EmbeddingDimensionMismatchError):
        storage.search([1.0, 2.0, 3.0])
    with pytest.raises(EmbeddingDimensionMismatchError):
        storage.update(storage.list_records()[0].model_copy(update={"embedding": [1.0, 2.0]}))


def test_vectors_may_be_arrays_as_embedders_make_them(storage):
    record = make_record("the user loves sushi", KAMAL)
    vector = np.array(record.embedding, np.float32)
    storage.save([record.model_copy(update={"embedding": vector})])
    storage.update(record.model_copy(update={"embedding": vector, "content": "the user loves ramen"}))
    ((found, score),) = storage.search(vector)
    assert (found.content, round(score, 3)) == ("the user loves ramen", 1.0)


def test_threads_may_share_a_storage(storage):
    failed = []

    def work(number):
        try:
            for place in range(10):
                storage.save([make_record(f"t{number} i{place}", f"/th/{number}")])
                storage.search(EMBED(["t"])[0], scope_prefix=f"/th/{number}", limit=3)
                storage.list_scopes("/th")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failed, storage.count("/th")) == ([], 60)


def test_the_async_methods_do_the_same(storage):
    async def run():
        record = make_record("async fact", "/as")
        await storage.asave([record])
        ((found, score),) = await storage.asearch(EMBED(["async fact"])[0], scope_prefix="/as")
        assert (found.id, score) == (record.id, pytest.approx(1.0))
        assert await storage.adelete(record_ids=[record.id]) == 1

    asyncio.run(run())


def test_a_second_storage_on_the_file_sees_what_the_first_stored(storage, make):
    record = make_record("durable", "/p")
    storage.save([record])
    storage.close()
    assert make().search(EMBED(["durable"])[0])[0][0].id == record.id
