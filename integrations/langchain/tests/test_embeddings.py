"""The core's models as LangChain embeddings: langchain-tests' suites, and what they leave open."""

from __future__ import annotations

import pytest
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

from recall_langchain import RecallEmbeddings


class TestEmbeddingsUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[RecallEmbeddings]:
        return RecallEmbeddings


class TestEmbeddingsIntegration(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[RecallEmbeddings]:
        return RecallEmbeddings


def test_a_question_is_nearest_to_its_answer():
    embeddings = RecallEmbeddings()
    query = embeddings.embed_query("怎么部署服务")
    answers = embeddings.embed_documents(["晚饭吃了火锅", "项目部署统一使用 Docker Compose"])
    scores = [sum(a * b for a, b in zip(query, answer, strict=True)) for answer in answers]
    assert scores[1] > scores[0]


def test_no_texts_have_no_vectors():
    assert RecallEmbeddings().embed_documents([]) == []


def test_none_is_no_model():
    with pytest.raises(ValueError, match="model is None"):
        RecallEmbeddings(None)
