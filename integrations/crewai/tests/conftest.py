"""CrewAI without telemetry, files elsewhere, or a network: whoever tries to reach one fails the test."""

from __future__ import annotations

import os
import socket
import tempfile

import pytest

# Set before crewai is imported.
os.environ.update(
    OTEL_SDK_DISABLED="true",
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_DISABLE_TRACKING="true",
    CREWAI_TRACING_ENABLED="false",
    CREWAI_DISABLE_VERSION_CHECK="true",
    ANONYMIZED_TELEMETRY="False",
    CREWAI_STORAGE_DIR=tempfile.mkdtemp(prefix="recall-crewai-"),
)
for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "REDIS_URL"):
    os.environ.pop(name, None)


@pytest.fixture(autouse=True)
def network(monkeypatch):
    """Refuse all sockets but those within the machine's kernel, and note who tried: CrewAI swallows many errors."""
    tried = []
    connect = socket.socket.connect

    def refuse_connect(self, address):
        if self.family == getattr(socket, "AF_UNIX", None):
            return connect(self, address)
        tried.append(address)
        raise OSError("no network in tests")

    def refuse_lookup(host, *_, **__):
        tried.append(host)
        raise socket.gaierror("no network in tests")

    monkeypatch.setattr(socket.socket, "connect", refuse_connect)
    monkeypatch.setattr(socket, "getaddrinfo", refuse_lookup)
    yield tried
    assert tried == []


@pytest.fixture
def opened():
    """Take what has to be closed when a test ends."""
    things = []
    yield things
    for thing in reversed(things):
        thing.close()


@pytest.fixture(autouse=True)
def own_storage():
    """Leave CrewAI's factory as it is by default."""
    yield
    from recall_crewai import disable

    disable()
