"""Turns a checkpoint as PyTorch and the model hubs keep it into a folder with a quantised ONNX model for this library.

torch, transformers, onnx and onnxscript are needed for it and for nothing else: `pip install "dualrecall[export]"`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from recall_core.errors import EmbeddingError, InvalidInputError, ModelNotFoundError

from .presets import Kind
from .spec import HubSettings, Overrides, read_config, read_max_length, read_settings, read_spec

if TYPE_CHECKING:
    from recall_core.models import Vectors

    from .tokens import TokenIds

NEEDED = ("torch", "transformers", "onnx", "onnxscript")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
MODEL = "model.onnx"
_TOKENIZER = "tokenizer.json"
_VOCABULARIES = ("vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model")
_ENCODER_DECODERS = {"t5", "mt5", "umt5", "bart", "mbart", "marian"}
_SAMPLES = ("The server is backed up every night.", "数据库每天凌晨备份", "def add(a, b): return a + b", "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An exported model. `likeness` compares it with the checkpoint on a few texts: of an embedder the least cosine of
    their vectors, of a reranker None.
    """

    folder: Path
    kind: Kind
    size: int  # bytes of the model
    dimensions: int | None
    likeness: float | None


def export(checkpoint: Path, folder: Path, overrides: Overrides, *, quantized: bool = True) -> Exported:
    """Export the model of a local checkpoint into `folder`, which must not exist or be empty.

    The checkpoint has `config.json`, a tokenizer and weights as safetensors or a PyTorch file. Pooling, prefixes and
    length are read from its files as `OnnxEmbedder` does, `overrides` win. A checkpoint for text classification becomes
    a reranker. Nothing is downloaded, and no code of the checkpoint is run.

    `quantized`: weights of 7 bits, a scale for each output channel, activations of 8 bits. 8-bit weights would overflow
    on CPUs without VNNI (https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html).

    Raises InvalidInputError for a folder that can't be used, a model of an unsupported kind, and where the libraries
    are missing; ModelNotFoundError if files of the checkpoint are missing; EmbeddingError if the export fails.
    """
    config = _check_checkpoint(checkpoint)
    kind = find_kind(config)
    settings = read_settings(checkpoint, config, overrides) if kind == "embedder" else None
    max_length = settings.max_length if settings else read_max_length(checkpoint, config, overrides.max_length)
    _check_target(folder)
    check_libraries()
    with _build(folder) as building:
        _save_tokenizer(checkpoint, building / _TOKENIZER)
        with TemporaryDirectory(dir=building.parent, prefix=f".{folder.name}-") as scratch:
            model = _load(checkpoint, kind)
            _trace(model, kind, max_length, Path(scratch) / MODEL)
            if quantized:
                quantize(Path(scratch) / MODEL, building / MODEL)
            else:
                for file in Path(scratch).iterdir():
                    shutil.move(file, building / file.name)
        write_settings(building, config, settings, max_length)
        likeness = _compare(model, building, settings) if settings else None
        size = sum(file.stat().st_size for file in building.glob(f"{MODEL}*"))
    return Exported(
        folder=folder,
        kind=kind,
        size=size,
        dimensions=settings.dimensions if settings else None,
        likeness=likeness,
    )


def check_libraries() -> None:
    """Raise InvalidInputError if libraries that an export needs are not installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise InvalidInputError(
            f"exporting needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed; "
            'install them by: pip install "dualrecall[export]"'
        )


def find_kind(config: dict[str, Any]) -> Kind:
    """Return what a checkpoint is by its configuration. Raises InvalidInputError for a kind that can't be exported."""
    if config.get("is_encoder_decoder") or config.get("model_type") in _ENCODER_DECODERS:
        raise InvalidInputError(f"the model is of the type {config.get('model_type')}; only encoders can be exported")
    names = [str(name) for name in config.get("architectures") or ()]
    if not any(name.endswith("ForSequenceClassification") for name in names):
        return "embedder"
    labels = len(config.get("id2label") or {}) or config.get("num_labels", 1)
    if labels > 2:
        raise InvalidInputError(f"the model tells {labels} classes apart; a reranker has one label, or two")
    return "reranker"


def quantize(source: Path, target: Path) -> None:
    """Write an ONNX model with weights of 7 bits, one scale an output channel; activations are quantised as it runs.

    Raises EmbeddingError if onnxruntime can't do it.
    """
    from .session import stay_silent

    stay_silent()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    try:
        with _quiet():
            quantize_dynamic(source, target, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
    except Exception as error:  # the library's exceptions have no common base
        raise EmbeddingError(f"{source.name} can't be quantised: {error}; export it with --precision fp32") from error


def write_settings(folder: Path, config: dict[str, Any], settings: HubSettings | None, max_length: int) -> None:
    """Write the `config.json` of our layout (see spec.py), for an embedder with `settings` or else for a reranker."""
    described: dict[str, object]
    if settings is None:
        name = str(config.get("_name_or_path") or config.get("model_type") or "reranker")
        described = {"name": name.rpartition("/")[2], "max_position_embeddings": max_length}
    else:
        described = {
            "name": settings.name,
            "dim": settings.dimensions,
            "pooling": settings.pooling,
            "normalize": True,
            "max_length": max_length,
            "query_prefix": settings.query_prefix,
            "passage_prefix": settings.passage_prefix,
        }
    described["sha256"] = {path.name: _digest(path) for path in sorted(folder.iterdir()) if path.name != "config.json"}
    text = json.dumps(described, ensure_ascii=False, indent=1) + "\n"
    (folder / "config.json").write_text(text, encoding="utf-8")


def _check_checkpoint(checkpoint: Path) -> dict[str, Any]:
    if not checkpoint.is_dir():
        raise ModelNotFoundError(f"there is no folder {str(checkpoint)!r}; give the folder of a checkpoint")
    config = read_config(checkpoint)
    if not any(path for pattern in WEIGHTS for path in checkpoint.glob(pattern)):
        raise ModelNotFoundError(f"{checkpoint} has no weights: neither {' nor '.join(WEIGHTS)}")
    # Without any of these files transformers would make up an empty tokenizer.
    if not any((checkpoint / name).is_file() for name in (_TOKENIZER, *_VOCABULARIES)):
        raise ModelNotFoundError(
            f"{checkpoint} has no tokenizer: neither {_TOKENIZER} nor {' nor '.join(_VOCABULARIES)}"
        )
    return config


def _check_target(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInputError(f"{folder} exists and is not empty; name another folder")


@contextmanager
def _build(folder: Path) -> Iterator[Path]:
    """Yield a folder beside `folder` that takes its name when all went well, and is removed otherwise."""
    building = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        building.mkdir(parents=True)
        yield building
        if folder.exists():
            folder.rmdir()
        building.rename(folder)
    except OSError as error:
        raise EmbeddingError(f"{error.filename or folder} can't be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _save_tokenizer(checkpoint: Path, target: Path) -> None:
    if (checkpoint / _TOKENIZER).is_file():
        shutil.copyfile(checkpoint / _TOKENIZER, target)
        return
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(checkpoint, local_files_only=True, use_fast=True)
        tokenizer.backend_tokenizer.save(str(target))
    except Exception as error:  # many kinds, by what is missing
        raise ModelNotFoundError(f"{checkpoint} has no tokenizer that can be read: {error}") from error


def _load(checkpoint: Path, kind: Kind) -> Any:
    import transformers

    auto = transformers.AutoModel if kind == "embedder" else transformers.AutoModelForSequenceClassification
    transformers.utils.logging.disable_progress_bar()
    try:
        return auto.from_pretrained(checkpoint, local_files_only=True, dtype="float32").eval()
    except Exception as error:  # many kinds, by what is missing
        raise ModelNotFoundError(f"the model of {checkpoint} can't be loaded: {error}") from error


def _trace(model: Any, kind: Kind, max_length: int, target: Path) -> None:
    """Write a PyTorch model as ONNX, for batches and texts of any size."""
    import torch

    output = "last_hidden_state" if kind == "embedder" else "logits"
    names = ["input_ids", "attention_mask"]
    if getattr(model.config, "type_vocab_size", 0) > 1:
        names.append("token_type_ids")

    class Only(torch.nn.Module):  # type: ignore[misc]
        """The model with named inputs and a single output."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Any) -> Any:
            return getattr(self.model(**dict(zip(names, given, strict=True))), output)

    ids = torch.full((2, min(9, max_length)), 5, dtype=torch.int64)
    values = (ids, torch.ones_like(ids), torch.zeros_like(ids))[: len(names)]
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", max=max_length)}
    try:
        with _quiet():
            torch.onnx.export(
                Only().eval(),
                values,
                target,
                input_names=names,
                output_names=[output],
                dynamic_shapes=(tuple(sizes for _ in names),),
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # the exporter has many kinds
        raise EmbeddingError(f"PyTorch can't export a {type(model).__name__}: {error}") from error
    _strip(target)


def _strip(file: Path) -> None:
    """Remove what PyTorch notes of each node: where in which source file it came from, larger than a small model."""
    import onnx

    model = onnx.load(file, load_external_data=False)
    for node in model.graph.node:
        node.ClearField("metadata_props")
    onnx.save(model, file)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the libraries' hints to developers off the terminal; their errors are raised."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def _compare(model: Any, folder: Path, settings: HubSettings) -> float:
    """Return the least cosine between vectors of the exported model and of the original one."""
    import numpy as np

    from .onnx import OnnxEmbedder
    from .tokens import Tokens

    embedder = OnnxEmbedder(folder)
    tokens = Tokens(read_spec(folder, Overrides()))
    ids = [tokens.encode(text, settings.passage_prefix)[0] for text in _SAMPLES]
    mine = np.concatenate([embedder.embed_passages([text]) for text in _SAMPLES])
    original = np.concatenate([_embed(model, text, settings) for text in ids])
    return float((mine * original).sum(axis=1).min())


def _embed(model: Any, ids: TokenIds, settings: HubSettings) -> Vectors:
    import torch

    from recall_core.vectors import normalize

    with torch.no_grad():
        states = model(input_ids=torch.tensor(ids)[None]).last_hidden_state.numpy()
    return normalize(states[:, 0] if settings.pooling == "cls" else states.mean(axis=1))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
