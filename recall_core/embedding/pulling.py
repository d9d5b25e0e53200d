"""Downloads the files of a preset into the models' folder, once, whoever else is at it."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from recall_core.errors import InvalidInputError, ModelDownloadError

from .download import Download, Patience, has_digest
from .installed import CONFIG, PART, preset_folder, show_size
from .presets import ModelFile, Preset

ENDPOINT = "https://huggingface.co"
TIMEOUT = 30.0  # seconds without a byte


def pull(
    preset: Preset,
    *,
    endpoint: str | None = None,
    advance: Callable[[int], None] | None = None,
    tell: Callable[[str], None] | None = None,
    patience: Patience | None = None,
) -> Path:
    """Download what is missing of a preset and return its folder; what is there is checked and repaired.

    `endpoint` is a mirror in place of huggingface.co. `advance` is told how many of `preset.size` bytes are done,
    `tell` gets a line if another process has to be waited for. An interrupted call is gone on with by the next one.

    Raises ModelDownloadError if the files can't be had or written, InvalidInputError for an endpoint that is no URL.
    """
    endpoint = _check_endpoint(endpoint or ENDPOINT)
    advance = advance or _ignore
    folder = preset_folder(preset)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder, preset, tell or _ignore):
            missing = [file for file in preset.files if not has_digest(folder / file.name, file)]
            advance(preset.size - sum(file.size for file in missing))
            if missing:
                _check_space(folder, missing)
                _fetch(preset, missing, folder, endpoint, advance, patience or Patience())
            _write_config(preset, folder)
    except OSError as error:
        raise ModelDownloadError(_explain(error, folder)) from error
    return folder


def describe(preset: Preset) -> dict[str, object]:
    """Return the configuration that makes a folder with the files of a preset one of our layout; see spec.py."""
    common: dict[str, object] = {
        "name": preset.name,
        "source": f"{preset.repository}@{preset.commit}",
        "license": preset.licence,
        "sha256": {file.name: file.sha256 for file in preset.files},
    }
    if preset.kind == "reranker":
        return common | {"max_position_embeddings": preset.max_length}
    return common | {
        "dim": preset.dimensions,
        "pooling": preset.pooling,
        "normalize": True,
        "max_length": preset.max_length,
        "query_prefix": preset.query_prefix,
        "passage_prefix": preset.passage_prefix,
    }


def _fetch(
    preset: Preset,
    files: Sequence[ModelFile],
    folder: Path,
    endpoint: str,
    advance: Callable[[int], None],
    patience: Patience,
) -> None:
    import httpx

    # No compression: ranges and lengths are those of the file itself.
    headers = {"Accept-Encoding": "identity", "User-Agent": "dualrecall"}
    with httpx.Client(follow_redirects=True, timeout=TIMEOUT, headers=headers) as client:
        for file in files:
            url = f"{endpoint}/{preset.repository}/resolve/{preset.commit}/{file.path}"
            Download(client, url, folder / file.name, file, advance=advance, patience=patience).run()


@contextmanager
def _alone(folder: Path, preset: Preset, tell: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a model's folder. The operating system frees it when a process ends, however it ends."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder.with_name(f".{folder.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        tell(f"another process is downloading {preset.name}; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _ignore(news: object) -> None:
    """Stand in for a listener."""
    del news


def _check_endpoint(endpoint: str) -> str:
    if not endpoint.startswith(("https://", "http://")):
        raise InvalidInputError(f"HF_ENDPOINT is {endpoint!r}; it is an address such as {ENDPOINT}")
    return endpoint.rstrip("/")


def _check_space(folder: Path, files: Sequence[ModelFile]) -> None:
    parts = [folder / f"{file.name}{PART}" for file in files]
    needed = sum(file.size for file in files) - sum(part.stat().st_size for part in parts if part.exists())
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelDownloadError(
            f"{folder} has {show_size(free)} free and {show_size(needed)} are needed; make room, or choose another "
            "place by RECALL_MODELS"
        )


def _write_config(preset: Preset, folder: Path) -> None:
    text = json.dumps(describe(preset), ensure_ascii=False, indent=1) + "\n"
    path = folder / CONFIG
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    new = path.with_name(CONFIG + PART)
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def _explain(error: OSError, folder: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {folder} is full; what has arrived is kept, so make room and pull again"
    return f"{error.filename or folder} can't be written: {error.strerror or error}; choose another by RECALL_MODELS"
