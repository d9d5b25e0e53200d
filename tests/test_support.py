"""The embedder that stands in for a model in tests."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support import HashedEmbedder

from recall_core.models import Embedder


def test_the_hashed_embedder_is_an_embedder(embedder):
    assert isinstance(embedder, Embedder)


@given(st.lists(st.text(), max_size=5))
def test_every_text_gets_a_unit_vector(texts):
    vectors = HashedEmbedder(8).embed_passages(texts)
    assert vectors.shape == (len(texts), 8)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


def test_a_text_has_the_same_vector_in_a_batch_and_alone(embedder):
    together = embedder.embed_passages(["Docker Compose", "数据库配置"])
    assert np.array_equal(together[1:], embedder.embed_queries(["数据库配置"]))


def test_texts_that_share_characters_are_closer(embedder):
    near, other = embedder.embed_passages(["项目部署使用 Docker Compose", "the cat sleeps"])
    query = embedder.embed_queries(["Docker 部署"])[0]
    assert query @ near > query @ other


def test_what_was_embedded_is_kept_for_counting(embedder):
    embedder.embed_passages(["a", "b"])
    embedder.embed_queries(["c"])
    assert (embedder.passages, embedder.queries) == (["a", "b"], ["c"])
