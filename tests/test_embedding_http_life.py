"""An embedder behind HTTP is closed, forked and used from several event loops."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading

import pytest
from embedding_http_support import VARIABLES, make
from embedding_server import OVERLOADED, EmbeddingServer
from support import LIMIT

from recall_core import HttpEmbedder
from recall_core.errors import (
    ClosedError,
)


@pytest.fixture
def server(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def embedder(server):
    with make(server, batch_size=5, max_in_flight=4) as made:
        yield made


# Its life


def test_a_closed_embedder_says_so(embedder):
    embedder.embed_passages(["a"])
    embedder.close()
    with pytest.raises(ClosedError, match="HttpEmbedder was closed"):
        embedder.embed_passages(["a"])


def test_closing_ends_a_pause(server, monkeypatch):
    monkeypatch.setattr("recall_core.embedding.retries.LONGEST_BACKOFF", 3600)
    server.always = OVERLOADED
    embedder = make(server, backoff=3600)
    failed = []

    def embed():
        with pytest.raises(ClosedError):
            embedder.embed_passages(["a"])
        failed.append(True)

    thread = threading.Thread(target=embed)
    thread.start()
    with server.changed:
        assert server.changed.wait_for(lambda: server.requests, LIMIT)
    embedder.close()
    thread.join(LIMIT)
    assert failed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_embeds_over_connections_of_its_own(embedder, server):
    embedder.embed_passages(["parent"])
    child = multiprocessing.get_context("fork").Process(target=embedder.embed_passages, args=(["child"],))
    child.start()
    child.join(LIMIT)
    assert child.exitcode == 0
    embedder.embed_passages(["parent again"])
    assert server.embedded == {"parent": 1, "child": 1, "parent again": 1}


def test_each_event_loop_has_a_client_of_its_own(server):
    async def embed(text):
        vectors = await embedder.aembed_queries([text])
        await close_loop(embedder)
        return vectors

    async def close_loop(embedder):
        await embedder._loops.pop(asyncio.get_running_loop()).close()

    embedder = make(server)
    assert asyncio.run(embed("one")).shape == asyncio.run(embed("two")).shape == (1, 8)
    assert server.embedded == {"one": 1, "two": 1}


def test_a_call_is_best_given_as_many_texts_as_are_in_flight(server):
    assert make(server, batch_size=5, max_in_flight=4).call_size == 20
    assert HttpEmbedder(provider="openai", api_key="k").call_size == 256
