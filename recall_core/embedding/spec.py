"""What a folder with an ONNX model says about itself: its files, pooling, prefixes, size and identity.

Two layouts are read. Ours: a `config.json` with `dim`, `pooling`, `query_prefix`, `passage_prefix`, `max_length` and
`sha256`. The model hubs': a transformers `config.json` and, where present, the files of sentence-transformers
(https://sbert.net/docs/package_reference/sentence_transformer/models.html): `modules.json`, `1_Pooling/config.json`,
`sentence_bert_config.json`, `config_sentence_transformers.json`.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from recall_core.errors import InvalidInputError, ModelNotFoundError

from .fingerprint import check_whole, fingerprint

Pooling = Literal["mean", "cls"]

_log = logging.getLogger("recall_core")
_MODEL_FILES = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
_KNOWN_MODULES = {"Transformer", "Pooling", "Normalize"}
_POSITIONS_AFTER_PADDING = {"roberta", "xlm-roberta", "camembert", "mpnet"}  # position ids start at pad_token_id + 1
_DEFAULT_MAX_LENGTH = 512
_NO_LIMIT = 1_000_000  # transformers writes 1e30 into model_max_length where it knows none


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What the caller said about a model; None leaves it to the folder."""

    pooling: Pooling | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    max_length: int | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Everything known of a model before it is loaded."""

    model_file: Path
    tokenizer_file: Path
    name: str
    fingerprint: str  # 12 hexadecimal digits that change with the model's files
    dimensions: int
    pooling: Pooling
    query_prefix: str
    passage_prefix: str
    max_length: int  # tokens, prefix and special tokens included
    output: str | None = None  # the name of the session's output, where the folder says it

    @property
    def model_id(self) -> str:
        """Return a text that two embedders share only if their vectors may be mixed."""
        prefixes = json.dumps([self.query_prefix, self.passage_prefix], ensure_ascii=False)
        return f"{self.name}@{self.fingerprint} {self.pooling} {self.max_length} {prefixes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSettings:
    """What a folder in a hub's layout says about how its model is used."""

    name: str
    dimensions: int
    pooling: Pooling
    query_prefix: str
    passage_prefix: str
    max_length: int


def read_spec(folder: Path, overrides: Overrides) -> ModelSpec:
    """Read the small files of a model's folder. Loads no model; takes a few milliseconds.

    Raises ModelNotFoundError for a missing, empty or damaged file, InvalidInputError for a model of an unsupported kind
    and for overrides that don't fit it.
    """
    config, files = read_folder(folder, overrides.file)
    if overrides.pooling not in (None, "mean", "cls"):
        raise InvalidInputError(f"pooling is {overrides.pooling!r}; it must be 'mean' or 'cls'")
    if "model_type" not in config and "dim" in config and "pooling" in config:
        return _read_own(config, files, overrides)
    return _read_hub(folder, config, files, overrides)


def read_folder(folder: Path, file: str | None) -> tuple[dict[str, Any], tuple[Path, Path, Path]]:
    """Return the configuration of a model's folder, and its ONNX file (`file` or the usual ones), tokenizer and
    configuration. Raises ModelNotFoundError for a missing, empty or damaged file.
    """
    if not folder.is_dir():
        raise ModelNotFoundError(
            f"there is no folder {str(folder)!r}; a model is given as the path of a folder with "
            "config.json, tokenizer.json and model.onnx, or by the name of a preset (recall models list)"
        )
    config = read_config(folder)
    files = (_find_model(folder, file), folder / "tokenizer.json", folder / "config.json")
    for path in files:
        check_whole(path)
    return config, files


def read_config(folder: Path) -> dict[str, Any]:
    """Return the `config.json` of a model's folder. Raises ModelNotFoundError if it is missing or damaged."""
    return _read_json(folder / "config.json")


def read_settings(folder: Path, config: dict[str, Any], overrides: Overrides) -> HubSettings:
    """Read how the model of a folder in a hub's layout is used, from its small files alone: no ONNX file is needed.

    Raises as `read_spec` does.
    """
    query_prefix, passage_prefix = _read_prompts(folder)
    settings = HubSettings(
        name=_name(config),
        dimensions=_read_dimensions(config, folder / "config.json"),
        pooling=overrides.pooling or _read_pooling(folder, _names(folder, config)),
        query_prefix=_first(overrides.query_prefix, query_prefix),
        passage_prefix=_first(overrides.passage_prefix, passage_prefix),
        max_length=read_max_length(folder, config, overrides.max_length),
    )
    if not settings.query_prefix and not settings.passage_prefix and overrides.query_prefix is None:
        _warn_without_prefixes(folder, _names(folder, config))
    return settings


def read_max_length(folder: Path, config: dict[str, Any], wanted: int | None) -> int:
    """Return how many tokens a model takes: `wanted`, or what the folder says. Raises InvalidInputError if `wanted` is
    more than the model's position table holds.
    """
    positions = _positions(config)
    return _check_length(wanted, _declared_max_length(folder, positions), positions)


def _read_own(config: dict[str, Any], files: tuple[Path, Path, Path], overrides: Overrides) -> ModelSpec:
    pooling = overrides.pooling or config["pooling"]
    if pooling not in ("mean", "cls"):
        raise InvalidInputError(f"{files[2]}: pooling is {pooling!r}; it must be 'mean' or 'cls'")
    limit = int(config.get("max_length", _DEFAULT_MAX_LENGTH))
    return ModelSpec(
        model_file=files[0],
        tokenizer_file=files[1],
        name=str(config.get("name", "model")),
        fingerprint=fingerprint(files, config.get("sha256")),
        dimensions=int(config["dim"]),
        pooling=cast(Pooling, pooling),
        query_prefix=_first(overrides.query_prefix, config.get("query_prefix"), ""),
        passage_prefix=_first(overrides.passage_prefix, config.get("passage_prefix"), ""),
        max_length=_check_length(overrides.max_length, limit, limit),
        output=config.get("output"),
    )


def _read_hub(folder: Path, config: dict[str, Any], files: tuple[Path, Path, Path], overrides: Overrides) -> ModelSpec:
    settings = read_settings(folder, config, overrides)
    return ModelSpec(
        model_file=files[0],
        tokenizer_file=files[1],
        name=settings.name,
        fingerprint=fingerprint(files),
        dimensions=settings.dimensions,
        pooling=settings.pooling,
        query_prefix=settings.query_prefix,
        passage_prefix=settings.passage_prefix,
        max_length=settings.max_length,
    )


def _find_model(folder: Path, file: str | None) -> Path:
    for name in (file,) if file is not None else _MODEL_FILES:
        if (folder / name).is_file():
            return folder / name
    found = sorted(path.relative_to(folder).as_posix() for path in folder.glob("**/*.onnx"))
    wanted = file or " nor ".join(_MODEL_FILES)
    raise ModelNotFoundError(
        f"the folder {str(folder)!r} has no {wanted}; "
        + (f"it has {', '.join(found)}: name one by file=" if found else "it has no .onnx file at all")
    )


def _read_json(path: Path) -> dict[str, Any]:
    check_whole(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelNotFoundError(f"{path} is damaged: {error}; download it again") from error
    if not isinstance(value, dict):
        raise ModelNotFoundError(f"{path} is damaged: an object was expected; download it again")
    return value


def _read_optional(path: Path) -> dict[str, Any]:
    return _read_json(path) if path.is_file() else {}


def _read_dimensions(config: dict[str, Any], path: Path) -> int:
    for key in ("hidden_size", "dim", "d_model", "n_embd"):
        if isinstance(config.get(key), int):
            return int(config[key])
    raise InvalidInputError(f"{path} has no hidden_size, so the size of the vectors is unknown; add it to the file")


def _read_pooling(folder: Path, names: str) -> Pooling:
    place = _read_modules(folder)
    config = _read_optional(folder / place / "config.json")
    modes = {
        key.removeprefix("pooling_mode_").removesuffix("_token").removesuffix("_tokens")
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value
    } | ({str(config["pooling_mode"])} if "pooling_mode" in config else set())
    if modes in ({"mean"}, {"cls"}) and config.get("include_prompt", True):
        return cast(Pooling, modes.pop())
    if modes:
        raise InvalidInputError(
            f"{folder / place} asks for the pooling {', '.join(sorted(modes))} "
            f"with include_prompt={config.get('include_prompt', True)}, which is not supported; "
            "if the model works with 'mean' or 'cls', pass pooling="
        )
    if re.search(r"(?<![a-z])bge(?![a-z])", names):
        return "cls"
    _log.warning("%s says nothing about pooling: taking the mean of the tokens; pass pooling= to settle it", folder)
    return "mean"


def _read_modules(folder: Path) -> str:
    """Return the folder of the pooling module; raise InvalidInputError where a module of another kind is needed."""
    path = folder / "modules.json"
    if not path.is_file():
        return "1_Pooling"
    try:
        modules = {str(entry["type"]).rpartition(".")[2]: str(entry["path"]) for entry in json.loads(path.read_bytes())}
    except (ValueError, TypeError, KeyError) as error:
        raise ModelNotFoundError(f"{path} is damaged: {error!r}; download it again") from error
    unknown = sorted(modules.keys() - _KNOWN_MODULES)
    if unknown:
        raise InvalidInputError(
            f"{path} names the modules {', '.join(unknown)}, which are not supported: "
            f"only {', '.join(sorted(_KNOWN_MODULES))} are; pass pooling= to use the model without them"
        )
    return modules.get("Pooling", "1_Pooling")


def _read_prompts(folder: Path) -> tuple[str, str]:
    """Return the prefixes of queries and passages, chosen as in `SentenceTransformer.encode_query`."""
    config = _read_optional(folder / "config_sentence_transformers.json")
    prompts = config.get("prompts") or {}
    default = prompts.get(config.get("default_prompt_name"), "")
    passage = next((prompts[key] for key in ("document", "passage", "corpus") if key in prompts), default)
    return prompts.get("query", default), passage


def _positions(config: dict[str, Any]) -> int | None:
    """Return how many tokens the model's position table holds; None where the configuration has no such table."""
    size = config.get("max_position_embeddings")
    if not isinstance(size, int) or size < 1:
        return None
    if config.get("model_type") in _POSITIONS_AFTER_PADDING:
        pad_id = config.get("pad_token_id")
        return size - 1 - (pad_id if isinstance(pad_id, int) else 1)
    return size


def _declared_max_length(folder: Path, positions: int | None) -> int:
    trained = _read_optional(folder / "sentence_bert_config.json").get("max_seq_length")
    tokenizer = _read_optional(folder / "tokenizer_config.json").get("model_max_length")
    known = [
        int(value)
        for value in (trained, tokenizer, positions)
        if isinstance(value, int | float) and 0 < value < _NO_LIMIT
    ]
    return min(known, default=_DEFAULT_MAX_LENGTH)


def _check_length(wanted: int | None, declared: int, limit: int | None) -> int:
    if wanted is None:
        return declared
    if wanted < 1 or (limit is not None and wanted > limit):
        raise InvalidInputError(f"max_length is {wanted}; it must be from 1 to {limit or 'what the model can take'}")
    return wanted


def _name(config: dict[str, Any]) -> str:
    # Never the folder's name: moving a model must not change its identity.
    given = re.split(r"[/\\]", str(config.get("_name_or_path") or "").rstrip("/\\"))[-1]
    return given or str(config.get("model_type") or "model")


def _names(folder: Path, config: dict[str, Any]) -> str:
    # In a hub's cache the folder is models--OWNER--NAME/snapshots/COMMIT.
    cached = folder.parent.parent.name if folder.parent.name == "snapshots" else ""
    return f"{_name(config)} {folder.name} {cached}".lower()


def _warn_without_prefixes(folder: Path, names: str) -> None:
    if re.search(r"(?<![a-z0-9])e5(?![a-z0-9])", names):
        _log.warning(
            "%s looks like an e5 model, which wants query_prefix='query: ' and passage_prefix='passage: '; "
            "pass them, or query_prefix='' if it is none",
            folder,
        )


def _first(*values: str | None) -> str:
    return next((value for value in values if value is not None), "")
