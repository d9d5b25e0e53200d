"""Settings that make no sense are refused, by their name."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import math

import pytest

from recall_core.errors import InvalidInputError
from recall_core.settings import CHAT_HISTORY, Settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chunk_size", 7),
        ("chunk_size", "256"),
        ("chunk_size", None),
        ("chunk_size", 256.5),
        ("chunk_overlap", -1),
        ("chunk_overlap", 129),
        ("chunk_unit", "words"),
        ("keyword_weight", 1.1),
        ("keyword_weight", math.nan),
        ("recency_weight", -0.1),
        ("recency_half_life_days", 0),
        ("recency_half_life_days", math.nan),
        ("candidates", 0),
        ("candidates", 4097),
        ("candidates", True),
        ("rrf_k", 0),
        ("reranker", "models/bge-reranker-base"),
        ("reranker", dict),
        ("reranker", object()),
        ("rerank_candidates", 0),
        ("rerank_candidates", 4097),
        ("rerank_candidates", 50.0),
        ("rerank_budget", -0.1),
        ("rerank_budget", math.nan),
        ("rerank_budget", None),
        ("context_relevance", 2),
        ("embedding", "later"),
        ("embed_roles", "user"),
        ("embed_roles", ("",)),
        ("embed_min_characters", -1),
        ("embed_min_characters", 10.5),
        ("embed_failures", -1),
        ("backfill_interval", 0),
        ("backfill_interval", math.nan),
        ("backfill_limit", 0),
        ("close_timeout", -1),
        ("query_cache_size", -1),
        ("query_cache_ttl", -1),
        ("similarity_floors", {"doubao-embedding": 0.4}),
        ("similarity_floors", (("doubao-embedding", 1.4),)),
        ("similarity_floors", (0.4,)),
        ("durability", "none"),
        ("busy_timeout", -1),
        ("busy_timeout", math.inf),
        ("dictionary", "Docker"),
        ("dictionary", (1,)),
        ("dictionary", ("",)),
        ("redact", "yes"),
        ("redact", 1),
        ("redact", None),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_setting_s_name(name, value):
    with pytest.raises(InvalidInputError, match=rf"^Settings\.{name} is .*must be"):
        Settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chunk_size", 8),
        ("chunk_overlap", 0),
        ("chunk_overlap", 128),
        ("keyword_weight", 0),
        ("keyword_weight", 1),
        ("recency_weight", 0.7),
        ("candidates", 4096),
        ("rerank_candidates", 1),
        ("rerank_candidates", 4096),
        ("rerank_budget", 0),
        ("rerank_budget", math.inf),
        ("embed_roles", None),
        ("embed_roles", ()),
        ("embed_failures", 0),
        ("backfill_interval", math.inf),
        ("close_timeout", 0),
        ("query_cache_size", 0),
        ("similarity_floors", (("doubao-embedding", 0.4),)),
        ("busy_timeout", 0),
        ("dictionary", ("云原生", "Kubernetes")),
        ("redact", True),
        ("redact", str.upper),
    ],
)
def test_the_ends_of_a_range_are_allowed(name, value):
    if name == "chunk_size":
        assert Settings(chunk_size=value, chunk_overlap=4).chunk_size == value
    else:
        assert getattr(Settings(**{name: value}), name) == value


class Scorer:
    def score(self, query, texts):
        return [0.0] * len(texts)


@pytest.mark.parametrize("reranker", [None, Scorer(), Scorer().score], ids=["none", "object", "function"])
def test_a_reranker_is_an_object_a_function_or_none(reranker):
    assert Settings(reranker=reranker).reranker is reranker


def test_the_class_of_a_reranker_is_refused():
    with pytest.raises(InvalidInputError, match="reranker"):
        Settings(reranker=Scorer)


def test_settings_can_be_replaced_but_not_changed():
    settings = Settings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.rrf_k = 1
    assert dataclasses.replace(settings, rrf_k=10).rrf_k == 10


def test_a_replacement_is_checked_too():
    with pytest.raises(InvalidInputError, match="chunk_overlap"):
        dataclasses.replace(Settings(), chunk_size=40)


def test_the_source_system_s_sizes_are_allowed():
    assert Settings(chunk_size=500, chunk_overlap=100, chunk_unit="characters").chunk_unit == "characters"


def test_the_settings_for_chat_histories_are_those_of_the_source_system():
    assert dataclasses.replace(CHAT_HISTORY, embedding="inline").embed_roles == ("user", "assistant")
    assert (CHAT_HISTORY.embedding, CHAT_HISTORY.embed_min_characters, CHAT_HISTORY.embed_failures) == (
        "background",
        11,
        3,
    )
    assert (CHAT_HISTORY.backfill_interval, CHAT_HISTORY.backfill_limit, CHAT_HISTORY.candidates) == (300, 1000, 30)
    assert CHAT_HISTORY.similarity_floors == (("doubao-embedding", 0.4),)


def test_every_setting_says_what_it_changes():
    body = ast.parse(inspect.getsource(Settings)).body[0].body
    described = {
        node.target.id
        for node, below in itertools.pairwise(body)
        if isinstance(node, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    }
    assert described == {field.name for field in dataclasses.fields(Settings)}
