"""Tiny ONNX models in hub layout, made at test time.

An embedding model's hidden state of a token is its row of a table, plus half the mean of the text's rows; so pooling,
masks and inputs can be checked against a few lines of numpy. A cross-encoder counts the words that a query and a text
share.
"""

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


def build_cross_encoder(
    folder: Path,
    *,
    inputs: tuple[str, ...] = MASK,
    weights: tuple[float, ...] = (1.0,),
    squeezed: bool = False,
    config: dict | None = None,
    file: str = "model.onnx",
) -> Path:
    """Write a folder in hub layout. Each label's logit is its weight times `count_shared`. Which words are the query's
    is read from token_type_ids if the model has them, else from the first [SEP]. `squeezed`: logits of shape (texts,).
    """
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(_pair_graph(inputs, weights, squeezed), str(folder / file))
    _tokenizer().save(str(folder / "tokenizer.json"))
    declared = {"model_type": "bert", "hidden_size": DIMENSIONS, "max_position_embeddings": 64}
    write_json(folder / "config.json", {**declared, **(config or {})})
    return folder


def count_shared(query: str, text: str) -> int:
    """Count the pairs of equal words, one of the query and one of the text, words as in `expected_vector`."""
    return sum(text.split().count(word) for word in query.split())


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
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
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
    return _assemble(nodes, inputs, output, constants)


def _pair_graph(inputs: tuple[str, ...], weights: tuple[float, ...], squeezed: bool) -> onnx.ModelProto:
    node = helper.make_node
    if "token_type_ids" in inputs:
        sides = [node("Cast", ["token_type_ids"], ["side"], to=TensorProto.FLOAT)]
    else:
        sides = [
            node("Equal", ["input_ids", "separator"], ["ends"]),
            node("Cast", ["ends"], ["ended"], to=TensorProto.FLOAT),
            node("CumSum", ["ended", "second"], ["side"], exclusive=1),
        ]
    nodes = [
        *sides,
        node("Greater", ["input_ids", "separator"], ["is_word"]),  # the special tokens come first
        node("Cast", ["is_word"], ["words"], to=TensorProto.FLOAT),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Mul", ["words", "mask"], ["seen"]),
        node("Mul", ["seen", "side"], ["answering"]),
        node("Sub", ["seen", "answering"], ["asking"]),
        node("Unsqueeze", ["input_ids", "last"], ["down"]),
        node("Unsqueeze", ["input_ids", "middle"], ["across"]),
        node("Equal", ["down", "across"], ["equal"]),
        node("Cast", ["equal"], ["same"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["asking", "last"], ["asking_down"]),
        node("Unsqueeze", ["answering", "middle"], ["answering_across"]),
        node("Mul", ["asking_down", "answering_across"], ["pairs"]),
        node("Mul", ["pairs", "same"], ["shared_pairs"]),
        node("ReduceSum", ["shared_pairs", "both"], ["shared"], keepdims=0),
        node("Unsqueeze", ["shared", "middle"], ["column"]),
        node("Mul", ["column", "weights"], ["labels"]),
        node("Squeeze", ["labels", "middle"], ["logits"]) if squeezed else node("Identity", ["labels"], ["logits"]),
    ]
    constants = {
        "separator": np.array(3, np.int64),
        "second": np.array(1, np.int64),
        "last": np.array([2], np.int64),
        "middle": np.array([1], np.int64),
        "both": np.array([1, 2], np.int64),
        "weights": np.array(weights, np.float32),
    }
    shape = ["batch"] if squeezed else ["batch", len(weights)]
    return _assemble(nodes, inputs, helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape), constants)


def _assemble(
    nodes: list[onnx.NodeProto],
    inputs: tuple[str, ...],
    output: onnx.ValueInfoProto,
    constants: dict[str, np.ndarray],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"]) for name in ("input_ids", *inputs)],
        [output],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
