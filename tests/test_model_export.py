"""Exporting a checkpoint: what is checked before, the quantisation, and the settings that the folder gets."""

from __future__ import annotations

import json
import logging
import shutil
import warnings

import numpy as np
import pytest
from models import CLS, MEAN, WORDS, build_cross_encoder, build_model, write_json

from recall_core import CrossEncoder, Memory, OnnxEmbedder
from recall_core.embedding import export as exporting
from recall_core.embedding.export import NEEDED, check_libraries, export, find_kind, quantize, write_settings
from recall_core.embedding.spec import Overrides, read_config, read_settings
from recall_core.errors import InvalidInputError, ModelNotFoundError

WIDE = np.random.default_rng(3).normal(size=(19, 64)).astype(np.float32)


@pytest.fixture
def checkpoint(tmp_path):
    """A folder with all that is looked at before PyTorch is needed."""
    folder = build_model(tmp_path / "checkpoint", pooling=MEAN, config={"_name_or_path": "owner/tiny"})
    (folder / "model.onnx").unlink()
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def without_libraries(monkeypatch):
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)


def test_missing_libraries_are_named_with_the_way_to_get_them(checkpoint, tmp_path, without_libraries):
    with pytest.raises(InvalidInputError, match=r'torch, transformers.*pip install "dualrecall\[export\]"'):
        export(checkpoint, tmp_path / "out", Overrides())
    assert not (tmp_path / "out").exists()


def test_the_named_libraries_are_those_of_the_extra():
    from importlib.metadata import requires

    extra = [wanted for wanted in requires("dualrecall") or [] if "extra ==" in wanted]
    if not extra:
        pytest.skip("the installed package is older than the extra")
    assert {name for wanted in extra for name in NEEDED if wanted.startswith(f"{name}>")} == set(NEEDED)


def test_libraries_that_are_there_are_no_error(monkeypatch):
    monkeypatch.setattr(exporting, "NEEDED", ("json",))
    check_libraries()


def test_a_folder_that_is_not_empty_is_never_written_into(checkpoint, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(InvalidInputError, match="is not empty"):
        export(checkpoint, tmp_path / "out", Overrides())


@pytest.mark.parametrize(
    ("file", "said"),
    [("config.json", r"config\.json"), ("model.safetensors", "no weights"), ("tokenizer.json", "no tokenizer")],
)
def test_what_a_checkpoint_lacks_is_named(checkpoint, tmp_path, file, said):
    (checkpoint / file).unlink()
    with pytest.raises(ModelNotFoundError, match=said):
        export(checkpoint, tmp_path / "out", Overrides())


def test_a_path_that_is_no_folder_is_named(tmp_path):
    with pytest.raises(ModelNotFoundError, match="no folder"):
        export(tmp_path / "nothing", tmp_path / "out", Overrides())


def test_a_module_that_we_can_not_run_is_refused_before_anything_is_loaded(checkpoint, tmp_path, without_libraries):
    write_json(checkpoint / "modules.json", [{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])
    with pytest.raises(InvalidInputError, match="Dense"):
        export(checkpoint, tmp_path / "out", Overrides())


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"architectures": ["BertModel"]}, "embedder"),
        ({}, "embedder"),
        ({"architectures": ["XLMRobertaForSequenceClassification"], "id2label": {"0": "LABEL_0"}}, "reranker"),
        ({"architectures": ["BertForSequenceClassification"], "id2label": {"0": "no", "1": "yes"}}, "reranker"),
    ],
)
def test_the_kind_of_a_checkpoint_is_read_from_its_architecture(config, kind):
    assert find_kind(config) == kind


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "t5"}, "only encoders"),
        ({"architectures": ["BertForSequenceClassification"], "id2label": dict.fromkeys("012", "x")}, "3 classes"),
    ],
)
def test_a_model_of_another_kind_is_refused(config, said):
    with pytest.raises(InvalidInputError, match=said):
        find_kind(config)


# Settings


def finish(checkpoint, overrides=None):
    """Do what an export does after the model is traced, and return the configuration."""
    config = read_config(checkpoint)
    settings = read_settings(checkpoint, config, overrides or Overrides())
    folder = checkpoint.parent / "out"
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(checkpoint / name, folder / name)
    write_settings(folder, config, settings, settings.max_length)
    return json.loads((folder / "config.json").read_text("utf-8"))


def test_pooling_is_read_where_modules_json_says_it_lies(tmp_path):
    folder = build_model(tmp_path / "checkpoint")
    kinds = {"": "Transformer", "2_Mine": "Pooling", "3_Normalize": "Normalize"}
    entries = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()]
    write_json(folder / "modules.json", entries)
    write_json(folder / "2_Mine" / "config.json", CLS)
    assert finish(folder)["pooling"] == "cls"


def test_prefixes_and_length_go_into_the_folder(tmp_path):
    prompts = {"query": "query: ", "document": "passage: "}
    folder = build_model(tmp_path / "checkpoint", pooling=MEAN, prompts=prompts)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 32})
    config = finish(folder)
    assert (config["query_prefix"], config["passage_prefix"], config["max_length"]) == ("query: ", "passage: ", 32)


def test_an_exported_folder_embeds_as_its_checkpoint(tmp_path):
    folder = build_model(tmp_path / "checkpoint", pooling=CLS, prompts={"query": "query: "}, config={"pad_token_id": 0})
    finish(folder)
    exported = OnnxEmbedder(tmp_path / "out")
    np.testing.assert_array_equal(exported.embed_queries(["cat"]), OnnxEmbedder(folder).embed_queries(["cat"]))


def test_arguments_win_over_the_checkpoint(tmp_path):
    folder = build_model(tmp_path / "checkpoint", pooling=MEAN, prompts={"query": "query: "})
    config = finish(folder, Overrides(pooling="cls", query_prefix="", max_length=16))
    assert (config["pooling"], config["query_prefix"], config["max_length"]) == ("cls", "", 16)


def test_the_settings_of_a_reranker_are_its_length_alone(tmp_path):
    folder = build_cross_encoder(tmp_path)
    write_settings(folder, {"_name_or_path": "owner/tiny"}, None, 16)
    assert json.loads((folder / "config.json").read_text("utf-8"))["name"] == "tiny"
    assert CrossEncoder(folder).score("cat", ["cat cat"]) == [2]


# Quantisation


def test_a_quantised_model_is_smaller_and_close_to_the_original(tmp_path):
    table = np.repeat(WIDE, 400, axis=0)  # as large as makes a difference
    whole = build_model(tmp_path / "whole", pooling=MEAN, table=table)
    small = tmp_path / "small"
    shutil.copytree(whole, small)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quantize(whole / "model.onnx", small / "model.onnx")
    assert (small / "model.onnx").stat().st_size < (whole / "model.onnx").stat().st_size / 3
    vectors = [OnnxEmbedder(folder).embed_passages(["the cat sat", "中 文"]) for folder in (whole, small)]
    assert ((vectors[0] * vectors[1]).sum(axis=1) > 0.99).all()


def test_quantising_keeps_the_libraries_hints_to_itself(tmp_path, caplog):
    folder = build_model(tmp_path, pooling=MEAN)
    with caplog.at_level(logging.INFO):
        quantize(folder / "model.onnx", folder / "small.onnx")
    assert caplog.records == []
    assert logging.root.manager.disable == 0


# With PyTorch, where it is installed


@pytest.mark.parametrize(("kind", "quantized"), [("embedder", True), ("embedder", False), ("reranker", True)])
@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_of_pytorch_is_exported_and_used(tmp_path, kind, quantized):
    for library in NEEDED:
        pytest.importorskip(library)
    from transformers import BertConfig, BertForSequenceClassification, BertModel

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    config = BertConfig(vocab_size=len(WORDS), max_position_embeddings=64, num_labels=1, **sizes)
    model = BertModel(config) if kind == "embedder" else BertForSequenceClassification(config)
    checkpoint, folder = tmp_path / "checkpoint", tmp_path / "out"
    shutil.copytree(build_model(tmp_path / "tiny", pooling=CLS), checkpoint)
    (checkpoint / "model.onnx").unlink()
    model.save_pretrained(checkpoint)

    done = export(checkpoint, folder, Overrides(), quantized=quantized)
    assert {path.name for path in folder.iterdir()} - {"model.onnx.data"} == {
        "config.json",
        "model.onnx",
        "tokenizer.json",
    }
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    if kind == "embedder":
        assert done.likeness > 0.98
        with Memory.open(":memory:", embedder=folder) as memory:
            memory.add("the cat sat on a mat")
            assert len(memory.search("cat", mode="semantic")) == 1
    else:
        assert len(CrossEncoder(folder).score("the cat", ["a cat sat", "the dog"])) == 2
