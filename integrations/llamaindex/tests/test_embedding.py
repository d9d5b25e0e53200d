"""RecallEmbedding gives the vectors that recall_core makes."""

from __future__ import annotations

import asyncio
import pickle

import pytest
from llama_index.core.embeddings import resolve_embed_model

from recall_core.embedding import load_bundled
from recall_core.errors import ModelNotFoundError
from recall_llamaindex import RecallEmbedding

TEXTS = ["数据库每天备份", "The boiler is in the cellar", ""]


@pytest.fixture(scope="module")
def model():
    return RecallEmbedding()


def test_texts_are_embedded_as_passages_and_questions_as_queries(model):
    assert model.get_text_embedding_batch(TEXTS) == load_bundled().embed_passages(TEXTS).tolist()
    assert model.get_text_embedding(TEXTS[0]) == load_bundled().embed_passages(TEXTS[:1])[0].tolist()
    assert model.get_query_embedding(TEXTS[0]) == load_bundled().embed_queries(TEXTS[:1])[0].tolist()
    assert model.get_query_embedding(TEXTS[0]) != model.get_text_embedding(TEXTS[0])


def test_async_methods_give_the_same_vectors(model):
    async def embed():
        return (
            await model.aget_query_embedding(TEXTS[0]),
            await model.aget_text_embedding(TEXTS[0]),
            await model.aget_text_embedding_batch(TEXTS),
        )

    assert asyncio.run(embed()) == (
        model.get_query_embedding(TEXTS[0]),
        model.get_text_embedding(TEXTS[0]),
        model.get_text_embedding_batch(TEXTS),
    )


def test_the_end_of_a_long_text_counts(model):
    filler = "Nothing of interest happens here. " * 100
    end = model.get_query_embedding("Where is the lighthouse?")
    with_end = model.get_text_embedding(filler + "The lighthouse stands on the northern cape. " * 20)
    without = model.get_text_embedding(filler)
    assert model.similarity(end, with_end) > model.similarity(end, without) + 0.01


def test_a_model_is_named_after_what_makes_its_vectors_comparable(model):
    assert model.model_name == load_bundled().model_id
    assert model.class_name() == "RecallEmbedding"


@pytest.mark.parametrize("copy", [lambda m: pickle.loads(pickle.dumps(m)), lambda m: type(m).from_dict(m.to_dict())])
def test_a_copy_is_the_same_model(model, copy):
    assert copy(model).get_query_embedding("x") == model.get_query_embedding("x")


class Other:
    model_id, dimensions = "other", 2

    def embed_passages(self, texts):
        return load_bundled().embed_passages(texts)[:, :2]

    embed_queries = embed_passages


def test_any_embedder_of_recall_core_will_do_but_its_copy_is_never_another_model():
    model = RecallEmbedding(Other())
    assert (model.model_name, len(model.get_text_embedding("x"))) == ("other", 2)
    with pytest.raises(ValueError, match="not 'other'; name another with model="):
        RecallEmbedding.from_dict(model.to_dict())


def test_a_model_that_is_not_there_is_named():
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        RecallEmbedding("./nowhere")


def test_llamaindex_takes_it_as_a_model(model):
    assert resolve_embed_model(model) is model
