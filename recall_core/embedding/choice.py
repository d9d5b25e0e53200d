"""What may be given as `embedder=`: the default, none, a folder, or any object that embeds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from recall_core.errors import InvalidInputError, ModelNotFoundError
from recall_core.models import Default, Embedder

from .fingerprint import check_whole
from .installed import find_folder
from .onnx import OnnxEmbedder, open_model

BUNDLED_FOLDER = Path(__file__).parent / "e5-small-zhen-int8"
BUNDLED_SIZES = {"model.onnx": 37_051_411, "tokenizer.json": 1_458_956, "lang_means.npz": 7_166}  # bytes
_MEMBERS = ("model_id", "dimensions", "embed_passages", "embed_queries")


def resolve_embedder(embedder: Embedder | str | os.PathLike[str] | Default | None) -> Embedder | None:
    """Return the embedder that is meant: the bundled one for DEFAULT, the model of a folder for a path or the
    name of a preset, else itself.

    Nothing is loaded yet. Raises ModelNotFoundError for a path that is no folder with a model and for a preset that was
    not downloaded, InvalidInputError for an object that lacks members of `Embedder`.
    """
    if embedder is None:
        return None
    if isinstance(embedder, Default):
        return load_bundled()
    if isinstance(embedder, str | os.PathLike):
        return open_model(find_folder(embedder, "embedder"))
    _check_members(embedder)
    return embedder


@cache
def load_bundled() -> OnnxEmbedder:
    """Return the embedder of the model that ships with recall_core; all callers of a process share one.

    It is multilingual-e5-small with 8-bit weights and a vocabulary for Chinese and English, 384 dimensions. Nothing is
    loaded before it is first used. Raises ModelNotFoundError if files of the package are missing or truncated.
    """
    return open_complete(BUNDLED_FOLDER, BUNDLED_SIZES)


def open_complete(folder: Path, sizes: Mapping[str, int]) -> OnnxEmbedder:
    """Open the model of a folder whose files must have the given sizes in bytes. Raises ModelNotFoundError."""
    try:
        for name, size in sizes.items():
            check_whole(folder / name, size)
        return open_model(folder)
    except ModelNotFoundError as error:
        raise ModelNotFoundError(
            f"the model that ships with recall_core is incomplete: {error}. Reinstall dualrecall, or open the memory "
            "with embedder=None for keyword search only"
        ) from error


def _check_members(embedder: Any) -> None:
    if isinstance(embedder, type):
        raise InvalidInputError(f"embedder is the class {embedder.__name__}; give an instance of it")
    # Asking the class first keeps properties from being run.
    missing = [name for name in _MEMBERS if not hasattr(type(embedder), name) and not hasattr(embedder, name)]
    if missing:
        raise InvalidInputError(
            f"embedder is a {type(embedder).__name__} without {', '.join(missing)}; give an object with "
            f"{', '.join(_MEMBERS)}, a folder with an ONNX model, the name of a preset, or None for keyword search only"
        )
