"""Fixtures for everyone, and how hypothesis runs.

`make test` uses the profile "ci", which tries the same examples every time; pytest by hand uses "dev", which looks for
new ones. HYPOTHESIS_PROFILE names another.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from support import FixedClock, HashedEmbedder

hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background, whose children ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _own_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep tests that name no database or model away from those of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECALL_DB", str(tmp_path_factory.mktemp("own") / "default.db"))
        patch.setenv("RECALL_HOOK_RESIDENT", "0")  # no test leaves a process behind
        patch.delenv("RECALL_MODEL", raising=False)
        patch.setenv("RECALL_MODELS", str(tmp_path_factory.mktemp("models")))
        yield


@pytest.fixture
def db_path(tmp_path: Path) -> Path:
    """Return where a test may put its database; there is no file yet."""
    return tmp_path / "memory.db"


@pytest.fixture
def clock() -> FixedClock:
    """Return a clock that shows support.NOW until it is advanced."""
    return FixedClock()


@pytest.fixture
def embedder() -> HashedEmbedder:
    """Return an embedder that needs no model."""
    return HashedEmbedder()
