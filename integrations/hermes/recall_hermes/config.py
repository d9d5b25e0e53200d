"""The provider's own settings, in `recall.json` of the Hermes home. All have defaults, so there need be no file."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from recall_core.errors import InvalidInputError

from .names import config_file

RANGES = {"max_chars": (300, 8000), "limit": (1, 20), "min_relevance": (0.0, 1.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a user may want otherwise. Raises InvalidInputError for values that make no sense."""

    recall: bool = True
    """Whether what is relevant is recalled in each turn; the tools search in any case."""
    capture: bool = True
    """Whether turns are stored; the entries of MEMORY.md and USER.md are in any case."""
    max_chars: int = 1500
    """How long the recalled block may get."""
    limit: int = 5
    """How many memories are recalled at most."""
    min_relevance: float = 0.3
    """What is less relevant is not recalled."""
    redact: bool = True
    """Whether keys and passwords are taken out of what is captured."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, default = getattr(self, field.name), field.default
            if isinstance(default, bool):
                holds, want = isinstance(value, bool), "true or false"
            else:
                least, most = RANGES[field.name]
                number = isinstance(value, int if isinstance(default, int) else int | float)
                holds = number and not isinstance(value, bool) and least <= value <= most
                want = f"a number from {least:g} to {most:g}"
            if not holds:
                raise InvalidInputError(f"{field.name} in recall.json is {value!r}; it must be {want}")


SCHEMA: tuple[dict[str, Any], ...] = (
    {
        "key": "capture",
        "description": "Remember what is said in conversations",
        "default": "true",
        "choices": ["true", "false"],
    },
    {
        "key": "recall",
        "description": "Recall what is relevant in each turn",
        "default": "true",
        "choices": ["true", "false"],
    },
    {"key": "max_chars", "description": "Most characters that are recalled in a turn", "default": "1500"},
    {
        "key": "redact",
        "description": "Take keys and passwords out of what is captured",
        "default": "true",
        "choices": ["true", "false"],
    },
)


def read_config(home: Path) -> Config:
    """Return the settings of a home. Raises InvalidInputError, which names the file and what to do."""
    path = config_file(home)
    try:
        found = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path} can't be read ({error}); correct it, or delete it for the defaults") from error
    return make_config(found)


def make_config(values: Any, base: Config | None = None) -> Config:
    """Return settings with these values, which may be written as a wizard gets them: "true", "1500"."""
    if not isinstance(values, Mapping):
        raise InvalidInputError(f"recall.json holds {values!r:.60}; it must be an object such as {{}}")
    known = [field.name for field in fields(Config)]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InvalidInputError(f"recall.json has the unknown setting {unknown[0]!r}; there are {', '.join(known)}")
    return replace(base or Config(), **{name: _read(value) for name, value in values.items()})


def write_config(home: Path, values: Mapping[str, Any]) -> None:
    """Change settings of a home; what is not given stays."""
    config = make_config(values, read_config(home))
    write_atomically(config_file(home), json.dumps(asdict(config), indent=2) + "\n")


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that it is there as a whole or not at all, in the place that a link leads to, with its mode; a
    new one is its owner's alone.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        beside.touch(mode=0o600)
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o777)  # before there is anything in it: a config may hold keys
        beside.write_text(text, "utf-8", newline="")
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _read(value: Any) -> Any:
    """Return a value, read if it is written in words or digits."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value.strip().lower())
    except ValueError:
        return value
