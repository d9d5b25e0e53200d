"""Both indexes can be made anew from what they follow from, while the file is in use."""

from __future__ import annotations

import pytest
from maintenance_support import fill, find_term, found
from store_support import beside, embedder, faults, use_small_index, vector_faults

from recall_core import Memory
from recall_core.errors import InvalidInputError
from recall_core.text import segmenter_version

SPOIL = (
    "UPDATE chunk SET latin = 'spoiled', grams = '', words = '', labels = '', tokens = 1",
    "UPDATE meta SET value = 'terms-0' WHERE key = 'segmenter'",
)


@pytest.fixture
def path(db_path):
    fill(db_path, 300)
    return db_path


# Keywords


def test_an_index_of_an_older_segmenter_is_made_anew(path):
    with Memory.open(path, embedder=embedder()) as memory:
        expected, spaces = found(memory), memory.stats().spaces
    beside(path, *SPOIL)
    with Memory.open(path, embedder=embedder()) as memory:
        assert "recall reindex" in memory.stats().notes[0]
        assert "recall reindex" in memory.check().problems[0].advice
        done = memory.reindex(vectors=False)
        assert (done.records, done.changed, done.vectors) == (300, 300, 0)
        assert found(memory) == expected
        assert (memory.stats().notes, memory.stats().segmenter) == ((), segmenter_version())
        assert (memory.stats().pending, memory.stats().spaces) == (0, spaces)
        assert memory.reindex(vectors=False).changed == 0
    assert faults(path) == []


def test_records_keep_their_chunks_and_vectors_without_a_model(db_path):
    with Memory.open(db_path, embedder=embedder()) as memory:
        memory.add("长长的文字。" * 400, id="long")
        chunks, spaces = memory.stats().chunks, memory.stats().spaces
        assert chunks > 1
    beside(db_path, *SPOIL)
    with Memory.open(db_path, embedder=None) as memory:
        assert memory.reindex().changed == 1
        assert (memory.stats().chunks, memory.stats().spaces, memory.stats().pending) == (chunks, spaces, 0)
    assert len(find_term(db_path, "文字")) == chunks


def test_records_of_other_programs_are_indexed_as_well(path):
    with Memory.open(path, embedder=None) as memory:
        beside(path, "INSERT INTO record(id, text) VALUES ('foreign', 'outside words')")
        memory.reindex()
    assert find_term(path, "outsid") == ["foreign"]


def test_just_some_records_may_be_chosen(path):
    beside(path, *SPOIL)
    with Memory.open(path, embedder=None) as memory:
        done = memory.reindex(where={"@id": {"$in": ["00003", "00010"]}})
        assert (done.records, done.changed, done.vectors) == (2, 2, 0)
        assert memory.stats().segmenter == "terms-0"
        assert memory.reindex(scope="elsewhere").records == 0
        with pytest.raises(InvalidInputError, match="leave scope and where out"):
            memory.reindex(words_only=True, scope="elsewhere")
    assert find_term(path, "note") == ["00003", "00010"]


def test_a_dry_run_counts_and_writes_nothing(path):
    beside(path, *SPOIL)
    with Memory.open(path, embedder=None) as memory:
        assert memory.reindex(dry_run=True).records == 300
        assert path.with_name("memory.db-wal").stat().st_size == 0


def test_an_interrupted_run_goes_on_where_it_ended(path, monkeypatch):
    monkeypatch.setattr("recall_core.reindexing.BATCH", 16)
    beside(path, *SPOIL)
    told = []

    def stop(done, total):
        told.append((done, total))
        if done >= 160:
            raise KeyboardInterrupt

    with Memory.open(path, embedder=None) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.reindex(progress=stop)
        assert told == [(done, 300) for done in range(16, 161, 16)]
        assert memory.stats().segmenter == "terms-0"
        memory.add("later", id="later")
    with Memory.open(path, embedder=None) as memory:
        assert memory.reindex().records == 141
        assert memory.stats().segmenter == segmenter_version()
        assert memory.reindex().records == 301
    assert len(find_term(path, "note")) == 300


def test_an_interrupted_run_begins_anew_if_the_dictionary_has_changed_since(path, monkeypatch):
    monkeypatch.setattr("recall_core.reindexing.BATCH", 16)

    def stop(done, total):
        raise KeyboardInterrupt

    with Memory.open(path, embedder=None) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.reindex(progress=stop)
        memory.add_words("灰度发布平台", reindex=False)
        assert memory.reindex().records == 300
        assert memory.stats().notes == ()
    assert len(find_term(path, "灰度发布平台")) == 30


def test_what_others_write_meanwhile_stays_as_they_wrote_it(path, monkeypatch):
    monkeypatch.setattr("recall_core.reindexing.BATCH", 16)
    beside(path, *SPOIL)
    with Memory.open(path, embedder=None) as memory, Memory.open(path, embedder=embedder()) as other:
        numbers = iter(range(299, 0, -7))

        def write(done, total):
            number = next(numbers)
            other.update(f"{number:05}", text=f"rewritten {number}")
            other.delete(f"{number - 3:05}")
            other.add(f"brand new {number}")
            assert other.search("note", limit=3, mode="semantic")

        memory.reindex(progress=write)
        written = 299 - next(numbers)
        assert other.flush() == 0
        assert vector_faults(other) == []
        assert len(other.search("rewritten", mode="keyword", limit=100)) == written // 7
    assert faults(path) == []


# Vectors


def test_codes_are_made_anew_from_the_vectors(path, monkeypatch):
    use_small_index(monkeypatch)
    with Memory.open(path, embedder=embedder()) as memory:
        memory.add_many({"text": f"more {number}"} for number in range(1000))
        assert memory.stats().vector_index == "codes"
        expected = found(memory)
    beside(path, "UPDATE code_page SET codes = zeroblob(length(codes))", "DELETE FROM code_page WHERE number = 0")
    with Memory.open(path, embedder=embedder()) as memory:
        told = []
        done = memory.reindex(keywords=False, progress=lambda *now: told.append(now))
        assert (done.records, done.vectors, told[-1]) == (0, 1300, (1300, 1300))
        assert vector_faults(memory) == []
        assert found(memory) == expected
        memory.delete([record.id for record in memory.records(limit=1300)])
        memory.reindex(keywords=False)
        assert vector_faults(memory) == []


def test_codes_with_a_centre_that_cannot_be_read_are_made_with_another(path, monkeypatch):
    use_small_index(monkeypatch)
    with Memory.open(path, embedder=embedder()) as memory:
        memory.add("one more")
        assert memory.stats().vector_index == "codes"
        expected = found(memory)
    beside(path, "UPDATE code_index SET centre = x'00'")
    with Memory.open(path, embedder=embedder()) as memory:
        memory.reindex(keywords=False)
        with memory._engine.store.database.read() as connection:
            assert connection.execute("SELECT length(centre) FROM code_index").fetchall() == [(64,)]
        assert vector_faults(memory) == []
        assert found(memory) == expected


def test_a_process_that_holds_the_codes_follows(path, monkeypatch):
    use_small_index(monkeypatch)
    with Memory.open(path, embedder=embedder()) as memory, Memory.open(path, embedder=embedder()) as other:
        memory.add("one more")
        expected = found(other)
        memory.reindex(keywords=False)
        assert found(other) == expected
        memory.delete([f"{number:05}" for number in range(290)])
        memory.reindex(keywords=False)
        assert {hit.record.id for hit in other.search("note 295", limit=20, mode="semantic")} >= {"00295", "00291"}
