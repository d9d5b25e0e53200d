"""A memory whose model is behind HTTP: nothing is lost, paid for twice, or told to whom it is no business of."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
import traceback

import pytest
from embedding_http_support import TEXTS, VARIABLES, make
from embedding_server import KEY, OVERLOADED, POISON, EmbeddingServer, Fault
from store_support import vector_faults

from recall_core import HttpEmbedder, Memory, Settings
from recall_core.errors import EmbedderUnavailableError, EmbeddingError, InvalidInputError

BACKGROUND = Settings(embedding="background")
SECRET_TEXT = "the alarm code of the house is 4711"


@pytest.fixture
def server(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with EmbeddingServer() as running:
        yield running


# Storing and finding


def test_a_thousand_texts_are_embedded_in_the_background_with_one_call_in_three_failing(server, db_path, clock):
    server.fails_every = 3
    with (
        make(server, batch_size=5, max_in_flight=4, retries=20) as embedder,
        Memory.open(db_path, embedder=embedder, settings=BACKGROUND, clock=clock) as memory,
    ):
        server.together = 2
        memory.add_many({"text": text} for text in TEXTS)
        assert memory.flush() == 0
        assert vector_faults(memory) == []
    assert {text: count for text, count in server.embedded.items() if text in TEXTS} == dict.fromkeys(TEXTS, 1)
    assert server.most <= 4


def test_a_refused_text_fails_alone_and_the_others_are_embedded_once(server, db_path):
    texts = [f"{POISON} {n}" if n % 10 == 3 else TEXTS[n] for n in range(40)]
    with make(server, batch_size=5) as embedder, Memory.open(db_path, embedder=embedder) as memory:
        memory.add_many({"text": text} for text in texts)
        stats = memory.stats()
        assert memory.search(f"{POISON} 13", mode="keyword", limit=1)[0].record.text == f"{POISON} 13"
    assert (stats.pending, stats.spaces[0].vectors) == (4, 36)
    stored = {text for text in texts if POISON not in text}
    assert {text: server.embedded[text] for text in stored} == dict.fromkeys(stored, 1)


def test_vectors_that_came_before_an_outage_are_stored(server, db_path):
    with make(server, batch_size=5, max_in_flight=1, dimensions=8, retries=0) as embedder:
        server.script.extend([None, None, *[OVERLOADED] * 20])
        with Memory.open(db_path, embedder=embedder) as memory:
            memory.add_many({"text": text} for text in TEXTS[:40])
            assert memory.stats().pending == 30
            server.script.clear()
            assert memory.flush() == 0
    assert server.embedded == dict.fromkeys(TEXTS[:40], 1)


def test_a_query_that_fails_is_answered_by_keywords(server, db_path):
    with make(server) as embedder, Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
        server.always = Fault(401, "AuthenticationError")
        hits = memory.search("rockets")
        assert [hit.record.text for hit in hits] == ["Rockets fly"]
        assert hits.degraded is not None


def test_two_servers_with_one_model_share_a_file(server, db_path):
    with make(server) as embedder, Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
    with (
        EmbeddingServer() as other,
        make(other, api_key="other") as embedder,
        Memory.open(db_path, embedder=embedder) as memory,
    ):
        assert memory.search("Rockets fly", mode="semantic", limit=1)[0].why.similarity > 0.99


# Secrets


def leaks(*shown: object) -> list[str]:
    return [text for text in map(str, shown) if KEY in text or "gateway-token-987" in text]


def every_error_of(embedder, server):
    """Yield what each kind of failure raises and how a traceback shows it, the server saying the key aloud."""
    echo = f"the key {KEY} and gateway-token-987 are not good for {SECRET_TEXT}"
    faults = [Fault(status, "E", echo) for status in (301, 400, 401, 403, 404, 413, 422, 429, 500)]
    faults += [Fault(429, "QuotaExceeded", echo), Fault(200, body=b"{", cut=False), Fault(200, body=b"<html>")]
    for fault in faults:
        server.always = fault
        for texts in ([SECRET_TEXT], [SECRET_TEXT, "other"]):
            with pytest.raises(EmbeddingError) as caught:
                embedder.embed_passages(texts)
            yield "".join(traceback.format_exception(caught.value))
            with pytest.raises(EmbeddingError) as caught:
                asyncio.run(ask_async(embedder, texts))
            yield "".join(traceback.format_exception(caught.value))


async def ask_async(embedder, texts):
    try:
        return await embedder.aembed_passages(texts)
    finally:
        await embedder._loops.pop(asyncio.get_running_loop()).close()


def test_no_error_and_no_log_shows_a_key_or_a_text(server, caplog):
    caplog.set_level(logging.DEBUG)
    headers = {"X-Gateway": "gateway-token-987"}
    with make(server, api_key=KEY, headers=headers, retries=1) as embedder:
        shown = [*every_error_of(embedder, server), repr(embedder), embedder.model_id, repr(embedder._spec)]
        shown += [repr(vars(embedder)), repr(embedder._spec.headers)]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].headers["x-gateway"] == "gateway-token-987"
    assert caplog.records
    assert leaks(*shown, caplog.text) == []
    assert [text for text in (*shown, caplog.text) if SECRET_TEXT in text] == []


def test_no_key_reaches_the_file(server, tmp_path):
    with (
        make(server, api_key=KEY) as embedder,
        Memory.open(tmp_path / "memory.db", embedder=embedder) as memory,
    ):
        memory.add("Rockets fly")
        server.always = Fault(401, "AuthenticationError", f"Incorrect API key provided: {KEY}")
        memory.add("Turtles swim")
        files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert b"Rockets" in files
        assert KEY.encode() not in files


@pytest.mark.parametrize("url", ["http://me:{}@x/v1", "http://x/v1?key={}", "http://x/v1?api-version=1&sig={}"])
def test_a_url_with_a_key_in_it_is_refused_without_showing_it(url):
    with pytest.raises(InvalidInputError, match="may be secret") as caught:
        HttpEmbedder("m", base_url=url.format(KEY))
    assert leaks(*traceback.format_exception(caught.value)) == []


@pytest.mark.parametrize("key", [f"{KEY}\nX: y", f"{KEY}密", "  "])
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(key):
    with pytest.raises(InvalidInputError, match="copy it again") as caught:
        HttpEmbedder("m", base_url="http://x/v1", api_key=key)
    assert leaks(*traceback.format_exception(caught.value)) == []


def test_white_space_around_a_key_is_no_part_of_it(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    server.key = KEY
    with make(server, provider="openai") as embedder:
        embedder.embed_passages(["a"])


def test_a_wrong_key_is_named_by_its_status(server):
    server.key = "another"
    with make(server, api_key=KEY) as embedder, pytest.raises(EmbedderUnavailableError, match="status 401") as caught:
        embedder.embed_passages(["a"])
    assert "***" in str(caught.value)


@pytest.mark.parametrize("take", [copy.deepcopy, pickle.dumps], ids=["copy", "pickle"])
def test_an_embedder_is_neither_copied_nor_pickled_with_its_key(server, take):
    with make(server, api_key=KEY) as embedder, pytest.raises(TypeError):
        take(embedder)


def test_a_file_opens_while_its_server_is_away(db_path, server):
    with make(server) as embedder, Memory.open(db_path, embedder=embedder) as memory:
        memory.add("Rockets fly")
    server.always = OVERLOADED
    asked = len(server.requests)
    with make(server, retries=0) as embedder, Memory.open(db_path, embedder=embedder) as memory:
        assert len(server.requests) == asked
        found = memory.search("rockets")
        assert [hit.record.text for hit in found] == ["Rockets fly"]
        assert found.degraded
