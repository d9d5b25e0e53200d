"""OnnxEmbedder at work over tiny models: pooling, inputs, batches, threads, windows and tokens."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import ALL, CLS, DIMENSIONS, MEAN, TABLE, WORDS, build_model, expected_vector

from recall_core.embedding import OnnxEmbedder
from recall_core.embedding.tokens import MAX_WINDOWS, _spread
from recall_core.errors import EmbeddingError, InvalidInputError


@pytest.fixture
def folder(tmp_path):
    return build_model(tmp_path / "model", pooling=MEAN)


# Pooling, inputs and outputs


def test_the_mean_of_all_tokens_is_the_vector_where_the_folder_says_mean(folder):
    [vector] = OnnxEmbedder(folder).embed_passages(["the cat sat"])
    np.testing.assert_allclose(vector, expected_vector("the cat sat", "mean"), rtol=1e-5)


def test_the_first_token_is_the_vector_where_the_folder_says_cls(tmp_path):
    embedder = OnnxEmbedder(build_model(tmp_path, inputs=ALL, pooling=CLS))
    [vector] = embedder.embed_passages(["the cat sat"])
    np.testing.assert_allclose(vector, expected_vector("the cat sat", "cls"), rtol=1e-5)


def test_the_newer_form_of_the_pooling_file_is_read(tmp_path):
    assert " cls " in OnnxEmbedder(build_model(tmp_path, pooling={"pooling_mode": "cls"})).model_id


def test_a_model_that_pools_by_itself_keeps_its_vector(tmp_path):
    [vector] = OnnxEmbedder(build_model(tmp_path, pooled=True, pooling=CLS)).embed_passages(["a mat"])
    np.testing.assert_allclose(vector, expected_vector("a mat", "mean"), rtol=1e-5)


@pytest.mark.parametrize("inputs", [("attention_mask",), ALL], ids=["two", "three"])
def test_a_model_is_fed_only_the_inputs_that_it_has(tmp_path, inputs):
    [vector] = OnnxEmbedder(build_model(tmp_path, inputs=inputs, pooling=MEAN)).embed_passages(["dog"])
    np.testing.assert_allclose(vector, expected_vector("dog", "mean"), rtol=1e-5)


def test_a_model_with_an_unknown_input_is_refused_by_name(tmp_path):
    embedder = OnnxEmbedder(build_model(tmp_path, inputs=("attention_mask", "pixel_values"), pooling=MEAN))
    with pytest.raises(InvalidInputError, match="pixel_values"):
        embedder.embed_passages(["dog"])


def test_vectors_are_float32_of_length_one(folder):
    vectors = OnnxEmbedder(folder).embed_passages(["the cat", "red dog ran"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_an_empty_list_gives_an_empty_array(folder):
    assert OnnxEmbedder(folder).embed_passages([]).shape == (0, DIMENSIONS)


def test_one_text_in_place_of_a_list_is_refused(folder):
    with pytest.raises(InvalidInputError, match="brackets"):
        OnnxEmbedder(folder).embed_queries("the cat")


def test_a_model_that_gives_nan_is_an_error(tmp_path):
    embedder = OnnxEmbedder(build_model(tmp_path, table=np.full_like(TABLE, np.nan), pooling=MEAN))
    with pytest.raises(EmbeddingError, match="NaN"):
        embedder.embed_passages(["dog"])


def test_a_model_that_gives_zeros_is_an_error(tmp_path):
    embedder = OnnxEmbedder(build_model(tmp_path, table=np.zeros_like(TABLE), pooling=MEAN))
    with pytest.raises(EmbeddingError, match="zeros"):
        embedder.embed_passages(["dog"])


def test_a_model_of_other_dimensions_than_its_configuration_is_an_error(tmp_path):
    embedder = OnnxEmbedder(build_model(tmp_path, config={"hidden_size": 99}, pooling=MEAN))
    with pytest.raises(EmbeddingError, match="99"):
        embedder.embed_passages(["dog"])


# Order, batches and threads


def test_results_keep_the_order_of_the_texts(folder):
    texts = ["the cat sat on a mat", "dog", "red blue", "the", "a dog ran on the mat"]
    vectors = OnnxEmbedder(folder).embed_passages(texts)
    np.testing.assert_allclose(vectors, [expected_vector(text, "mean") for text in texts], rtol=1e-5)


def test_a_text_has_its_vector_whatever_else_is_in_the_call(folder):
    embedder = OnnxEmbedder(folder)
    words = WORDS[7:]
    texts = [" ".join(words[i % 12] for i in range(start, start + 1 + start % 17)) for start in range(300)]
    bulk = embedder.embed_passages(texts)
    alone = [embedder.embed_passages([text])[0] for text in texts]
    np.testing.assert_allclose(bulk, alone, atol=1e-6)


def test_threads_that_embed_at_once_agree(folder):
    embedder = OnnxEmbedder(folder)
    texts = ["the cat sat", "dog", "red blue mat"]
    start = threading.Barrier(8)

    def embed():
        start.wait()
        return [embedder.embed_passages(texts) for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        results = [future.result() for future in [pool.submit(embed) for _ in range(8)]]
    first = results[0][0]
    assert all((vectors == first).all() for result in results for vectors in result)


# Windows and tokens


def test_the_window_leaves_room_for_the_prefix_and_the_special_tokens(folder):
    assert OnnxEmbedder(folder, passage_prefix="passage: ", max_length=20).window == 20 - 2 - 2


def test_a_text_that_fills_the_window_is_one_piece(folder):
    embedder = OnnxEmbedder(folder, passage_prefix="passage: ", max_length=10)
    text = " ".join(["cat"] * embedder.window)
    np.testing.assert_allclose(
        embedder.embed_passages([text])[0], expected_vector(f"passage : {text}", "mean"), rtol=1e-5
    )


def test_token_spans_are_those_of_the_text_alone(folder):
    text = "the  cat 中\nMat"
    spans = OnnxEmbedder(folder, passage_prefix="passage: ").token_spans(text)
    assert [text[start:end] for start, end in spans] == ["the", "cat", "中", "Mat"]


def test_token_spans_are_not_cut_by_the_truncation_of_the_file(folder):
    assert len(OnnxEmbedder(folder).token_spans("cat " * 500)) == 500


def test_half_a_surrogate_pair_shifts_no_offset(folder):
    text = "the \ud83d cat"
    assert [text[start:end] for start, end in OnnxEmbedder(folder).token_spans(text)] == ["the", "\ud83d", "cat"]


def test_a_special_token_spelled_in_a_text_is_text(folder):
    assert len(OnnxEmbedder(folder).token_spans("the [SEP] cat")) == 5


def test_a_query_over_the_window_is_the_mean_of_its_windows(folder):
    embedder = OnnxEmbedder(folder, max_length=12)  # 10 tokens of text, 9 are used where a text is cut
    halves = [" ".join(["cat"] * 9), " ".join(["dog"] * 9)]
    [vector] = embedder.embed_queries([" ".join(halves)])
    mean = np.mean([expected_vector(half, "mean") for half in halves], axis=0)
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), rtol=1e-5)


def test_every_window_of_a_long_query_has_the_prefix(folder):
    embedder = OnnxEmbedder(folder, query_prefix="query: ", max_length=14)
    halves = [" ".join(["cat"] * 9), " ".join(["dog"] * 9)]
    [vector] = embedder.embed_queries([" ".join(halves)])
    mean = np.mean([expected_vector(f"query : {half}", "mean") for half in halves], axis=0)
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), rtol=1e-5)


def test_long_and_short_texts_share_a_call(folder):
    embedder = OnnxEmbedder(folder, max_length=12)
    texts = ["dog", "cat " * 100, "mat"]
    alone = [embedder.embed_queries([text])[0] for text in texts]
    np.testing.assert_array_equal(embedder.embed_queries(texts), alone)


def test_a_query_of_a_megabyte_is_answered(folder):
    [vector] = OnnxEmbedder(folder, max_length=12).embed_queries(["cat " * 262_144])
    np.testing.assert_allclose(np.linalg.norm(vector), 1, rtol=1e-6)


def test_a_prefix_that_fills_the_model_is_refused(folder):
    with pytest.raises(InvalidInputError, match="max_length is 5"):
        OnnxEmbedder(folder, query_prefix="the cat sat", max_length=5).embed_queries(["dog"])


@given(st.integers(0, 5000), st.integers(1, 50))
def test_parts_are_in_order_and_at_most_as_large_as_asked(length, size):
    parts = _spread(length, size)
    assert len(parts) == min(MAX_WINDOWS, -(-length // size))
    assert all(0 < end - start <= size for start, end in parts)
    assert all(before[1] <= after[0] for before, after in pairwise(parts))
    assert not parts or (parts[0][0], parts[-1][1]) == (0, length)
