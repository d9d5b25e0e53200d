"""What OnnxEmbedder reads from a folder: files, pooling, prefixes, length, identity, and what is wrong with it."""

from __future__ import annotations

import logging
import shutil

import numpy as np
import pytest
from models import CLS, DIMENSIONS, MEAN, TABLE, build_model, expected_vector, write_json

from recall_core.embedding import OnnxEmbedder, OnnxEmbedderWithMeans, open_model
from recall_core.errors import InvalidInputError, ModelNotFoundError
from recall_core.models import Embedder, LanguageMeans, TokenWindow


@pytest.fixture
def folder(tmp_path):
    return build_model(tmp_path / "model", pooling=MEAN)


# Folders


def test_prefixes_come_from_the_prompts_of_the_folder(tmp_path):
    embedder = OnnxEmbedder(build_model(tmp_path, pooling=MEAN, prompts={"query": "query: ", "document": "passage: "}))
    vectors = [embedder.embed_queries(["cat"])[0], embedder.embed_passages(["cat"])[0]]
    wanted = [expected_vector("query : cat", "mean"), expected_vector("passage : cat", "mean")]
    np.testing.assert_allclose(vectors, wanted, rtol=1e-5)


def test_an_argument_overrides_the_folder(tmp_path):
    folder = build_model(tmp_path, pooling=CLS, prompts={"query": "query: "})
    [vector] = OnnxEmbedder(folder, pooling="mean", query_prefix="").embed_queries(["cat"])
    np.testing.assert_allclose(vector, expected_vector("cat", "mean"), rtol=1e-5)


def test_a_folder_that_says_nothing_on_pooling_means_the_mean_and_a_warning(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="recall_core"):
        embedder = OnnxEmbedder(build_model(tmp_path))
    assert " mean " in embedder.model_id
    assert "pass pooling=" in caplog.text


@pytest.mark.parametrize("place", ["bge-small-zh-v1.5", "models--BAAI--bge-small-zh-v1.5/snapshots/75c43b"])
def test_a_bge_model_without_a_pooling_file_takes_the_first_token(tmp_path, caplog, place):
    assert " cls " in OnnxEmbedder(build_model(tmp_path / place)).model_id
    assert not caplog.records


def test_an_e5_model_without_prefixes_is_warned_about(tmp_path, caplog):
    OnnxEmbedder(build_model(tmp_path / "multilingual-e5-small", pooling=MEAN))
    assert "passage_prefix='passage: '" in caplog.text


def test_a_pooling_that_is_not_supported_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="lasttoken"):
        OnnxEmbedder(build_model(tmp_path, pooling={"pooling_mode_lasttoken": True}))


def test_a_model_with_a_dense_layer_behind_it_is_refused(folder):
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
    write_json(
        folder / "modules.json",
        [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()],
    )
    with pytest.raises(InvalidInputError, match="Dense"):
        OnnxEmbedder(folder)


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        ({"max_position_embeddings": 64}, 64),
        ({"max_position_embeddings": 66, "model_type": "xlm-roberta", "pad_token_id": 1}, 64),
        ({"max_position_embeddings": None}, 512),
    ],
    ids=["bert", "roberta", "unknown"],
)
def test_the_window_follows_the_position_table(tmp_path, config, limit):
    assert OnnxEmbedder(build_model(tmp_path, config=config, pooling=MEAN)).window == limit - 2


def test_the_length_that_a_model_was_trained_for_counts(folder):
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 32})
    write_json(folder / "tokenizer_config.json", {"model_max_length": 1e30})
    assert OnnxEmbedder(folder).window == 30


def test_a_length_over_the_position_table_is_refused(folder):
    with pytest.raises(InvalidInputError, match="from 1 to 64"):
        OnnxEmbedder(folder, max_length=65)


def test_the_quantized_file_of_a_hub_folder_is_found(tmp_path):
    embedder = OnnxEmbedder(build_model(tmp_path, pooling=MEAN, file="onnx/model_quantized.onnx"))
    assert embedder.embed_passages(["cat"]).shape == (1, DIMENSIONS)


def test_a_file_of_another_name_is_named_in_the_error_and_can_be_chosen(tmp_path):
    build_model(tmp_path, pooling=MEAN, file="onnx/model_O4.onnx")
    with pytest.raises(ModelNotFoundError, match=r"onnx/model_O4\.onnx: name one by file="):
        OnnxEmbedder(tmp_path)
    assert OnnxEmbedder(tmp_path, file="onnx/model_O4.onnx").embed_passages(["cat"]).shape == (1, DIMENSIONS)


def test_a_path_without_a_folder_is_said_to_be_one(tmp_path):
    with pytest.raises(ModelNotFoundError, match="there is no folder"):
        OnnxEmbedder(tmp_path / "nothing")


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    with pytest.raises(ModelNotFoundError, match=file):
        OnnxEmbedder(folder)


def test_a_pointer_of_git_lfs_is_recognised(folder):
    (folder / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    with pytest.raises(ModelNotFoundError, match="git lfs pull"):
        OnnxEmbedder(folder)


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_truncated_file_is_an_error_on_first_use(folder, file):
    path = folder / file
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    embedder = OnnxEmbedder(folder)
    with pytest.raises(ModelNotFoundError, match=file):
        embedder.embed_passages(["cat"])


def test_a_damaged_configuration_is_an_error(folder):
    (folder / "config.json").write_text("<html>404</html>")
    with pytest.raises(ModelNotFoundError, match="damaged"):
        OnnxEmbedder(folder)


# Identity


@pytest.mark.parametrize(
    "changed", [{"pooling": "cls"}, {"query_prefix": "q: "}, {"passage_prefix": "p: "}, {"max_length": 32}]
)
def test_what_changes_vectors_changes_the_identity(folder, changed):
    assert OnnxEmbedder(folder, **changed).model_id != OnnxEmbedder(folder).model_id


def test_swapped_prefixes_are_another_identity(folder):
    one = OnnxEmbedder(folder, query_prefix="a", passage_prefix="b")
    other = OnnxEmbedder(folder, query_prefix="b", passage_prefix="a")
    assert one.model_id != other.model_id


def test_other_weights_are_another_identity(tmp_path):
    one = build_model(tmp_path / "one", pooling=MEAN)
    other = build_model(tmp_path / "other", pooling=MEAN, table=TABLE * 2)
    assert OnnxEmbedder(one).model_id != OnnxEmbedder(other).model_id


def test_external_weights_are_part_of_the_identity(folder):
    before = OnnxEmbedder(folder).model_id
    (folder / "model.onnx_data").write_bytes(b"weights")
    assert OnnxEmbedder(folder).model_id != before


def test_a_moved_folder_keeps_its_identity(folder, tmp_path):
    before = OnnxEmbedder(folder).model_id
    moved = shutil.move(folder, tmp_path / "elsewhere")
    assert OnnxEmbedder(moved).model_id == before


def test_an_identity_can_be_given(folder):
    assert OnnxEmbedder(folder, model_id="mine").model_id == "mine"


# Capabilities


def test_a_hub_folder_is_an_embedder_that_knows_its_window(folder):
    embedder = open_model(folder)
    assert isinstance(embedder, Embedder)
    assert isinstance(embedder, TokenWindow)


def test_only_a_folder_with_language_means_offers_them(folder):
    assert not isinstance(open_model(folder), LanguageMeans)
    np.savez(folder / "lang_means.npz", zh_query=np.ones(DIMENSIONS, np.float32))
    assert isinstance(open_model(folder), LanguageMeans)


def test_a_language_without_a_mean_is_refused(folder):
    np.savez(folder / "lang_means.npz", zh_query=np.ones(DIMENSIONS, np.float32))
    with pytest.raises(InvalidInputError, match="zh_query"):
        OnnxEmbedderWithMeans(folder).language_mean("fr", "query")


def test_language_means_of_the_wrong_size_are_damage(folder):
    np.savez(folder / "lang_means.npz", zh_query=np.ones(3, np.float32))
    with pytest.raises(ModelNotFoundError, match="damaged"):
        OnnxEmbedderWithMeans(folder).language_mean("zh", "query")
