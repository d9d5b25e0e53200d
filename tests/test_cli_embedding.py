"""`recall embed` gives vectors to what waits for one, as far as it gets."""

from __future__ import annotations

import json
import math

import pytest
from cli_support import run
from indexer_support import MoodyEmbedder
from queue_support import fill

import recall_core.cli.embedding as embedding_command
from recall_core import HttpEmbedder, Memory, Settings
from recall_core.cli.opening import resolve_model


@pytest.fixture
def embedder(db_path, monkeypatch):
    embedder = MoodyEmbedder("poison")
    settings = Settings(backfill_interval=math.inf)
    opens = {"embedder": embedder, "settings": settings}
    monkeypatch.setattr(embedding_command, "open_for_embedding", lambda db, model: Memory.open(db, **opens))
    return embedder


def test_what_waits_is_embedded(db_path, embedder):
    fill(db_path, 600)
    done = run(db_path, "embed")
    assert (done.exit_code, done.stdout, done.stderr) == (
        0,
        "embedded 600 chunks; 0 wait, 0 failed, 0 of them rest\n",
        "",
    )
    assert len(embedder.passages) == 600


def test_nothing_to_do_is_no_error(db_path, embedder):
    fill(db_path, 1)
    run(db_path, "embed")
    assert run(db_path, "embed").stdout == "embedded 0 chunks; 0 wait, 0 failed, 0 of them rest\n"


def test_a_limit_leaves_the_rest_for_the_next_run(db_path, embedder):
    fill(db_path, 600)
    done = run(db_path, "embed", "--limit", "100")
    assert (done.exit_code, done.stdout) == (0, "embedded 100 chunks; 500 wait, 0 failed, 0 of them rest\n")
    assert run(db_path, "embed").stdout.startswith("embedded 500 chunks; 0 wait")
    assert len(embedder.passages) == 600


def test_what_failed_ends_with_exit_code_one_and_is_tried_again_at_once(db_path, embedder):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add_many([{"text": "Rockets fly"}, {"text": "poison"}])
    for rests in (0, 0, 0, 1):
        done = run(db_path, "embed", "--json")
        assert done.exit_code == 1
        assert json.loads(done.stdout)["resting"] == rests
    calls = embedder.calls
    embedder.poison.clear()
    assert run(db_path, "embed").exit_code == 1
    assert embedder.calls == calls  # it rests
    done = run(db_path, "embed", "--retry-failed", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"embedded": 1, "pending": 0, "failed": 0, "resting": 0})


def test_an_interrupted_run_gives_its_leases_back_and_is_gone_on_with(db_path, embedder, monkeypatch):
    fill(db_path, 600)
    embed = embedder.embed_passages

    def embed_once(texts):
        if embedder.passages:
            raise KeyboardInterrupt
        return embed(texts)

    with monkeypatch.context() as patch:
        patch.setattr(embedder, "embed_passages", embed_once)
        done = run(db_path, "embed")
    assert (done.exit_code, done.stdout) == (130, "")
    assert done.stderr.strip() == "recall: stopped; 256 of 600 chunks are embedded; the same command goes on"
    with Memory.open(db_path, embedder=None) as memory:
        assert (memory.stats().pending, memory.stats().leased) == (344, 0)
    assert run(db_path, "embed").stdout.startswith("embedded 344 chunks; 0 wait")


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_a_limit_that_is_none_is_refused(db_path, limit):
    assert run(db_path, "embed", "--limit", limit).exit_code == 2


def test_a_missing_file_is_told(db_path):
    assert run(db_path, "embed").exit_code == 3


def test_a_refused_text_is_told_by_the_doctor(db_path, embedder):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add_many([{"text": "Rockets fly"}, {"text": "poison"}])
    run(db_path, "embed")
    done = run(db_path, "doctor")
    assert done.exit_code == 1
    assert "1 texts are refused" in done.stdout


def test_a_model_may_be_that_of_a_provider_or_of_any_server(monkeypatch):
    monkeypatch.setenv("ARK_API_KEY", "key-of-ark")
    ark = resolve_model("ark:doubao-embedding-vision")
    assert isinstance(ark, HttpEmbedder)
    assert "doubao-embedding-vision" in ark.model_id
    local = resolve_model("http://localhost:8000/v1#bge-m3")
    assert isinstance(local, HttpEmbedder)
    assert "bge-m3" in local.model_id
    assert not isinstance(resolve_model(None), HttpEmbedder)


def test_a_provider_without_a_key_says_which_variable_it_wants(db_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Memory.open(db_path, embedder=None).close()
    done = run(db_path, "embed", "--model", "openai:text-embedding-3-small")
    assert done.exit_code == 2
    assert "OPENAI_API_KEY" in done.stderr
