"""Every test has a Hermes home of its own, and no other home to write to."""

from __future__ import annotations

import pytest
from agents import Hosts

from recall_hermes import recalling


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a Hermes home, which is the process's."""
    home = tmp_path / "hermes"
    home.mkdir()
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("HERMES_SKIP_UPDATE_CHECK", "1")
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setattr(recalling, "BUDGET", 10.0)  # what is found must not depend on how busy the machine is
    return home


@pytest.fixture
def hosts(home):
    hosts = Hosts(home)
    yield hosts
    hosts.close()
