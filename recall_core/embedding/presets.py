"""The models that `recall models pull` knows: where each lies, at which commit, and how it is used.

Every file is pinned by commit, size and SHA-256, so that a mirror can be slow but not wrong. The settings are those of
the models' cards. Where a repository has 8-bit files for several kinds of CPU, the one that runs well on all of them is
taken, so that a memory file can move between machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recall_core.errors import InvalidInputError

from .spec import Pooling

Kind = Literal["embedder", "reranker"]

_ZH_QUERY = "为这个句子生成表示以用于检索相关文章："


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model: `name` in its folder here, `path` in the repository, its size in bytes and its SHA-256."""

    name: str
    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A model of a hub, and what is to be known to use it."""

    name: str
    kind: Kind = "embedder"
    languages: str
    licence: str
    repository: str
    commit: str
    files: tuple[ModelFile, ...]
    dimensions: int | None = None  # of a vector; a reranker gives none
    pooling: Pooling | None = None
    query_prefix: str = ""
    passage_prefix: str = ""
    max_length: int = 512  # tokens

    @property
    def size(self) -> int:
        """Return how many bytes are downloaded."""
        return sum(file.size for file in self.files)

    @property
    def folder(self) -> str:
        """Return the name of its folder, another one for each commit."""
        return f"{self.name}-{self.commit[:8]}"


PRESETS: tuple[Preset, ...] = (
    Preset(
        name="bge-small-zh-v1.5",
        languages="Chinese",
        licence="MIT",
        repository="Xenova/bge-small-zh-v1.5",
        commit="75c43b069aac4d136ba6bc1122f995fedcfd2781",
        files=(
            ModelFile(
                "model.onnx",
                "onnx/model_quantized.onnx",
                24_010_842,
                "15b717c382bcb518ba457b93ea6850ede7f4f1cd8937454aa06972366cd19bcc",
            ),
            ModelFile(
                "tokenizer.json",
                "tokenizer.json",
                439_125,
                "48cea5d44424912a6fd1ea647bf4fe50b55ab8b1e5879c3275f80e339e8fae26",
            ),
        ),
        dimensions=512,
        pooling="cls",
        query_prefix=_ZH_QUERY,
    ),
    Preset(
        name="bge-large-zh-v1.5",
        languages="Chinese",
        licence="MIT",
        repository="Xenova/bge-large-zh-v1.5",
        commit="a48549b3259a6165364f226599cd91f39923d5d5",
        files=(
            ModelFile(
                "model.onnx",
                "onnx/model.onnx",
                1_298_376_457,
                "8a78f0b748a6746a0a2ebe0563fddb311762e260abcadaa2b9f19c6964b745fe",
            ),
            ModelFile(
                "tokenizer.json",
                "tokenizer.json",
                439_124,
                "7dfbf1966ebf99d471c3796e9b457329d2b2182b817e144f1e904b957745c839",
            ),
        ),
        dimensions=1024,
        pooling="cls",
        query_prefix=_ZH_QUERY,
    ),
    Preset(
        name="bge-m3",
        languages="over 100",
        licence="MIT",
        repository="BAAI/bge-m3",
        commit="5617a9f61b028005a4858fdac845db406aefb181",
        files=(
            ModelFile(
                "model.onnx",
                "onnx/model.onnx",
                724_923,
                "f84251230831afb359ab26d9fd37d5936d4d9bb5d1d5410e66442f630f24435b",
            ),
            # The graph names these two, in its own folder.
            ModelFile(
                "model.onnx_data",
                "onnx/model.onnx_data",
                2_266_820_608,
                "1eebfb28493f67bba03ce0ef64bfdc7fc5a3bd9d7493f818bb1d78cd798416b4",
            ),
            ModelFile(
                "Constant_7_attr__value",
                "onnx/Constant_7_attr__value",
                65_552,
                "cdf16f72c5d07b36484056e601ed9687f78477e5d85cee85a34f2406b7fb5906",
            ),
            ModelFile(
                "tokenizer.json",
                "onnx/tokenizer.json",
                17_082_821,
                "6710678b12670bc442b99edc952c4d996ae309a7020c1fa0096dd245c2faf790",
            ),
        ),
        dimensions=1024,
        pooling="cls",
        max_length=8192,
    ),
    Preset(
        name="multilingual-e5-small",
        languages="about 100",
        licence="MIT",
        repository="Xenova/multilingual-e5-small",
        commit="761b726dd34fb83930e26aab4e9ac3899aa1fa78",
        files=(
            ModelFile(
                "model.onnx",
                "onnx/model_quantized.onnx",
                118_308_185,
                "f80102d3f2a1229f387d3c81909990d8945513e347b0eab049f7de3c6f98c193",
            ),
            ModelFile(
                "tokenizer.json",
                "tokenizer.json",
                17_082_730,
                "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
            ),
        ),
        dimensions=384,
        pooling="mean",
        query_prefix="query: ",
        passage_prefix="passage: ",
    ),
    Preset(
        name="all-MiniLM-L6-v2",
        languages="English",
        licence="Apache-2.0",
        repository="sentence-transformers/all-MiniLM-L6-v2",
        commit="1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
        files=(
            ModelFile(
                "model.onnx",
                "onnx/model_quint8_avx2.onnx",
                23_046_789,
                "b941bf19f1f1283680f449fa6a7336bb5600bdcd5f84d10ddc5cd72218a0fd21",
            ),
            ModelFile(
                "tokenizer.json",
                "tokenizer.json",
                466_247,
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
        ),
        dimensions=384,
        pooling="mean",
        max_length=256,
    ),
    Preset(
        name="all-mpnet-base-v2",
        languages="English",
        licence="Apache-2.0",
        repository="sentence-transformers/all-mpnet-base-v2",
        commit="e8c3b32edf5434bc2275fc9bab85f82640a19130",
        files=(
            ModelFile(
                "model.onnx",
                "onnx/model_quint8_avx2.onnx",
                110_207_323,
                "aa5c27172d77bbd1cbae3628cbac4b26d7c12adabff25d2d4285d0f29159b237",
            ),
            ModelFile(
                "tokenizer.json",
                "tokenizer.json",
                466_021,
                "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
            ),
        ),
        dimensions=768,
        pooling="mean",
        max_length=384,
    ),
    Preset(
        name="bge-reranker-base",
        kind="reranker",
        languages="Chinese, English",
        licence="MIT",
        repository="Xenova/bge-reranker-base",
        commit="280bcc27a84e0b898c251e06fddb25171bd9b101",
        files=(
            ModelFile(
                "model.onnx",
                "onnx/model_quantized.onnx",
                279_301_077,
                "dd98f3e67837d23210a6b7550c08cced4f61845b940ac45be3565840a10f3244",
            ),
            ModelFile(
                "tokenizer.json",
                "tokenizer.json",
                17_098_079,
                "48564c5c7d3fa64d85d95e65414a542385f88b0f128fd8d4163fd7a57f2be05c",
            ),
        ),
    ),
)


def look_up(name: str) -> Preset | None:
    """Return the preset of a name, upper and lower case alike, if there is one."""
    return next((preset for preset in PRESETS if preset.name.lower() == name.lower()), None)


def find_preset(name: str) -> Preset:
    """Return the preset of a name, upper and lower case alike. Raises InvalidInputError for an unknown one."""
    if (preset := look_up(name)) is not None:
        return preset
    known = ", ".join(preset.name for preset in PRESETS)
    raise InvalidInputError(f"there is no preset {name!r}; there are {known}. Another model is given as a folder")
