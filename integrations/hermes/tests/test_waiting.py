"""What can't be stored waits in the Hermes home, and survives the process."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from agents import call, telegram

from recall_core import Memory
from recall_hermes import provider
from recall_hermes.health import read_failure
from recall_hermes.main import main
from recall_hermes.names import WAITING, memory_file, state_folder

HERE = Path(__file__).parent
LOCK = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(30_000)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def locking(path):
    """Let another process hold the file locked."""
    command = [sys.executable, "-c", LOCK, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout.readline().strip() == b"locked"
            yield
        finally:
            other.stdin.close()


def waiting(home):
    return sorted(path for path in state_folder(home).iterdir() if path.name.startswith(WAITING))


def stored(home):
    with Memory.open(memory_file(home), embedder=None) as memory:
        return {(record.text, record.scope) for record in memory.records(limit=100)}


def ids(home):
    with Memory.open(memory_file(home), embedder=None) as memory:
        return {record.id: record.text for record in memory.records(limit=100)}


def test_a_turn_that_could_not_be_stored_until_the_end_is_when_an_agent_starts_again(impatient, hosts, home):
    manager = hosts.start()
    with locking(memory_file(home)):
        manager.recall.sync_turn("The ladder is in the attic.", "Noted.", session_id="s1")
        manager.recall.sync_turn("The boiler is in the cellar.", "Noted, too.", session_id="s1")
        manager.recall.shutdown()
        assert len(waiting(home)) == 1
    later = hosts.start("s2")
    assert "attic" in later.prefetch_all("Where is the ladder?")
    assert "cellar" in later.prefetch_all("Where is the boiler?")
    assert waiting(home) == []
    assert call(later, "status")["not stored yet"] == 0


def test_a_turn_that_is_being_stored_when_the_host_ends_is_not_lost(hosts, home, monkeypatch):
    monkeypatch.setattr(provider, "PATIENCE", 1.0)
    manager = hosts.start()
    hosts.say(manager, "first")
    with locking(memory_file(home)):
        manager.sync_all("The ladder is in the attic.", "Noted.", session_id="s1")
        while not manager.recall._transcript.waiting:
            time.sleep(0.02)
        manager.shutdown_all()
        assert len(waiting(home)) == 1
    assert "attic" in hosts.start("s2").prefetch_all("Where is the ladder?")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_process_has_lost_nothing_that_waited(hosts, home):
    hosts.say(hosts.start(), "first")
    hosts.close()
    code = f"""
        import sys
        sys.path.insert(0, {str(HERE)!r})
        from pathlib import Path
        from agents import Hosts
        manager = Hosts(Path({str(home)!r})).start("s1")
        print("ready", flush=True)
        sys.stdin.readline()
        manager.recall.sync_turn("The ladder is in the attic.", "Noted.", session_id="s1")
        print("kept", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
    ) as child:
        assert child.stdout.readline() == "ready\n"
        with locking(memory_file(home)):
            child.stdin.write("\n")
            assert child.stdout.readline() == "kept\n"
            os.kill(child.pid, signal.SIGKILL)
            child.wait(120)
    assert "attic" in hosts.start("s2").prefetch_all("Where is the ladder?")


def test_what_waited_belongs_to_whoever_said_it_whoever_stores_it(impatient, hosts, home):
    manager = hosts.start("a", **telegram("1"))
    with locking(memory_file(home)):
        manager.recall.sync_turn("My favourite fruit is apricot", "OK.", session_id="a")
        manager.recall.shutdown()
    other = hosts.start("b", **telegram("2"))
    assert other.prefetch_all("What is my favourite fruit?") == ""
    assert ("My favourite fruit is apricot", "user/default/telegram/1") in stored(home)
    assert "apricot" in hosts.start("c", **telegram("1")).prefetch_all("What is my favourite fruit?")


def test_no_secret_waits_on_the_disk_and_nobody_else_may_read_what_does(impatient, hosts, home):
    manager = hosts.start()
    with locking(memory_file(home)):
        author = {"id": "1", "name": "password: hunter2secret"}
        manager.recall.sync_turn("My password is hunter2secret", "OK.", session_id="s1", turn_author=author)
        (file,) = waiting(home)
        assert "hunter2secret" not in file.read_text("utf-8")
        if os.name == "posix":
            assert file.stat().st_mode & 0o077 == 0
    hosts.start("s2")
    assert not any("hunter2secret" in text for text, _ in stored(home))


def test_what_waits_is_stored_once_though_two_agents_know_of_it(impatient, hosts, home):
    first, second = hosts.start("s1"), hosts.start("s2")
    with locking(memory_file(home)):
        first.recall.sync_turn("The ladder is in the attic.", "Noted.", session_id="s1")
        second.recall.sync_turn("The boiler is in the cellar.", "Noted.", session_id="s2")
    second.on_session_end([])
    first.on_session_end([])
    assert len(stored(home)) == 3
    assert waiting(home) == []


def test_what_another_agent_has_stored_and_the_user_had_forgotten_does_not_come_back(hosts, home):
    manager = hosts.start("s1")
    with locking(memory_file(home)):
        manager.recall.sync_turn("The ladder is in the attic.", "Noted.", session_id="s1")
    hosts.start("s2")  # stores it
    (id,) = (id for id, text in ids(home).items() if "attic" in text)
    assert "forgotten" in call(manager, "forget", id=id, permanently=True)
    manager.on_session_end([])
    assert {text for text, _ in stored(home)} == {"Noted."}


def test_what_waits_is_told_by_the_command(hosts, home, capsys):
    manager = hosts.start("s1")
    with locking(memory_file(home)):
        manager.recall.sync_turn("The ladder is in the attic.", "Noted.", session_id="s1")
    assert main(["--home", str(home), "status"]) == 0
    assert re.search(r"not stored yet: +2\n", capsys.readouterr().out)


def test_a_file_of_what_waits_that_can_not_be_read_is_told_and_set_aside(hosts, home):
    hosts.start()
    (state_folder(home) / f"{WAITING}1-a.json").write_text("[{")
    hosts.start("s2")
    assert "reading waiting-" in read_failure(home).where
    assert waiting(home) == [path for path in waiting(home) if path.suffix == ".unreadable"] != []
    hosts.start("s3")
    assert read_failure(home).count == 1


def test_a_turn_that_was_taken_back_while_the_file_was_locked_goes_when_that_is_possible(impatient, hosts, home):
    manager = hosts.start()
    history = [{"role": "user", "content": "x"}]
    manager.recall.sync_turn("I live in Ghent", "OK.", session_id="s1", messages=history)
    manager.recall.on_session_switch("s1", rewound=True)
    with locking(memory_file(home)):
        manager.recall.sync_turn("I live in Bruges", "Noted.", session_id="s1", messages=history)
    manager.on_session_end([])
    assert {text for text, _ in stored(home)} == {"I live in Bruges", "Noted."}
