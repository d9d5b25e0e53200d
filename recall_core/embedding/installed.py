"""Where downloaded models lie, and which are there. Nothing here touches the network."""

from __future__ import annotations

import os
from pathlib import Path

from recall_core.errors import InvalidInputError, ModelNotFoundError

from .presets import Kind, ModelFile, Preset, find_preset, look_up

MODELS_VARIABLE = "RECALL_MODELS"
PART = ".part"  # behind the name of a file whose download is not complete
CONFIG = "config.json"  # written last: a folder that has it was complete


def models_folder() -> Path:
    """Return the folder of all downloaded models: RECALL_MODELS, or dualrecall/models in the user's data folder."""
    given = os.environ.get(MODELS_VARIABLE)
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("dualrecall", appauthor=False) / "models"


def preset_folder(preset: Preset) -> Path:
    """Return the folder of a preset's files, whether they are there or not."""
    return models_folder() / preset.folder


def model_path(name: str) -> Path:
    """Return the folder of a downloaded model, such as `model_path("bge-small-zh-v1.5")`.

    Raises ModelNotFoundError, with the command that downloads it, if it is not there or not whole; InvalidInputError
    for a name that `recall models list` does not have.
    """
    preset = find_preset(name)
    folder = preset_folder(preset)
    if not is_complete(preset):
        state = "is not complete" if folder.exists() else "is not on this machine yet"
        raise ModelNotFoundError(
            f"the model {preset.name} {state} ({folder}); download {show_size(preset.size)} by: "
            f"recall models pull {preset.name}"
        )
    return folder


def find_folder(given: str | os.PathLike[str], kind: Kind) -> Path:
    """Return the folder that is meant by a path or by the name of a preset; a path that exists counts first.

    Raises ModelNotFoundError for a preset that is not there, InvalidInputError for one of another kind.
    """
    preset = look_up(given) if isinstance(given, str) else None
    if preset is None or Path(given).exists():
        return Path(given)
    if preset.kind != kind:
        use = "CrossEncoder(...) as reranker" if preset.kind == "reranker" else "embedder="
        raise InvalidInputError(f"{preset.name} is no {kind} but a {preset.kind}; give it by {use}")
    return model_path(preset.name)


def is_complete(preset: Preset) -> bool:
    """Tell whether all files of a preset are there and have their sizes."""
    folder = preset_folder(preset)
    return (folder / CONFIG).is_file() and all(has_size(folder / file.name, file) for file in preset.files)


def has_size(path: Path, file: ModelFile) -> bool:
    """Tell whether a file is there and has the size that it should have."""
    return path.is_file() and path.stat().st_size == file.size


def show_size(size: int) -> str:
    """Return a number of bytes for people, such as 24 MB."""
    for unit, bytes_each in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= bytes_each:
            number = size / bytes_each
            return f"{number:.1f} {unit}" if number < 10 else f"{number:.0f} {unit}"
    return f"{size} bytes"
