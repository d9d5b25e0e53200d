"""Damage to what is derived is named, and repair makes it again from the truth: searches find what they did before."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest
from damage_support import HARMS, fill, given, harm, now, open_memory, read, results, run_sql, truth
from hypothesis import strategies
from maintenance_support import Killer
from store_support import beside, faults, release, start, use_small_index

from recall_core import Memory
from recall_core.integrity import examine_file, repair_file
from recall_core.store import open_store
from recall_core.store.integrity import MemoryAccess, keyword_index
from recall_core.terms import describe_spans

BOTH = ("small", "large")


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """Return a file for each way of searching, with what searches find in it."""
    made = {}
    for scale in BOTH:
        path = tmp_path_factory.mktemp(scale) / "memory.db"
        with pytest.MonkeyPatch.context() as patch:
            if scale == "large":
                use_small_index(patch)
            fill(path)
            made[scale] = (path, results(path))
    return made


@pytest.fixture
def damaged(bases, request, monkeypatch, db_path):
    """Return a copy of the file to damage, and what searches found in it."""
    if request.param == "large":
        use_small_index(monkeypatch)
    base, found = bases[request.param]
    shutil.copy(base, db_path)
    return db_path, found


def kinds(path):
    damages, complete = examine_file(str(path), 5, now)
    assert complete
    return {damage.kind for damage in damages}


def repair(path):
    """Repair a file as the command does: what keeps it from being opened first."""
    try:
        memory = open_memory(path)
    except Exception:
        repair_file(str(path), 5, now)
        memory = open_memory(path)
    with memory:
        return memory.repair()


def assert_as_before(path, found, before):
    assert results(path) == found
    assert truth(path) == before
    assert faults(path) == []
    with open_memory(path) as memory:
        assert memory.check().problems == ()


CASES = [(scale, name) for scale in BOTH for name, one in HARMS.items() if not one.needs_codes or scale == "large"]


@pytest.mark.parametrize(("damaged", "name"), CASES, indirect=["damaged"], ids=[f"{s}: {n}" for s, n in CASES])
def test_damage_is_named_and_repaired(damaged, name):
    path, found = damaged
    before = truth(path)
    harm(path, *HARMS[name].statements)
    assert kinds(path) >= set(HARMS[name].kinds)
    repaired = repair(path)
    assert repaired.left == ()
    assert kinds(path) == set()
    assert_as_before(path, found, before)


COMPATIBLE = sorted(set(HARMS) - {"the schema version is too low", "the schema version is none"})


@hypothesis.settings(max_examples=8)
@hypothesis.given(names=strategies.lists(strategies.sampled_from(COMPATIBLE), min_size=2, max_size=5, unique=True))
def test_damage_of_several_kinds_is_repaired(bases, names):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        use_small_index(patch)
        base, found = bases["large"]
        path = Path(shutil.copy(base, folder))
        before = truth(path)
        done = [name for name in names if try_harm(path, name)]
        repaired = repair(path)
        assert repaired.left == (), done
        assert_as_before(path, found, before)


def try_harm(path, name):
    """Do damage that may need what other damage has taken away."""
    try:
        harm(path, *HARMS[name].statements)
    except sqlite3.DatabaseError:
        return False
    return True


@pytest.mark.parametrize("damaged", ["small"], indirect=True)
def test_a_dry_run_says_what_would_be_done_and_does_nothing(damaged):
    path, _ = damaged
    harm(path, *HARMS["chunks are gone"].statements)
    with open_memory(path) as memory:
        before = read(path, "SELECT count(*) FROM chunk")
        plan = memory.repair(dry_run=True)
        assert plan.dry_run
        assert any("records lack chunks" in line for line in plan.done)
        assert read(path, "SELECT count(*) FROM chunk") == before
        assert [damage.kind for damage in memory.check().damages] == ["chunk-missing"]


@pytest.mark.parametrize("damaged", ["small"], indirect=True)
def test_repair_of_a_sound_file_changes_nothing(damaged):
    path, _ = damaged
    with open_memory(path) as memory:
        version = memory._engine.store.database.version()
        repaired = memory.repair()
        assert (repaired.done, repaired.left, repaired.pending) == ((), (), 0)
        assert memory._engine.store.database.version() == version


@pytest.mark.parametrize("damaged", ["small"], indirect=True)
def test_each_step_of_a_repair_is_told(damaged):
    path, _ = damaged
    harm(
        path,
        *HARMS["some rows of the keyword index are gone"].statements,
        "INSERT INTO pending VALUES (6666,0,0,'',NULL,0)",
    )
    told = []
    with open_memory(path) as memory:
        assert memory.repair(progress=told.append).done == tuple(told)
    assert told == ["made the keyword index anew from the chunks", "let 1 chunks that are gone wait no more"]


def test_a_repair_judges_each_text_once_and_again_only_those_that_were_made_anew(db_path, monkeypatch):
    with open_memory(db_path) as memory:
        memory.add_many({"text": f"note {number}", "id": str(number)} for number in range(10))
    harm(
        db_path,
        "UPDATE chunk SET latin = 'spoiled' WHERE record_key IN (SELECT key FROM record WHERE id IN ('3', '7'))",
    )
    monkeypatch.setattr("recall_core.integrity.MARKED", 1)
    judged = []

    def note(record, *arguments):
        judged.append(record.id)
        return describe_spans(record, *arguments)

    with open_memory(db_path) as memory:
        monkeypatch.setattr("recall_core.integrity.describe_spans", note)
        done = memory.repair()
    assert (done.done[-1], done.left) == ("cut and segmented 2 records anew", ())
    assert sorted(judged) == sorted([*map(str, range(10)), "3", "7"])


def test_a_memory_in_ram_is_examined_and_repaired():
    with open_memory(":memory:") as memory:
        memory.add("Rockets fly")
        with memory._engine.store.database.write() as connection:
            connection.execute("INSERT INTO chunk_fts(rowid, latin) VALUES (99, 'moon')")
            connection.execute("INSERT INTO pending(chunk_key) SELECT key FROM chunk")
        assert {damage.kind for damage in memory.check().damages} >= {"keyword-orphan", "pending-settled"}
        assert memory.repair().left == ()
        assert memory.check().problems == ()


def test_vectors_that_callers_brought_stay_where_a_record_is_cut_anew(db_path):
    with open_memory(db_path) as memory:
        text = "The first sentence is here. The second one is not far away. And then there is a third."
        memory.add(text, id="one", vector=[1.0] * 16)
        memory.add(text, id="two", vector=[1.0] * 8, space="host")
    before = given(db_path)
    harm(db_path, "UPDATE chunk SET start = start + 1, hash = x'00'")
    with open_memory(db_path) as memory:
        assert memory.repair().left == ()
        assert memory.check().damages == ()
    assert given(db_path) == before


def test_what_other_processes_wrote_behind_the_triggers_is_indexed(db_path):
    with open_memory(db_path) as memory:
        memory.add("Rockets fly", id="one", vector=[1.0] * 16)
    before = given(db_path)
    harm(db_path, "@drop 'record'", "UPDATE record SET text = 'Ships swim'", "@restore")
    with open_memory(db_path) as memory:
        assert [hit.record.id for hit in memory.search("ships", mode="keyword")] == []
        assert [damage.kind for damage in memory.check().damages] == ["chunk-wrong"]
        assert memory.check().damages[0].records == ("one",)
        memory.repair()
        assert [hit.record.id for hit in memory.search("ships", mode="keyword")] == ["one"]
    assert given(db_path) == before


def test_the_words_of_the_dictionary_count_among_what_chunks_hold(db_path):
    with open_memory(db_path) as memory:
        memory.add("灰度发布平台上线了", id="one")
        memory.add("Rockets fly", id="two")
    run_sql(db_path, "INSERT INTO dictionary VALUES ('灰度发布平台')")
    with open_memory(db_path) as memory:
        (damage,) = memory.check().damages
        assert (damage.kind, damage.records) == ("chunk-wrong", ("one",))
        assert memory.repair().left == ()


def test_terms_of_another_segmenter_are_no_damage(db_path):
    with open_memory(db_path) as memory:
        memory.add("Rockets fly")
    run_sql(db_path, "UPDATE meta SET value = 'terms-0' WHERE key = 'segmenter'", "UPDATE chunk SET latin = 'rocket'")
    with open_memory(db_path) as memory:
        assert memory.check().damages == ()


def test_new_chunks_never_get_the_vectors_of_old_ones(db_path):
    with open_memory(db_path) as memory:
        memory.add_many([{"text": "Rockets fly", "id": "one"}, {"text": "Ships swim", "id": "two"}])
    run_sql(db_path, "DROP TABLE chunk")
    with open_memory(db_path) as memory:
        assert memory.repair().left == ()
        assert read(db_path, "SELECT min(key) FROM chunk")[0][0] > 2
        memory.flush()
        hits = memory.search("Ships swim", mode="semantic")
        assert hits[0].record.id == "two"


@pytest.mark.parametrize("damaged", BOTH, indirect=True)
def test_a_table_of_chunks_that_is_gone_is_made_again(damaged):
    path, found = damaged
    run_sql(path, "DELETE FROM embedding WHERE given")
    before = truth(path)
    run_sql(path, "DROP TABLE chunk")
    assert "table-missing" in kinds(path)
    assert repair(path).left == ()
    assert_as_before(path, results(path), before)
    keyword = {key: value for key, value in found.items() if key[0] == "keyword"}
    assert {key: value for key, value in results(path).items() if key[0] == "keyword"} == keyword


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9 and no fork")
@pytest.mark.parametrize("damaged", ["large"], indirect=True)
def test_a_repair_that_is_killed_is_finished_by_the_next(damaged, tmp_path):
    path, found = damaged
    before = truth(path)
    for name in (
        "the keyword index is gone",
        "chunks are gone and what hung on them is left",
        "pages of codes are gone",
        "chunks wait for nothing",
        "indexes are gone",
    ):
        assert try_harm(path, name)
    killed = 0
    with Killer("repair") as killer:
        _, moments = killer.run(Path(shutil.copy(path, tmp_path / "whole.db")))
        assert moments >= 20
        for number in range(10):
            copy = Path(shutil.copy(path, tmp_path / f"{number}.db"))
            killed += killer.run(copy, 1 + number * (moments - 1) // 9)[0]
            assert repair(copy).left == ()
            assert_as_before(copy, found, before)
    assert killed >= 5  # the last moments may not come again


@pytest.mark.parametrize("damaged", ["small"], indirect=True)
def test_others_may_write_while_a_file_is_repaired(damaged):
    path, _ = damaged
    harm(path, *HARMS["some rows of the keyword index are gone"].statements)
    with open_memory(path) as memory, Memory.open(path, embedder=None) as other:
        wrote = []

        def write(line):
            wrote.append(other.add(f"told while repairing: {line}").id)
            beside(path, "INSERT INTO record(text) VALUES ('written beside')")

        assert memory.repair(progress=write).left == ()
        memory.flush()
        assert memory.check().problems == ()
        assert {record.id for record in memory.get(wrote)} == set(wrote)
        assert [hit.record.text for hit in memory.search("written beside", mode="keyword", limit=1)] == [
            "written beside"
        ]


@pytest.mark.parametrize("damaged", ["small"], indirect=True)
def test_what_others_write_while_the_keyword_index_is_made_anew_is_in_it(damaged, monkeypatch):
    path, _ = damaged
    monkeypatch.setattr(keyword_index, "BATCH", 7)
    turns = itertools.count()

    class Shared(MemoryAccess):
        """Another process writes before each transaction."""

        def write(self):
            turn = next(turns)
            if turn:
                beside(
                    path,
                    f"INSERT INTO chunk(record_key, place, start, stop, tokens, hash, latin, grams, words, labels) "
                    f"VALUES (1, {turn + 9}, 0, 1, 1, x'33', 'turn{turn}', '', '', '')",
                    f"DELETE FROM chunk WHERE key IN ({turn * 5}, {100 - turn})",
                    f"UPDATE chunk SET latin = 'changed' WHERE key IN ({turn * 7 + 1}, {turn})",
                    "INSERT INTO chunk(key, record_key, place, start, stop, tokens, hash, latin, grams, words, labels)"
                    f" VALUES ({-turn}, 1, {turn + 99}, 0, 1, 1, x'34', 'early{turn}', '', '', '')",
                )
            return super().write()

    with Memory.open(path, embedder=None) as memory:
        keyword_index.rebuild(Shared(memory._engine.store.database))
        assert next(turns) > 12
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO chunk_fts(chunk_fts, rank) VALUES ('integrity-check', 1)")
        names = connection.execute("SELECT name FROM sqlite_master WHERE name GLOB 'new_*'").fetchall()
        assert names == []


@pytest.mark.parametrize("damaged", ["small"], indirect=True)
def test_making_the_keyword_index_anew_goes_on_where_it_ended(damaged, monkeypatch):
    path, found = damaged
    before = truth(path)
    monkeypatch.setattr(keyword_index, "BATCH", 7)
    monkeypatch.setattr(keyword_index, "_add_batch", lambda access: 1 / 0)
    with Memory.open(path, embedder=None) as memory, pytest.raises(ZeroDivisionError):
        keyword_index.rebuild(MemoryAccess(memory._engine.store.database))
    monkeypatch.undo()
    with open_memory(path) as memory:
        memory.add("written meanwhile", id="new")
        memory.delete(["new"], hard=True)
    assert kinds(path) == {"keyword-unfinished"}
    assert repair(path).done == ("made the keyword index anew from the chunks",)
    assert_as_before(path, found, before)


def test_what_others_are_writing_is_no_damage(db_path):
    Memory.open(db_path, embedder=None).close()
    workers = [start("bulk", db_path, number) for number in range(2)]
    try:
        release(db_path, *workers)
        found = set()
        while len(read(db_path, "SELECT key FROM record WHERE key > 1500 LIMIT 1")) < 1:
            found |= kinds(db_path)
        assert all(worker.poll() is None for worker in workers)
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert found <= {"lease-stale"}  # as after a kill, or if a worker is held up for so long
    assert kinds(db_path) <= {"lease-stale"}


def test_a_file_that_cannot_be_opened_for_its_index_is_repaired(db_path):
    with open_memory(db_path) as memory:
        memory.add("Rockets fly", id="one")
    run_sql(db_path, "DELETE FROM chunk_fts_data", "UPDATE record SET text = text || ' high'")
    open_store(db_path).close()
    with pytest.raises(Exception, match="damaged"):
        open_memory(db_path).close()
    assert repair(db_path).left == ()
    with open_memory(db_path) as memory:
        assert [hit.record.id for hit in memory.search("high", mode="keyword")] == ["one"]
