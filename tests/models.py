"""Tiny ONNX models in hub layout, made at test time: the hidden state of a token is its row of a table, plus half the
mean of the text's rows. So pooling, masks and inputs can be checked against a few lines of numpy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "query",
    "passage",
    ":",
    *["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "red", "blue", "中", "文"],
]
DIMENSIONS = 6
TABLE = np.random.default_rng(7).normal(size=(len(WORDS), DIMENSIONS)).astype(np.float32)
MASK = ("attention_mask",)
ALL = ("attention_mask", "token_type_ids")
MEAN = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
CLS = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}


def build_model(
    folder: Path,
    *,
    inputs: tuple[str, ...] = MASK,
    pooled: bool = False,
    table: np.ndarray = TABLE,
    config: dict | None = None,
    pooling: dict | None = None,
    prompts: dict | None = None,
    file: str = "model.onnx",
) -> Path:
    """Write a folder in hub layout. `pooled`: the model itself gives (texts, dimensions)."""
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(_graph(inputs, pooled, table), str(folder / file))
    _tokenizer().save(str(folder / "tokenizer.json"))
    declared = {"model_type": "bert", "hidden_size": table.shape[1], "max_position_embeddings": 64}
    write_json(folder / "config.json", {**declared, **(config or {})})
    if pooling is not None:
        write_json(folder / "1_Pooling" / "config.json", pooling)
    if prompts is not None:
        write_json(folder / "config_sentence_transformers.json", {"prompts": prompts})
    return folder


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def expected_vector(text: str, pooling: str, table: np.ndarray = TABLE) -> np.ndarray:
    """The unit vector of a text whose words are all in WORDS, separated by spaces."""
    ids = [WORDS.index(word) for word in ("[CLS]", *text.split(), "[SEP]")]
    rows = table[ids]
    hidden = rows + rows.mean(axis=0) / 2
    vector = hidden[0] if pooling == "cls" else hidden.mean(axis=0)
    return vector / np.linalg.norm(vector)


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    # As many files of the hubs have it: to be switched off by us.
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    return tokenizer


def _graph(inputs: tuple[str, ...], pooled: bool, table: np.ndarray) -> onnx.ModelProto:
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "input_ids"], ["rows"]),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "last"], ["weights"]),
        node("Mul", ["rows", "weights"], ["seen"]),
        node("ReduceSum", ["seen", "middle"], ["sum"], keepdims=1),
        node("ReduceSum", ["weights", "middle"], ["count"], keepdims=1),
        node("Div", ["sum", "count"], ["mean"]),
        node("Mul", ["mean", "half"], ["share"]),
        node("Add", ["rows", "share"], ["hidden"]),
    ]
    hidden = "hidden"
    if "token_type_ids" in inputs:  # zeros change nothing, but the input is asked for
        nodes += [
            node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            node("Unsqueeze", ["types", "last"], ["shift"]),
            node("Add", ["hidden", "shift"], ["typed"]),
        ]
        hidden = "typed"
    if pooled:
        nodes.append(node("ReduceMean", [hidden], ["sentence_embedding"], axes=[1], keepdims=0))
        output = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", table.shape[1]])
    else:
        nodes.append(node("Identity", [hidden], ["last_hidden_state"]))
        output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "seq", table.shape[1]])
    constants = {
        "table": table,
        "last": np.array([2], np.int64),
        "middle": np.array([1], np.int64),
        "half": np.array(0.5, np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"]) for name in ("input_ids", *inputs)],
        [output],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
