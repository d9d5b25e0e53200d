"""The shapes of embedding APIs: OpenAI's, Cohere's and Volcano Ark's two, and answers that hold no vectors."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import numpy as np
import pytest
from embedding_http_support import TEXTS, VARIABLES, are_of, make
from embedding_server import POISON, EmbeddingServer, Fault
from hypothesis import given
from hypothesis import strategies as st

from recall_core import HttpEmbedder
from recall_core.embedding.providers import PROVIDERS
from recall_core.embedding.retries import choose_pause, read_retry_after
from recall_core.embedding.wire import Failure, Reply, make_url, read_reply
from recall_core.errors import EmbedderUnavailableError, InvalidInputError, PartlyEmbeddedError

VISION = "doubao-embedding-vision"


@pytest.fixture
def server(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with EmbeddingServer() as running:
        yield running


# Requests


@pytest.mark.parametrize(
    ("base", "style", "url"),
    [
        ("https://a.b/v1", "openai", "https://a.b/v1/embeddings"),
        ("https://a.b/v1/embeddings", "openai", "https://a.b/v1/embeddings"),
        ("https://a.b/x?api-version=3", "openai", "https://a.b/x/embeddings?api-version=3"),
        ("https://a.b/api/v3", "ark_multimodal", "https://a.b/api/v3/embeddings/multimodal"),
        ("https://a.b/api/v3/embeddings", "ark_multimodal", "https://a.b/api/v3/embeddings/multimodal"),
        ("https://a.b/api/v3/embeddings/multimodal", "ark_multimodal", "https://a.b/api/v3/embeddings/multimodal"),
        ("https://a.b/v2", "cohere", "https://a.b/v2/embed"),
        ("https://a.b/v2/embed", "cohere", "https://a.b/v2/embed"),
    ],
)
def test_a_base_url_may_have_the_path_of_the_api_or_not(base, style, url):
    assert make_url(base, style) == url


def test_openai_gets_a_list_of_strings(server):
    with make(server, api_key="k", dimensions=8) as embedder:
        embedder.embed_passages(["a", "b"])
    assert server.paths == ["/v1/embeddings"]
    assert server.requests[0].body == {"model": "test-model", "input": ["a", "b"], "dimensions": 8}
    assert server.requests[0].headers["authorization"] == "Bearer k"


def test_a_server_without_keys_gets_none(server):
    with make(server) as embedder:
        embedder.embed_passages(["a"])
    assert "authorization" not in server.requests[0].headers


def test_cohere_is_told_what_a_text_is_for_and_not_to_cut_it(server):
    with make(server, provider="cohere", api_key="k", dimensions=8) as embedder:
        assert are_of(embedder.embed_passages(TEXTS[:3]), server, TEXTS[:3])
        embedder.embed_queries(["q"])
    assert server.paths == ["/v1/embed", "/v1/embed"]
    assert server.requests[1].body == {
        "model": "test-model",
        "texts": ["q"],
        "input_type": "search_query",
        "embedding_types": ["float"],
        "truncate": "NONE",
        "output_dimension": 8,
    }
    assert server.requests[0].body["input_type"] == "search_document"


@pytest.mark.parametrize("base", ["embeddings/multimodal", ""], ids=["by the url", "by the style"])
def test_arks_multimodal_api_gets_one_text_a_request(server, base):
    style = "auto" if base else "ark_multimodal"
    with make(server, VISION, base_url=f"{server.url}/{base}", style=style, dimensions=8) as embedder:
        assert are_of(embedder.embed_passages(TEXTS[:10]), server, TEXTS[:10])
    assert set(server.paths) == {"/v1/embeddings/multimodal"}
    assert len(server.requests) == 10
    assert server.embedded == dict.fromkeys(TEXTS[:10], 1)
    assert server.requests[0].body["input"] == [{"type": "text", "text": server.requests[0].texts[0]}]


@pytest.mark.parametrize("refusal", [Fault(404, "InvalidEndpointOrModel.NotFound"), Fault(400, "InvalidParameter")])
def test_a_vision_model_that_takes_no_strings_is_asked_in_its_own_shape_from_then_on(server, refusal):
    server.script.append(refusal)
    with make(server, VISION, batch_size=5) as embedder:
        assert are_of(embedder.embed_passages(TEXTS[:5]), server, TEXTS[:5])
        embedder.embed_queries(["q"])
    assert server.paths == ["/v1/embeddings", *["/v1/embeddings/multimodal"] * 6]
    assert server.embedded == dict.fromkeys([*TEXTS[:5], "q"], 1)


def test_a_vision_model_that_takes_strings_stays_with_them(server):
    with make(server, VISION, batch_size=5) as embedder:
        embedder.embed_passages(TEXTS[:10])
    assert server.paths == ["/v1/embeddings"] * 2


def test_a_vision_model_that_is_in_neither_place_is_asked_twice_a_call(server):
    server.takes_strings = server.takes_multimodal = False
    with make(server, VISION) as embedder, pytest.raises(EmbedderUnavailableError, match="NotFound"):
        embedder.embed_passages(["a"])
    assert server.paths == ["/v1/embeddings", "/v1/embeddings/multimodal"]


def test_a_sensitive_text_in_arks_own_shape_is_refused_alone(server):
    with make(server, VISION, style="ark_multimodal") as embedder, pytest.raises(PartlyEmbeddedError) as caught:
        embedder.embed_passages(["a", POISON, "b"])
    assert (sorted(caught.value.vectors), sorted(caught.value.refused)) == ([0, 2], [1])


def test_asyncio_speaks_arks_shape_as_well(server):
    async def embed():
        async with make(server, VISION, style="ark_multimodal") as embedder:
            return await embedder.aembed_passages(TEXTS[:7]), await embedder.aembed_queries(["q"])

    passages, queries = asyncio.run(embed())
    assert are_of(passages, server, TEXTS[:7])
    assert are_of(queries, server, ["q"])


# Providers


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_brings_all_that_is_needed_but_the_key(provider, monkeypatch):
    for name in PROVIDERS[provider].key_variables[-1:]:
        monkeypatch.setenv(name, "key-of-the-environment")
    embedder = HttpEmbedder(provider=provider)
    assert embedder.model_id.split()[0] == PROVIDERS[provider].model
    assert embedder.window >= 256


def test_ark_has_the_numbers_of_the_coding_plan(server):
    ark = HttpEmbedder(provider="ark", api_key="k")._spec
    assert ark.base_url == "https://ark.cn-beijing.volces.com/api/coding/v3"
    assert (ark.model, ark.dimensions, HttpEmbedder(provider="ark", api_key="k").dimensions) == (VISION, 2048, 2048)
    assert (ark.batch_size, ark.min_interval, ark.retries, ark.timeout) == (5, 0.2, 2, 30.0)
    assert HttpEmbedder(provider="ark", api_key="k", dimensions=1024).dimensions == 1024
    assert HttpEmbedder("doubao-embedding-large", provider="ark", api_key="k")._spec.dimensions is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "neither provider nor base_url"),
        ({"provider": "nobody"}, "known are openai, ollama"),
        ({"provider": "ark"}, "set ARK_API_KEY in the environment, or give api_key="),
        ({"base_url": "http://x/v1"}, "model is None"),
        ({"model": "m", "base_url": "localhost:8000"}, "no http or https URL"),
        ({"model": "m", "base_url": "http://x", "style": "odd"}, "style is 'odd'"),
        ({"model": "m", "base_url": "http://x", "batch_size": 0}, "batch_size is 0"),
        ({"model": "m", "base_url": "http://x", "dimensions": 0}, "dimensions is 0"),
        ({"model": "m", "base_url": "http://x", "timeout": 0}, "timeout is 0"),
        ({"model": "m", "base_url": "http://x", "retries": -1}, "retries is -1"),
        ({"model": "m", "base_url": "http://x", "min_interval": float("nan")}, "min_interval is nan"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense_are_named(arguments, message, server):
    with pytest.raises(InvalidInputError, match=message):
        HttpEmbedder(**arguments)


# Answers


def change(**fields):
    return Fault(vectors=lambda data: [data[0] | fields, *data[1:]])


BAD = {
    "fused": (Fault(vectors=lambda data: {"embedding": data[0]["embedding"]}), "3 texts were sent and 1 vectors came"),
    "fewer": (Fault(vectors=lambda data: data[:2]), "3 texts were sent and 2 vectors came back"),
    "more": (Fault(vectors=lambda data: [*data, data[0] | {"index": 3}]), "3 texts were sent and 4 vectors came back"),
    "empty": (Fault(vectors=lambda data: []), "no vectors in `data`"),
    "none": (Fault(vectors=lambda data: None), "no vectors in `data`"),
    "no objects": (Fault(vectors=lambda data: ["x", "y", "z"]), "no list of vectors"),
    "index twice": (change(index=1), "`index` fields are not 0, 1, 2"),
    "other length": (change(embedding=[1.0] * 9), "vectors of [89] numbers where [89] are expected"),
    "not a list": (change(embedding=7), "int '7' in place of a list of numbers"),
    "words": (change(embedding=["a"] * 8), "something else than numbers"),
    "nested": (change(embedding=[[1.0], [2.0, 3.0]]), "something else than numbers"),
    "no base64": (change(embedding="###"), "no base64"),
    "empty base64": (change(embedding=""), "in place of a list of numbers"),
    "html": (Fault(200, body=b"<html>Please log in</html>"), "a page of text, not JSON"),
    "a number": (Fault(200, body=b"[7]"), "no JSON object"),
    "other object": (Fault(200, body=b"{}"), "no vectors in `data`"),
}


@pytest.mark.parametrize(("fault", "message"), BAD.values(), ids=BAD)
def test_an_answer_that_holds_no_vectors_is_an_error_that_says_so(server, fault, message):
    server.always = fault
    with make(server) as embedder, pytest.raises(EmbedderUnavailableError, match=message):
        embedder.embed_passages(TEXTS[:3])
    assert len(server.requests) == 1


def test_another_length_than_asked_for_is_an_error_that_names_both(server):
    with (
        make(server, dimensions=16, send_dimensions=False) as embedder,
        pytest.raises(EmbedderUnavailableError, match="vectors of 8 numbers where 16 are expected; set dimensions=8"),
    ):
        embedder.embed_passages(["a"])


def test_a_server_that_changes_the_length_later_is_found_out(server):
    with make(server) as embedder:
        embedder.embed_passages(["a"])
        server.always = change(embedding=[1.0] * 9)
        with pytest.raises(EmbedderUnavailableError, match="9 numbers where 8 are expected"):
            embedder.embed_passages(["b"])


@pytest.mark.parametrize("bad", [[float("nan")] * 8, [None] * 8, [float("inf")] * 8, [0.0] * 8], ids=str)
def test_a_vector_that_is_none_costs_only_its_text(server, bad):
    server.always = change(embedding=bad)
    with make(server) as embedder, pytest.raises(PartlyEmbeddedError, match="the model's vector 0 of 1") as caught:
        embedder.embed_passages(TEXTS[:3])
    assert (sorted(caught.value.vectors), sorted(caught.value.refused)) == ([1, 2], [0])


def test_the_index_of_a_vector_counts_not_its_place(server):
    server.always = Fault(vectors=lambda data: data[::-1])
    with make(server) as embedder:
        assert are_of(embedder.embed_passages(TEXTS[:9]), server, TEXTS[:9])


def test_vectors_may_come_in_base64(server):
    server.encodes = True
    with make(server) as embedder:
        assert are_of(embedder.embed_passages(TEXTS[:3]), server, TEXTS[:3])


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "E", "message": "words"}},
        {"code": "E", "message": "words"},
        {"error": {"type": "E", "message": "words", "code": None}},
        {"error": {"code": "E", "detail": "words"}},
    ],
    ids=str,
)
def test_a_servers_words_are_shown_whatever_their_shape(body):
    failure = read_reply(Reply(401, json.dumps(body).encode()), 1)
    assert isinstance(failure, Failure)
    assert failure.message == "status 401 (E: words)"


@given(
    st.integers(100, 599),
    st.binary()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["data", "embeddings", "embedding", "index", "error", "code", "message", "float", "type"]
                ),
                inner,
            )
        ),
    ).map(lambda value: json.dumps(value).encode()),
)
def test_no_answer_breaks_the_reader(status, body):
    found = read_reply(Reply(status, body), 2)
    assert isinstance(found, Failure) or len(found) == 2


# Pauses


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-1"}, 0),
        ({"retry-after": "Fri, 31 Jan 2026 09:31:00 GMT"}, 60),
        ({"retry-after": "Fri, 31 Jan 2020 09:31:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
    ],
    ids=str,
)
def test_the_wait_a_server_asks_for_is_read(headers, seconds):
    assert read_retry_after(headers, datetime(2026, 1, 31, 9, 30, tzinfo=UTC)) == seconds


@given(st.integers(1, 10_000), st.floats(0, 60), st.none() | st.floats(0, 3600), st.floats(0, 1))
def test_a_pause_is_bounded_and_never_shorter_than_asked_for(attempt, backoff, retry_after, draw):
    pause = choose_pause(attempt, backoff, retry_after, draw)
    assert (retry_after or 0) <= pause <= max(30, (retry_after or 0) + 1)


def test_pauses_double_and_differ_between_clients():
    assert [choose_pause(attempt, 0.5, None, 1) for attempt in (1, 2, 3, 9)] == [0.5, 1, 2, 30]
    assert np.isclose(choose_pause(2, 0.5, None, 0), 0.5)
