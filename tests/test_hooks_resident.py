"""The process that a hook leaves behind, which answers the next prompts."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import LIMIT, wait_until

from recall_core import Memory
from recall_core.client_scopes import project_scope
from recall_core.hooks.asking import ask_resident, find_socket

COMMAND = "from recall_core.cli import main; main()"
DEPLOY = "The payment service is deployed with Docker Compose, not with virtual machines"
LUNCH = "The deploy of the payment service waits until after lunch"

pytestmark = pytest.mark.skipif(
    os.name != "posix" or not hasattr(socket, "AF_UNIX"), reason="there is no such process on Windows"
)


class Hooks:
    """A project with a memory, and its hooks."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.project, self.db, self.state = folder / "shop", folder / "memory.db", state
        self.project.mkdir()
        self.idle = "600"

    def remember(self, text: str) -> None:
        with Memory.open(self.db, embedder=None) as memory:
            memory.add(text, scope=project_scope(self.project))

    def call(self, event: str = "user-prompt-submit", session: str = "s1", folder: str | None = None) -> str:
        environment = {**os.environ, "RECALL_HOOK_DIR": str(self.state), "RECALL_HOOK_BUDGET": "100000"}
        environment["RECALL_HOOK_RESIDENT"] = self.idle
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, "hook", event, "--db", str(self.db)],
            input=self.payload(session, folder),
            cwd=self.db.parent,
            capture_output=True,
            env=environment,
            timeout=LIMIT,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode().strip()

    def payload(self, session: str = "s1", folder: str | None = None) -> bytes:
        prompt = "how do we deploy the payment service?"
        return json.dumps({"session_id": session, "cwd": folder or str(self.project), "prompt": prompt}).encode()

    @property
    def socket(self) -> Path:
        found = find_socket(self.state, self.db)
        assert found is not None
        return found

    def ask(self, session: str = "s1") -> str | None:
        return ask_resident(self.socket, self.payload(session), None, LIMIT)

    def process(self) -> subprocess.Popen[bytes]:
        """Start what a hook leaves behind, and return it when it answers."""
        arguments = [str(self.socket), str(self.db), str(self.state)]
        command = [sys.executable, "-m", "recall_core.hooks.resident", *arguments]
        process = subprocess.Popen(command, env={**os.environ, "RECALL_HOOK_RESIDENT": self.idle})
        wait_until(self.ask)
        return process


@pytest.fixture
def hooks(tmp_path, monkeypatch) -> Iterator[Hooks]:
    monkeypatch.setenv("RECALL_HOOK_RESIDENT", "600")
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as short:  # for the path of a socket
        found = Hooks(tmp_path, Path(short) / "state")
        yield found
        found.socket.unlink(missing_ok=True)  # which ends it


@pytest.fixture
def resident(hooks) -> Iterator[subprocess.Popen[bytes]]:
    hooks.remember(DEPLOY)
    process = hooks.process()
    yield process
    process.kill()
    process.wait()


def test_a_hook_leaves_a_process_behind_that_answers_the_next_prompt(hooks):
    hooks.remember(DEPLOY)
    assert DEPLOY in hooks.call(session="first")
    wait_until(lambda: hooks.ask("second"))
    assert DEPLOY in (hooks.ask("third") or "")
    assert json.loads(hooks.call(session="fourth")) == json.loads(hooks.ask("fifth") or "")


def test_the_beginning_of_a_session_leaves_one_behind_for_its_first_prompt(hooks):
    hooks.remember(DEPLOY)
    hooks.call("session-start", "first")
    wait_until(lambda: hooks.ask("second"))


@pytest.mark.usefixtures("resident")
def test_what_is_stored_meanwhile_is_found_at_once(hooks):
    hooks.remember(LUNCH)
    assert LUNCH in (hooks.ask("another") or "")


@pytest.mark.usefixtures("resident")
def test_a_session_is_shown_nothing_twice_whoever_answers(hooks):
    assert DEPLOY in hooks.call(session="one")
    assert hooks.ask("one") == ""


@pytest.mark.usefixtures("resident")
def test_a_relative_folder_is_that_of_the_caller(hooks):
    assert DEPLOY in hooks.call(session="new", folder="shop")


def test_of_several_that_are_started_one_stays(hooks, resident):
    second = subprocess.Popen(resident.args, env={**os.environ})
    assert second.wait(LIMIT) == 0
    assert resident.poll() is None
    assert hooks.ask("after") is not None


def test_it_ends_when_nobody_asks_any_more(hooks):
    hooks.remember(DEPLOY)
    hooks.idle = "3"
    process = hooks.process()
    assert process.wait(LIMIT) == 0
    assert not hooks.socket.exists()


def test_a_hook_sees_for_itself_where_the_process_was_killed(hooks, resident):
    resident.send_signal(signal.SIGKILL)
    resident.wait()
    assert hooks.socket.exists()
    assert hooks.ask("first") is None
    assert DEPLOY in hooks.call(session="second")
    wait_until(lambda: hooks.ask("third"))


@pytest.mark.usefixtures("resident")
def test_a_file_that_took_the_place_of_the_memory_is_read(hooks):
    for file in hooks.db.parent.glob("memory.db*"):
        file.unlink()
    assert hooks.call(session="none") == ""
    hooks.remember(LUNCH)
    assert LUNCH in hooks.call(session="new")


@pytest.mark.usefixtures("resident")
@pytest.mark.parametrize("sent", [b"", b"\n", b"{}\n{}", b"[]\n", b"\xff" * 1000, b'{"project": 3}\n{"prompt": 1}'])
def test_what_is_no_request_is_not_answered_and_ends_nothing(hooks, sent):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(LIMIT)
        connection.connect(str(hooks.socket))
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) in (b"", b"=")
    assert DEPLOY in (hooks.ask("after") or "")


def test_none_is_left_behind_where_none_is_wanted(hooks, monkeypatch):
    monkeypatch.setenv("RECALL_HOOK_RESIDENT", "0")
    assert find_socket(hooks.state, hooks.db) is None
    hooks.idle = "0"
    hooks.remember(DEPLOY)
    assert DEPLOY in hooks.call()
    assert not list(hooks.state.glob("*.sock")) + list(hooks.state.glob("*.lock"))
    monkeypatch.setenv("RECALL_HOOK_RESIDENT", "600")  # for the fixture


def test_its_folder_and_socket_are_for_the_owner_alone(hooks):
    hooks.remember(DEPLOY)
    hooks.call()
    wait_until(lambda: hooks.ask("next"))
    assert hooks.state.stat().st_mode & 0o777 == 0o700
    assert hooks.socket.stat().st_mode & 0o077 == 0
