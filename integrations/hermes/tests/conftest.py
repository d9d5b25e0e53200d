"""Every test has a Hermes home of its own, and no other home to write to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from agents import Hosts

from recall_hermes import files, provider, recalling


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
    # What is found, and whether a file is closed, must not depend on how busy the machine is.
    monkeypatch.setattr(recalling, "BUDGET", 120.0)
    monkeypatch.setattr(provider, "PATIENCE", 120.0)
    return home


@pytest.fixture
def impatient(monkeypatch):
    """Let nobody wait long for a file that is locked."""
    monkeypatch.setattr(files, "SETTINGS", replace(files.SETTINGS, busy_timeout=0.1))


@pytest.fixture
def hosts(home):
    hosts = Hosts(home)
    yield hosts
    hosts.close()
