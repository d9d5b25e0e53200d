"""`recall doctor` and `Memory.check` say what is wrong with a memory, and what to do about it."""

from __future__ import annotations

import json
import math

import pytest
from cli_support import run
from indexer_support import MoodyEmbedder
from queue_support import fill
from store_support import use_small_index
from support import HashedEmbedder

import recall_core.cli.doctor as doctor_command
from recall_core import Memory, Settings

ALONE = Settings(backfill_interval=math.inf)


@pytest.fixture
def embedder():
    return HashedEmbedder(16)


def problems(memory, *arguments):
    return [problem.problem for problem in memory.check(*arguments).problems]


def advice(memory):
    return " ".join(problem.advice for problem in memory.check().problems)


# The report


def test_a_memory_that_is_well_has_no_problems(db_path, embedder):
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
        found = memory.check()
        assert found.problems == ()
        assert (found.model, found.dimensions) == (found.embedder, found.embedder_dimensions) == ("hashed-16", 16)
        assert (found.journal, found.network, found.embedder_error, found.errors) == ("wal", None, None, ())
        assert found.stats == memory.stats()


def test_a_new_memory_has_no_problems_with_or_without_a_model(embedder):
    for model in (embedder, None):
        with Memory.open(":memory:", embedder=model) as memory:
            assert memory.check().problems == ()


def test_checking_writes_nothing(db_path, embedder):
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
        before = memory._engine.store.database.version()
        memory.check()
        assert memory._engine.store.database.version() == before


def test_chunks_that_wait_are_told_with_the_way_to_embed_them(db_path):
    fill(db_path, 3)
    with Memory.open(db_path, embedder=None) as memory:
        assert problems(memory) == ["3 chunks wait for a vector and are found by keyword only until then"]
        assert "recall embed" in advice(memory)


def test_chunks_that_failed_are_told_with_the_most_frequent_error(db_path, clock):
    embedder = MoodyEmbedder("poison")
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=ALONE) as memory:
        memory.add_many([{"text": "Rockets fly"}, {"text": "poison"}])
        assert problems(memory) == [
            "1 chunks could not be embedded and are tried again; most often: ValueError: 1 texts are refused"
        ]
        assert memory.check().errors == (("ValueError: 1 texts are refused", 1),)


def test_chunks_that_rest_are_told_with_the_way_to_try_them_again(db_path, clock):
    embedder = MoodyEmbedder("poison")
    settings = Settings(backfill_interval=math.inf, embed_failures=0)
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=settings) as memory:
        memory.add_many([{"text": "Rockets fly"}, {"text": "poison"}])
        assert problems(memory)[0].startswith("1 chunks could not be embedded and rest")
        assert "recall embed --retry-failed" in advice(memory)


def test_an_embedder_that_fails_on_a_query_is_told(db_path):
    class Down(HashedEmbedder):
        def embed_queries(self, texts):
            raise ConnectionError("no route")

    with Memory.open(db_path, embedder=Down(16)) as memory:
        assert problems(memory) == ["the embedder hashed-16 could not embed a query: ConnectionError: no route"]


def test_another_model_than_the_file_s_is_told_with_both_ways_out(db_path, embedder):
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
    with Memory.open(db_path, embedder=None) as memory:
        assert problems(memory) == []
        (told,) = memory.check(HashedEmbedder(32)).problems
        assert "hashed-16 (16 dimensions), the embedder is hashed-32 (32)" in told.problem
        assert "recall reembed" in told.advice


def test_what_keeps_searches_from_using_vectors_is_told(db_path):
    class Moody(HashedEmbedder):
        down = True

        def embed_queries(self, texts):
            if self.down:
                raise ConnectionError("no route")
            return super().embed_queries(texts)

    embedder = Moody(16)
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
        memory.search("rockets")
        embedder.down = False
        (told,) = problems(memory)
        assert told.startswith("searches could not use the vectors: found by keywords only")
        memory.search("rockets")
        assert problems(memory) == []


def test_a_network_file_system_is_told(db_path, embedder, monkeypatch):
    with Memory.open(db_path, embedder=embedder) as memory:
        monkeypatch.setattr("recall_core.store.facts.network_type", lambda path: "nfs4")
        assert "network file system (nfs4)" in problems(memory)[0]


def test_another_segmenter_is_told(db_path, embedder):
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
        memory._engine.store.facts.save_segmenter("terms-0")
        assert problems(memory)[0].startswith("the keyword index was made by terms-0")


def test_records_that_nobody_has_indexed_are_told(db_path, embedder):
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
        with memory._engine.store.database.write() as connection:
            connection.execute("UPDATE record SET indexed = 0")
        assert problems(memory)[0].startswith("1 records that another program wrote are not indexed yet")


def test_the_state_of_the_index_is_told(db_path, embedder, monkeypatch):
    use_small_index(monkeypatch)
    with Memory.open(db_path, embedder=embedder, settings=Settings(dictionary=("云原生",))) as memory:
        memory.add_many({"text": f"text {number}"} for number in range(60))
        memory.add("one more")
        found = memory.check()
        assert (found.stats.vector_index, found.unindexed_changes, found.words) == ("codes", 1, 1)
        assert found.problems == ()


# The command


@pytest.fixture
def with_model(monkeypatch, embedder):
    monkeypatch.setattr(doctor_command, "resolve_model", lambda model: embedder)
    return embedder


def test_the_command_ends_well_if_all_is_well(db_path, with_model):
    with Memory.open(db_path, embedder=with_model) as memory:
        memory.add("Rockets fly")
    done = run(db_path, "doctor")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "all is well" in done.stdout
    assert "hashed-16 (16 dimensions)" in done.stdout


def test_the_command_ends_with_one_if_something_wants_attention(db_path, with_model):
    fill(db_path, 3)
    done = run(db_path, "doctor")
    assert done.exit_code == 1
    assert "problem   3 chunks wait for a vector" in done.stdout
    assert "  do      run recall embed" in done.stdout


def test_the_command_tells_of_another_model_than_the_file_s(db_path, with_model):
    with Memory.open(db_path, embedder=HashedEmbedder(32)) as memory:
        memory.add("Rockets fly")
    done = run(db_path, "doctor")
    assert done.exit_code == 1
    assert "recall reembed" in done.stdout


def test_the_command_s_document_has_all_of_it(db_path, with_model):
    fill(db_path, 3)
    done = run(db_path, "doctor", "--json")
    document = json.loads(done.stdout)
    assert done.exit_code == 1
    assert document["stats"]["pending"] == 3
    assert (document["embedder"], document["model"], document["journal"]) == ("hashed-16", None, "wal")
    assert [sorted(problem) for problem in document["problems"]] == [["advice", "problem"]]


def test_the_command_says_that_there_is_no_file(db_path):
    done = run(db_path, "doctor")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "there is no memory" in done.stderr
