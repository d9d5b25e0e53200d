"""Tells model files apart without reading gigabytes: sizes and samples of their contents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from recall_core.errors import ModelNotFoundError

_SAMPLES = 64  # evenly spaced over a file, its head and tail among them
_SAMPLE_BYTES = 4096
_DIGITS = 12
_LFS_POINTER = b"version https://git-lfs"


def check_whole(path: Path, size: int | None = None) -> None:
    """Raise ModelNotFoundError if `path` is missing, empty, a Git LFS pointer, or not of `size` bytes."""
    if not path.is_file():
        raise ModelNotFoundError(f"{path} is missing; the folder of a model must have it")
    found = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise ModelNotFoundError(f"{path} is a Git LFS pointer, not the file itself; run `git lfs pull` there")
    if found == 0 or (size is not None and found != size):
        wanted = f"{size} bytes were expected" if size is not None else "it must not be empty"
        raise ModelNotFoundError(f"{path} has {found} bytes, {wanted}; download or install the model again")


def fingerprint(files: Sequence[Path], declared: Mapping[str, str] | None = None) -> str:
    """Return 12 hexadecimal digits for a model's files: the ONNX file first, then tokenizer and configuration.

    Where the configuration declares the sha256 of the files, these are taken at their word and nothing is read.
    Otherwise each file's size and samples of its content are hashed, external data of the ONNX file included.
    """
    digest = hashlib.sha256()
    if declared:
        for name in sorted(declared):
            digest.update(f"{name} {declared[name]}\n".encode())
    else:
        for path in (*files, *_external_data(files[0])):
            for part in _sample(path):
                digest.update(part)
    return digest.hexdigest()[:_DIGITS]


def _external_data(model: Path) -> list[Path]:
    # Weights over 2 GB lie beside the graph, as model.onnx_data or model.onnx.data.
    starts = (f"{model.name}_data", f"{model.name}.data")
    return sorted(path for path in model.parent.iterdir() if path.name.startswith(starts))


def _sample(path: Path) -> Iterator[bytes]:
    size = path.stat().st_size
    yield f"{size}\n".encode()
    with path.open("rb") as file:
        if size <= _SAMPLES * _SAMPLE_BYTES:
            yield file.read()
            return
        for sample in range(_SAMPLES):
            file.seek((size - _SAMPLE_BYTES) * sample // (_SAMPLES - 1))
            yield file.read(_SAMPLE_BYTES)
