"""Arguments that can't be used are refused by name, and all others work."""

from __future__ import annotations

import numpy as np
import pytest
from support import HashedEmbedder

from recall_core import Memory
from recall_core.errors import InvalidInputError, VectorError

MODES = ["hybrid", "keyword", "semantic"]


@pytest.fixture(scope="module")
def memory():
    with Memory.open(":memory:", embedder=HashedEmbedder(64)) as memory:
        memory.add_many(
            {"text": text}
            for text in (
                "We deploy all services with docker compose",
                "项目部署统一使用 Docker Compose",
                "the cat drank tea",
            )
        )
        yield memory


# Arguments that can't be used


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scope", 5),
        ("scope", "a//b"),
        ("mode", "fast"),
        ("mode", None),
        ("limit", -1),
        ("limit", 2.5),
        ("limit", True),
        ("limit", 10_001),
        ("session", 5),
        ("roles", [5]),
        ("tags", [None]),
        ("since", "yesterday"),
        ("since", float("nan")),
        ("until", []),
        ("now", "soon"),
        ("min_relevance", 1.1),
        ("min_relevance", "high"),
        ("min_similarity", -1.1),
        ("fusion", "best"),
        ("alpha", -0.1),
        ("alpha", float("nan")),
        ("recency", 2),
        ("candidates", 0),
        ("candidates", 5000),
        ("diversify", "very"),
        ("roles", 5),
        ("tags", 5),
        ("space", 5),
        ("space", ["x"]),
        ("space", ""),
    ],
)
def test_a_bad_argument_is_refused_by_name(memory, name, value):
    with pytest.raises(InvalidInputError, match=name):
        memory.search("docker", **{name: value})


def test_a_bad_filter_is_refused(memory):
    with pytest.raises(InvalidInputError, match="filter"):
        memory.search("docker", where="stars > 3")


@pytest.mark.parametrize("query", [None, b"docker", 5, ["docker"]])
def test_a_query_that_is_no_string_is_refused(memory, query):
    with pytest.raises(InvalidInputError, match="query"):
        memory.search(query)


@pytest.mark.parametrize("vector", [5, "abc", [], [[1.0]], [1.0], [None] * 64, np.full(64, np.nan), [0.0] * 64])
@pytest.mark.parametrize("mode", MODES)
def test_a_query_vector_that_does_not_fit_is_refused(memory, vector, mode):
    with pytest.raises(VectorError):
        memory.search("docker", vector=vector, mode=mode)


def test_diversity_among_nothing_is_nothing(memory):
    assert list(memory.search("docker", diversify=0.5, tags=["no such tag"])) == []
    assert list(memory.search("docker", diversify=0.5, min_relevance=1.0)) == []


@pytest.mark.parametrize("now", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_a_search_works_at_both_ends_of_time(memory, now):
    memory.add("docker at the end of time", created_at="9999-12-31T23:59:59.999999Z")
    assert memory.search("docker, last week or in May", now=now)
