"""A model behind HTTP: every text gets its vector once, few requests run at a time, and hitches are waited out."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import numpy as np
import pytest
from embedding_http_support import TEXTS, VARIABLES, are_of, embed_until_done, make
from embedding_server import OVERLOADED, POISON, EmbeddingServer, Fault
from support import wait_until

from recall_core.errors import (
    EmbedderUnavailableError,
    InvalidInputError,
    PartlyEmbeddedError,
    TextRefusedError,
)
from recall_core.models import Embedder, TokenWindow


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


# The whole


def test_it_is_an_embedder_with_an_estimated_window(embedder):
    assert isinstance(embedder, Embedder)
    assert isinstance(embedder, TokenWindow)
    assert embedder.token_spans("two words") == [(0, 3), (4, 8), (8, 9)]


def test_vectors_come_in_the_order_of_the_texts_and_have_length_1(embedder, server):
    vectors = embedder.embed_passages(TEXTS[:23])
    assert vectors.dtype == np.float32
    assert vectors.shape == (23, 8)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert are_of(vectors, server, TEXTS[:23])


def test_a_thousand_texts_with_one_call_in_three_failing_are_embedded_once_each(server):
    server.fails_every, server.together = 3, 2
    with make(server, batch_size=5, max_in_flight=4, retries=2) as embedder:
        assert are_of(embed_until_done(embedder, TEXTS), server, TEXTS)
    assert server.embedded == dict.fromkeys(TEXTS, 1)
    assert len(server.requests) > 200
    assert 2 <= server.most <= 4


def test_asyncio_gets_a_thousand_texts_past_one_failing_call_in_three(server):
    server.fails_every, server.together = 3, 2

    async def embed():
        async with make(server, batch_size=5, max_in_flight=4, retries=20) as embedder:
            return await embedder.aembed_passages(TEXTS)

    assert are_of(asyncio.run(embed()), server, TEXTS)
    assert server.embedded == dict.fromkeys(TEXTS, 1)
    assert 2 <= server.most <= 4


def test_several_threads_share_the_limit_of_requests_in_flight(server):
    server.together = 3
    with make(server, batch_size=1, max_in_flight=3) as embedder:
        threads = [threading.Thread(target=embedder.embed_passages, args=(TEXTS[n : n + 20],)) for n in (0, 20, 40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert server.embedded == dict.fromkeys(TEXTS[:60], 1)
    assert server.most == 3


def test_batches_hold_so_many_texts_and_so_many_tokens(server):
    with make(server, batch_size=3, batch_tokens=10, max_in_flight=1) as embedder:
        embedder.embed_passages(["a", "b", "c", "d", "e " * 9, "f f", "g " * 40])
    assert [len(request.texts) for request in server.requests] == [3, 2, 1, 1]


def test_requests_start_at_least_the_interval_apart(server):
    started = time.monotonic()
    with make(server, batch_size=1, min_interval=0.02) as embedder:
        embedder.embed_passages(TEXTS[:6])
    assert time.monotonic() - started >= 0.1


def test_a_query_does_not_wait_for_the_interval(server):
    with make(server, min_interval=60) as embedder:
        embedder.embed_passages(["first"])
        assert embedder.embed_queries(["second"]).shape == (1, 8)


def test_no_text_needs_no_request(embedder, server):
    assert embedder.embed_passages([]).shape == (0, 0)
    assert server.requests == []


def test_one_text_in_place_of_a_list_is_an_error(embedder):
    with pytest.raises(InvalidInputError, match="brackets"):
        embedder.embed_queries("one text")


def test_prefixes_are_sent_and_are_part_of_the_identity(server):
    with make(server, query_prefix="query: ", passage_prefix="passage: ") as embedder:
        embedder.embed_passages(["a"])
        embedder.embed_queries(["b"])
        assert embedder.model_id == 'test-model ["query: ", "passage: "]'
    assert [request.texts for request in server.requests] == [["passage: a"], ["query: b"]]


def test_half_a_surrogate_pair_is_sent_as_the_replacement_character(embedder, server):
    embedder.embed_passages(["a\ud800"])
    assert server.requests[0].texts == ["a\ufffd"]


def test_a_query_over_the_window_is_embedded_in_pieces(server):
    with make(server, max_tokens=20, batch_size=20) as embedder:
        vectors = embedder.embed_queries(["word " * 500, "short"])
    assert len(server.requests[0].texts) == 9
    assert max(len(embedder.token_spans(text)) for text in server.requests[0].texts) <= embedder.window == 10
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


# Dimensions


def test_dimensions_that_were_not_given_are_asked_for_once(embedder, server):
    assert (embedder.dimensions, embedder.dimensions) == (8, 8)
    assert len(server.requests) == 1


def test_given_dimensions_are_sent_and_need_no_request(server):
    with make(server, dimensions=16) as embedder:
        assert embedder.dimensions == 16
        assert server.requests == []
        assert embedder.embed_passages(["a"]).shape == (1, 16)
    assert server.requests[0].body["dimensions"] == 16


def test_dimensions_can_be_expected_without_being_sent(server):
    with make(server, dimensions=8, send_dimensions=False) as embedder:
        embedder.embed_passages(["a"])
    assert "dimensions" not in server.requests[0].body


# Hitches


@pytest.mark.parametrize(
    "fault",
    [
        Fault(429, "RateLimitExceeded.EndpointRPMExceeded"),
        Fault(429, "AccountRateLimitExceeded", headers={"Retry-After": "0"}),
        Fault(429, "rate_limit_exceeded", headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        Fault(500, "InternalServiceError"),
        Fault(502, body=b"<html>Bad Gateway</html>"),
        OVERLOADED,
        Fault(504),
        Fault(200, body=b'{"data": [{"index": 0, "embedd', cut=False),
        Fault(200, body=b'{"data": [{"index": 0, "embedding": [1]}]}', cut=True),
    ],
    ids=["rate", "rate-seconds", "rate-date", "500", "502", "503", "504", "truncated", "cut"],
)
def test_a_passing_fault_is_tried_again(embedder, server, fault):
    server.script.append(fault)
    assert are_of(embedder.embed_passages(["a"]), server, ["a"])
    assert len(server.requests) == 2


def test_a_server_that_is_away_is_tried_again_and_then_named(server):
    with (
        make(server, base_url="http://127.0.0.1:9/v1", retries=1) as embedder,
        pytest.raises(EmbedderUnavailableError, match=r"test-model at http://127.0.0.1:9/v1: the connection failed"),
    ):
        embedder.embed_passages(["a"])


def test_what_a_server_asks_to_wait_for_is_waited_for(embedder, server):
    server.script.append(Fault(429, "RateLimitExceeded", headers={"retry-after-ms": "150"}))
    started = time.monotonic()
    embedder.embed_passages(["a"])
    assert time.monotonic() - started >= 0.15


def test_a_server_that_asks_for_a_long_wait_is_left_to_the_caller(embedder, server):
    server.script.append(Fault(429, "RateLimitExceeded", headers={"Retry-After": "3600"}))
    with pytest.raises(EmbedderUnavailableError) as caught:
        embedder.embed_passages(["a"])
    assert (caught.value.retry_after, caught.value.permanent, len(server.requests)) == (3600.0, False, 1)


def test_retries_are_counted(embedder, server):
    server.always = OVERLOADED
    with pytest.raises(EmbedderUnavailableError, match=r"status 503 \(ServerOverloaded: something is wrong\)"):
        embedder.embed_passages(["a"])
    assert len(server.requests) == 4


def test_a_slow_server_is_given_up_after_the_timeout(server):
    held = threading.Event()
    server.always = Fault(wait=held)
    with make(server, timeout=0.05, retries=1) as embedder:
        with pytest.raises(EmbedderUnavailableError, match=r"no answer within 0\.05 s"):
            embedder.embed_passages(["a"])
        with pytest.raises(EmbedderUnavailableError, match=r"no answer within 0\.05 s"):
            asyncio.run(embed_async(embedder))
    held.set()


async def embed_async(embedder):
    try:
        return await embedder.aembed_passages(["a"])
    finally:
        await embedder.aclose()


def test_a_query_takes_no_longer_than_its_own_timeout(server):
    server.always = OVERLOADED
    with (
        make(server, query_timeout=0.2, backoff=0.15, retries=50) as embedder,
        pytest.raises(EmbedderUnavailableError),
    ):
        embedder.embed_queries(["a"])
    assert len(server.requests) < 5


def test_a_query_waits_no_longer_for_passages_that_take_all_places(server):
    held = threading.Event()
    server.always = Fault(wait=held)
    with make(server, max_in_flight=1, query_timeout=0.1, retries=0) as embedder:
        passages = threading.Thread(target=suppressed, args=(embedder.embed_passages, ["slow"]))
        passages.start()
        wait_until(lambda: server.requests)
        with pytest.raises(EmbedderUnavailableError, match="requests that may run at a time were taken"):
            embedder.embed_queries(["a"])
        held.set()
        passages.join()


def suppressed(function, *arguments):
    with contextlib.suppress(EmbedderUnavailableError):
        function(*arguments)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(429, headers={"Retry-After": "Mon, 01 Jan 2024 00:00:00 +9999999999999999999999"}),
        Fault(200, body=b"[" * 200_000),
    ],
)
def test_what_no_server_should_answer_is_no_fault_of_the_texts(server, fault):
    server.always = fault
    with make(server, retries=0) as embedder, pytest.raises(EmbedderUnavailableError):
        embedder.embed_passages(["a"])


@pytest.mark.parametrize(
    ("fault", "permanent"),
    [
        (Fault(401, "AuthenticationError"), True),
        (Fault(403, "AccountOverdueError"), True),
        (Fault(403, "AccessDenied"), True),
        (Fault(404, "ModelNotOpen"), True),
        (Fault(400, "InvalidSubscription"), True),
        (Fault(301, headers={"Location": "http://127.0.0.1:9/"}), True),
        (Fault(429, "QuotaExceeded"), False),
        (Fault(429, "SetLimitExceeded"), False),
        (Fault(429, body=b'{"error": {"type": "insufficient_quota", "code": "insufficient_quota"}}'), False),
    ],
    ids=lambda value: getattr(value, "code", None) or str(value)[:20],
)
def test_what_only_the_owner_can_mend_is_asked_once(embedder, server, fault, permanent):
    server.always = fault
    with pytest.raises(EmbedderUnavailableError) as caught:
        embedder.embed_passages(["a"])
    assert (caught.value.permanent, len(server.requests)) == (permanent, 1)


def test_a_wrong_key_stops_a_call_of_many_batches(server):
    server.always = Fault(401)
    with make(server, batch_size=1, max_in_flight=2) as embedder, pytest.raises(EmbedderUnavailableError):
        embedder.embed_passages(TEXTS[:100])
    assert len(server.requests) <= 2


def test_an_outage_stops_a_call_after_two_batches(server):
    server.always = OVERLOADED
    with make(server, batch_size=1, max_in_flight=1, retries=1) as embedder, pytest.raises(EmbedderUnavailableError):
        embedder.embed_passages(TEXTS[:100])
    assert len(server.requests) == 4


# What was paid for is kept


def test_vectors_of_the_batches_that_came_are_kept_when_others_fail(server):
    with make(server, batch_size=2, max_in_flight=1, retries=0) as embedder:
        server.script.extend([None, Fault(429, "QuotaExceeded")])
        with pytest.raises(PartlyEmbeddedError, match="2 of 6 texts have vectors, 0 were refused, 4 failed") as caught:
            embedder.embed_passages(TEXTS[:6])
    assert sorted(caught.value.vectors) == [0, 1]
    assert are_of(list(caught.value.vectors.values()), server, TEXTS[:2])
    assert isinstance(caught.value.failure, EmbedderUnavailableError)


@pytest.mark.parametrize("place", [0, 3, 7])
@pytest.mark.parametrize(
    "refused",
    [
        Fault(400, "SensitiveContentDetected"),
        Fault(400, "InputTextSensitiveContentDetected"),
        Fault(400, "content_filter"),
        Fault(400, "DataInspectionFailed"),
        Fault(400, "InvalidParameter", "a word that nobody likes"),
        Fault(400, None, "This model's maximum context length is 8192 tokens"),
        Fault(500, None, "the input length exceeds the context length"),
        Fault(413),
    ],
    ids=str,
)
def test_a_refused_text_costs_the_others_nothing(embedder, server, refused, place):
    server.refused = refused
    texts = TEXTS[:8]
    texts[place] = POISON
    with pytest.raises(PartlyEmbeddedError) as caught:
        embedder.embed_passages(texts)
    assert sorted(caught.value.refused) == [place]
    assert sorted(caught.value.vectors) == sorted({*range(8)} - {place})
    assert caught.value.failure is None
    assert server.embedded == {text: 1 for text in texts if text != POISON}


def test_a_single_refused_text_is_an_error_of_its_own(embedder, server):
    with pytest.raises(TextRefusedError, match="SensitiveContentDetected"):
        embedder.embed_passages([POISON])


def test_a_blank_text_is_refused_without_a_request(embedder, server):
    with pytest.raises(PartlyEmbeddedError, match="blank") as caught:
        embedder.embed_passages(["a", "  "])
    assert (sorted(caught.value.vectors), sorted(caught.value.refused)) == ([0], [1])
    assert server.embedded == {"a": 1}


def test_a_server_that_refuses_whatever_it_gets_is_no_fault_of_the_texts(embedder, server):
    server.always = Fault(400, "InvalidParameter", "dimensions are not supported")
    with pytest.raises(EmbedderUnavailableError, match="it may be a setting"):
        embedder.embed_passages(TEXTS[:5])
    assert len(server.requests) == 3
