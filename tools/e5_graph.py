"""Builds the ONNX graph of multilingual-e5-small (a BERT encoder) with 8-bit linear layers.

The word table has one scale a row. A linear layer has one scale an output and weights of 7 bits, so that the 8-bit
kernels of CPUs without VNNI don't saturate. Activations are quantised with one scale a token, not one a tensor as
DynamicQuantizeLinear does: a token's result then does not depend on what else is in the batch.

The order and the names of nodes and constants are part of the bytes that `build_default_model.py` reproduces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from e5_weights import Weights
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

_TABLE_MAX = 127
_WEIGHT_MAX = 63
_SMALLEST_SCALE = 1e-8
_MASKED = -10_000


def build_graph(weights: Weights, kept: NDArray[np.int64]) -> onnx.ModelProto:
    """Return the model for the rows `kept` of the vocabulary: input_ids, attention_mask -> last_hidden_state."""
    builder = _Builder(weights)
    builder.add_embeddings(kept)
    builder.add_mask()
    builder.add_shared_constants()
    for layer in range(weights.layers):
        builder.add_layer(layer)
    names = ["input_ids", "attention_mask"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"]) for name in names]
    hidden = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "seq", weights.hidden])
    graph = helper.make_graph(builder.nodes, "multilingual-e5-small", inputs, [hidden], builder.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="recall-core-research")
    model.ir_version = 8
    return model


class _Builder:
    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._quantized: set[str] = set()

    def _constant(self, name: str, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def _node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=f"{kind}_{output}", **attributes))
        return output

    def _norm(self, value: str, names: tuple[str, str], tensor: str, output: str) -> None:
        scale = self._constant(names[0], self.weights.floats(f"{tensor}.w"))
        shift = self._constant(names[1], self.weights.floats(f"{tensor}.b"))
        epsilon = float(self.weights.epsilon)
        self._node("LayerNormalization", [value, scale, shift], output, axis=-1, epsilon=epsilon)

    def add_embeddings(self, kept: NDArray[np.int64]) -> None:
        weights = self.weights
        table = weights.matrix("emb.word", weights.vocabulary, weights.hidden)[kept]
        scale = _scale(np.abs(table).max(axis=1, keepdims=True), _TABLE_MAX)
        self._constant("word_q", _quantize(table, scale, _TABLE_MAX))
        self._constant("word_s", scale.astype(np.float16))
        self._node("Gather", ["word_q", "input_ids"], "we_q")
        self._node("Cast", ["we_q"], "we_f", to=TensorProto.FLOAT)
        self._node("Gather", ["word_s", "input_ids"], "we_s16")
        self._node("Cast", ["we_s16"], "we_s", to=TensorProto.FLOAT)
        self._node("Mul", ["we_f", "we_s"], "we")
        positions = weights.floats("emb.pos").reshape(weights.positions, weights.hidden)
        types = weights.floats("emb.type").reshape(weights.types, weights.hidden)
        self._constant("pos", positions + types[0])
        self._node("Shape", ["input_ids"], "shp")
        self._constant("i1", np.array(1))
        self._constant("ax0", np.array([0]))
        self._node("Gather", ["shp", "i1"], "S")
        self._node("Unsqueeze", ["S", "ax0"], "S1")
        self._node("Slice", ["pos", "ax0", "S1", "ax0"], "pe")
        self._node("Add", ["we", "pe"], "e0")
        self._norm("e0", ("eln_w", "eln_b"), "emb.ln", "x_0")

    def add_mask(self) -> None:
        self._node("Cast", ["attention_mask"], "mf", to=TensorProto.FLOAT)
        self._constant("one", np.array(1, np.float32))
        self._constant("neg", np.array(_MASKED, np.float32))
        self._constant("ax12", np.array([1, 2]))
        self._node("Unsqueeze", ["mf", "ax12"], "mu")
        self._node("Sub", ["one", "mu"], "m1")
        self._node("Mul", ["m1", "neg"], "bias")

    def add_shared_constants(self) -> None:
        width = self.weights.hidden // self.weights.heads
        self._constant("shp4", np.array([0, 0, self.weights.heads, width]))
        self._constant("shp3", np.array([0, 0, self.weights.hidden]))
        self._constant("scale", np.array(1 / np.sqrt(width), np.float32))
        self._constant("sq2", np.array(np.sqrt(2), np.float32))
        self._constant("half", np.array(0.5, np.float32))
        self._constant("r127", np.array(1 / 127, np.float32))
        self._constant("tiny", np.array(_SMALLEST_SCALE, np.float32))
        self._constant("c1285", np.array(128.5, np.float32))
        self._constant("z128", np.array(128, np.uint8))

    def add_layer(self, layer: int) -> None:
        prefix, hidden = f"l{layer}.", self.weights.hidden
        self._add_attention(prefix, f"x_{layer}")
        self._linear(f"{prefix}ctx", f"{prefix}ao", (hidden, hidden))
        self._node("Add", [f"{prefix}ao", f"x_{layer}"], f"{prefix}r1")
        self._norm(f"{prefix}r1", (f"{prefix}aln.w", f"{prefix}aln.b"), f"{prefix}aln", f"{prefix}h1")
        self._add_feed_forward(prefix)
        self._node("Add", [f"{prefix}fo", f"{prefix}h1"], f"{prefix}r2")
        output = "last_hidden_state" if layer == self.weights.layers - 1 else f"x_{layer + 1}"
        self._norm(f"{prefix}r2", (f"{prefix}oln.w", f"{prefix}oln.b"), f"{prefix}oln", output)

    def _add_attention(self, prefix: str, value: str) -> None:
        for part in "qkv":
            self._linear(value, prefix + part, (self.weights.hidden, self.weights.hidden))
            self._node("Reshape", [prefix + part, "shp4"], f"{prefix}{part}4")
        for part, axes in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            self._node("Transpose", [f"{prefix}{part}4"], f"{prefix}{part}t", perm=axes)
        self._node("MatMul", [f"{prefix}qt", f"{prefix}kt"], f"{prefix}sc0")
        self._node("Mul", [f"{prefix}sc0", "scale"], f"{prefix}sc1")
        self._node("Add", [f"{prefix}sc1", "bias"], f"{prefix}sc2")
        self._node("Softmax", [f"{prefix}sc2"], f"{prefix}pr", axis=-1)
        self._node("MatMul", [f"{prefix}pr", f"{prefix}vt"], f"{prefix}cx")
        self._node("Transpose", [f"{prefix}cx"], f"{prefix}cxt", perm=[0, 2, 1, 3])
        self._node("Reshape", [f"{prefix}cxt", "shp3"], f"{prefix}ctx")

    def _add_feed_forward(self, prefix: str) -> None:
        hidden, inner = self.weights.hidden, self.weights.inner
        self._linear(f"{prefix}h1", f"{prefix}fi", (inner, hidden))
        # GELU: x * (1 + erf(x / sqrt 2)) / 2
        self._node("Div", [f"{prefix}fi", "sq2"], f"{prefix}g1")
        self._node("Erf", [f"{prefix}g1"], f"{prefix}g2")
        self._node("Add", [f"{prefix}g2", "one"], f"{prefix}g3")
        self._node("Mul", [f"{prefix}fi", f"{prefix}g3"], f"{prefix}g4")
        self._node("Mul", [f"{prefix}g4", "half"], f"{prefix}g")
        self._linear(f"{prefix}g", f"{prefix}fo", (hidden, inner))

    def _linear(self, value: str, name: str, shape: tuple[int, int]) -> None:
        """Add `value @ weights + bias`; `shape` is (outputs, inputs)."""
        matrix = self.weights.matrix(f"{name}.w", *shape).T
        scale = _scale(np.abs(matrix).max(axis=0), _WEIGHT_MAX)
        self._constant(f"{name}.w", _quantize(matrix, scale, _WEIGHT_MAX))
        self._constant(f"{name}.w.s", scale)
        self._quantize_tokens(value)
        self._node("MatMulInteger", [f"{value}_q", f"{name}.w", "z128"], f"{name}_i")
        self._node("Cast", [f"{name}_i"], f"{name}_f", to=TensorProto.FLOAT)
        self._node("Mul", [f"{name}_f", f"{value}_qs"], f"{name}_f2")
        self._node("Mul", [f"{name}_f2", f"{name}.w.s"], f"{name}_mm")
        self._node("Add", [f"{name}_mm", self._constant(f"{name}.b", self.weights.floats(f"{name}.b"))], name)

    def _quantize_tokens(self, value: str) -> None:
        """Add `value` as unsigned 8-bit numbers around 128, with one scale a token; once for all that read it."""
        if value in self._quantized:
            return
        self._quantized.add(value)
        self._node("Abs", [value], f"{value}_a")
        self._node("ReduceMax", [f"{value}_a"], f"{value}_m", axes=[-1], keepdims=1)
        self._node("Mul", [f"{value}_m", "r127"], f"{value}_qs0")
        self._node("Max", [f"{value}_qs0", "tiny"], f"{value}_qs")
        self._node("Div", [value, f"{value}_qs"], f"{value}_d")
        self._node("Add", [f"{value}_d", "c1285"], f"{value}_d2")  # + 128, and + 0.5 since Cast cuts off
        self._node("Cast", [f"{value}_d2"], f"{value}_q", to=TensorProto.UINT8)


def _scale(largest: NDArray[np.float32], steps: int) -> NDArray[np.float32]:
    return np.maximum(largest / steps, _SMALLEST_SCALE).astype(np.float32)


def _quantize(values: NDArray[np.float32], scale: NDArray[np.float32], steps: int) -> NDArray[np.int8]:
    return np.clip(np.rint(values / scale), -steps, steps).astype(np.int8)
