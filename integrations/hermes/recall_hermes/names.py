"""What things are called in a Hermes home."""

from __future__ import annotations

from pathlib import Path

WAITING = "waiting-"  # how the names of files begin that hold what could not be stored yet
PROVIDER = "recall"  # in Hermes' config, and the folder of the plugin


def plugin_folder(home: Path) -> Path:
    """Return where Hermes finds the provider."""
    return home / "plugins" / PROVIDER


def state_folder(home: Path) -> Path:
    """Return where all is kept that is remembered; Hermes' own backup has it."""
    return home / "recall"


def memory_file(home: Path) -> Path:
    """Return the file of the memory."""
    return state_folder(home) / "memory.db"


def failures_file(home: Path) -> Path:
    """Return the file that tells other processes what failed last."""
    return state_folder(home) / "failures.json"


def config_file(home: Path) -> Path:
    """Return the provider's own settings."""
    return home / "recall.json"
