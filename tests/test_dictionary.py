"""The user dictionary lives in the file; a word that comes or goes concerns just the records that hold it."""

from __future__ import annotations

import asyncio
import logging
import subprocess

import pytest
from maintenance_support import changed_ids, fill, find_term, last_change
from store_support import beside, faults, run_python
from support import HashedEmbedder

from recall_core import AsyncMemory, Memory, Settings
from recall_core.errors import InvalidInputError

WORD = "灰度发布平台"
CONCERNED = {"00000", "00010", "00020"}


@pytest.fixture
def path(db_path):
    fill(db_path, 30)
    return db_path


def open_memory(path):
    return Memory.open(path, embedder=HashedEmbedder(16))


def test_a_new_word_is_one_term_afterwards_and_only_the_records_that_hold_it_are_indexed_again(path):
    assert find_term(path, WORD) == []
    with open_memory(path) as memory:
        since = last_change(memory)
        done = memory.add_words(WORD)
        assert (done.added, done.records, done.changed) == ((WORD,), 3, 3)
        assert changed_ids(memory, since) == CONCERNED
        assert memory.stats().pending == 0
        hits = memory.search(WORD, mode="keyword", limit=10)
        assert {hit.record.id for hit in hits} == CONCERNED
    assert find_term(path, WORD) == sorted(CONCERNED)
    assert faults(path) == []


def test_vectors_and_the_rest_of_the_records_stay(path):
    with open_memory(path) as memory:
        before = memory.records(), memory.stats().spaces
        memory.add_words([WORD, "note"])
        assert (memory.records(), memory.stats().spaces) == before
        assert memory.stats().pending == 0


def test_a_word_that_goes_is_no_term_any_more(path):
    with open_memory(path) as memory:
        memory.add_words([WORD, "项目"])
        done = memory.remove_words([WORD, "unknown"])
        assert (done.removed, done.records) == ((WORD,), 3)
        assert memory.words() == ["项目"]
    assert find_term(path, WORD) == []


def test_a_word_in_tags_metadata_or_the_name_of_the_speaker_concerns_a_record(db_path):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add("a", id="tag", tags=[f"关于{WORD}"])
        memory.add("b", id="metadata", metadata={"about": [f"关于{WORD}"]})
        memory.add("c", id="source", source=f"关于{WORD}")
        memory.add("d", id="role", role=f"关于{WORD}")
        memory.add("e", id="none", payload=WORD, session=WORD)
        assert memory.add_words(WORD).records == 4
    assert find_term(db_path, WORD) == ["metadata", "role", "source", "tag"]


@pytest.mark.parametrize("word", ["Project Heron", "project  heron", "ＰＲＯＪＥＣＴ heron"])
def test_a_word_is_found_in_older_records_however_it_is_written(db_path, word):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add("the PROJECT\n heron ships", id="a")
        memory.add("a projection of herons", id="b")
        assert memory.add_words(word).records == 1
    assert find_term(db_path, "project_heron") == ["a"]


def test_words_may_be_left_for_later(path, caplog):
    with open_memory(path) as memory:
        done = memory.add_words([WORD, "上线"], reindex=False)
        assert (done.added, done.records) == ((WORD, "上线"), 0)
        assert "indexed: 2." in memory.stats().notes[0]
        assert [problem.advice[-22:] for problem in memory.check().problems] == ["recall reindex --words"]
        assert memory.reindex(words_only=True, dry_run=True).records == 3
        assert memory.add("新的灰度发布平台", id="new").id == "new"
    assert find_term(path, WORD) == ["new"]
    with open_memory(path) as memory:
        assert memory.reindex(words_only=True).records == 4
        assert (memory.stats().notes, memory.check().problems) == ((), ())
        assert memory.reindex(words_only=True).records == 0
    assert find_term(path, WORD) == ["00000", "00010", "00020", "new"]


def test_words_of_the_settings_are_left_for_later_with_a_warning(path, caplog):
    with caplog.at_level(logging.WARNING), Memory.open(path, embedder=None, settings=Settings(dictionary=(WORD,))) as m:
        assert "recall reindex --words" in caplog.text
        caplog.clear()
        assert m.reindex(words_only=True).records == 3
    with Memory.open(path, embedder=None, settings=Settings(dictionary=(WORD,))):
        assert caplog.text == ""


def test_opening_with_words_that_are_there_writes_nothing(path):
    with Memory.open(path, embedder=None) as memory:
        memory.add_words(WORD)
    before = path.read_bytes()
    with Memory.open(path, embedder=None, settings=Settings(dictionary=(WORD,))):
        assert not path.with_name("memory.db-wal").stat().st_size
    assert path.read_bytes() == before


def test_an_empty_memory_takes_words_without_a_note(db_path):
    with Memory.open(db_path, embedder=None) as memory:
        assert memory.add_words([WORD, WORD, " a  b "]).added == (WORD, "a b")
        assert memory.words() == ["a b", WORD]
        assert memory.stats().notes == ()


@pytest.mark.parametrize("words", ["", "  ", [""], [1], 5, None, ["x" * 513]])
def test_what_is_no_word_is_refused(db_path, words):
    with Memory.open(db_path, embedder=None) as memory:
        with pytest.raises(InvalidInputError, match="word"):
            memory.add_words(words)
        assert memory.words() == []


# Several who have the file open


def test_who_has_the_file_open_uses_a_new_word_at_once(path):
    with open_memory(path) as memory, open_memory(path) as other:
        other.add(f"before {WORD}", id="before")
        memory.add_words(WORD)
        other.add(f"after {WORD}", id="after")
        other.update("00001", text=f"changed {WORD}")
        assert other.words() == [WORD]
        found = other.search(WORD, mode="keyword", limit=20)
        assert {hit.record.id for hit in found} == CONCERNED | {"before", "after", "00001"}
    assert find_term(path, WORD) == sorted(CONCERNED | {"before", "after", "00001"})


def test_another_process_that_has_the_file_open_indexes_by_a_new_word(path):
    code = """
import sys
from recall_core import Memory
with Memory.open(sys.argv[1], embedder=None) as memory:
    memory.add("热身")
    print("open", flush=True)
    sys.stdin.readline()
    memory.add("另一个灰度发布平台", id="late")
    print([hit.record.id for hit in memory.search("灰度发布平台", mode="keyword", limit=1)], flush=True)
"""
    worker = run_python(["-c", code, str(path)], stdin=subprocess.PIPE)
    assert worker.stdout.readline() == "open\n"
    with open_memory(path) as memory:
        memory.add_words(WORD)
    out, err = worker.communicate("go\n", timeout=60)
    assert (out, err) == ("['late']\n", "")
    assert find_term(path, WORD) == [*sorted(CONCERNED), "late"]


def test_a_text_that_was_prepared_before_a_word_came_is_stored_with_it(path, monkeypatch):
    with open_memory(path) as memory, open_memory(path) as other:
        prepare = memory._engine.indexer.prepare

        def prepare_slowly(record):
            chunks = prepare(record)
            other.add_words(WORD)
            return chunks

        monkeypatch.setattr(memory._engine.indexer, "prepare", prepare_slowly)
        memory.add(f"slow {WORD}", id="slow")
        memory.update("00003", text=f"slow too {WORD}")
    assert find_term(path, WORD) == sorted(CONCERNED | {"slow", "00003"})


def test_a_record_of_another_program_is_indexed_by_the_words_of_the_file(path):
    with open_memory(path) as memory:
        with open_memory(path) as other:
            other.add_words(WORD)
        beside(path, f"INSERT INTO record(id, text) VALUES ('foreign', '{WORD}')")
        memory.flush()
    assert "foreign" in find_term(path, WORD)


def test_a_change_that_is_rolled_back_is_no_change(path):
    with open_memory(path) as memory:

        def change_and_fail():
            with memory._engine.store.records.transaction():
                memory.add_words(WORD, reindex=False)
                assert memory.words() == [WORD]
                raise KeyError

        with pytest.raises(KeyError):
            change_and_fail()
        assert memory.words() == []
        memory.add(WORD, id="after")
    assert find_term(path, WORD) == []


def test_words_that_change_while_records_are_indexed_by_others_are_taken_up(path):
    with open_memory(path) as memory, open_memory(path) as other:
        told = []

        def tell(done, total):
            if not told:
                other.add_words("上线", reindex=False)
            told.append((done, total))

        memory.add_words(WORD, progress=tell)
        assert memory.stats().notes == ()
    assert find_term(path, "上线") == find_term(path, WORD) == sorted(CONCERNED)


def test_an_interrupted_change_is_finished_by_the_same_call(path, monkeypatch):
    monkeypatch.setattr("recall_core.reindexing.BATCH", 8)
    with open_memory(path) as memory:

        def stop(done, total):
            if done > 10:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            memory.add_words(WORD, progress=stop)
    assert 0 < len(find_term(path, WORD)) < 3
    with open_memory(path) as memory:
        done = memory.add_words(WORD)
        assert (done.added, done.records) == ((), 1)
    assert find_term(path, WORD) == sorted(CONCERNED)


def test_words_can_be_changed_asynchronously(path):
    async def work():
        async with await AsyncMemory.open(path, embedder=None) as memory:
            done = await memory.add_words(WORD)
            assert (done.records, await memory.words()) == (3, [WORD])
            assert (await memory.remove_words(WORD)).records == 3
            assert (await memory.reindex()).records == 30

    asyncio.run(work())
