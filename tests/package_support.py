"""What holds for the package of each adapter, for its own tests."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from types import ModuleType

import recall_core


def check_version(package: ModuleType, distribution: str) -> None:
    assert package.__version__ == recall_core.__version__
    assert importlib.metadata.version(distribution) == recall_core.__version__


def check_core(distribution: str) -> None:
    """The adapter takes cores of its own minor version only."""
    required = importlib.metadata.requires(distribution) or []
    minor = recall_core.__version__.rpartition(".")[0]
    assert f"dualrecall=={minor}.*" in [line.replace(" ", "") for line in required]


def check_wheel(package: ModuleType, folder: Path) -> None:
    """What is imported is what was installed, and has all files of the checkout."""
    installed = Path(str(package.__file__)).parent
    assert not installed.is_relative_to(folder)
    assert {path.name for path in (folder / package.__name__).glob("*.*")} <= {
        path.name for path in installed.iterdir()
    }


def check_names(package: ModuleType) -> None:
    assert package.__all__ == sorted(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)
