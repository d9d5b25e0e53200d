"""What fails is seen, and what could not be stored is stored later."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from agents import call

from recall_core import Memory
from recall_hermes import RecallMemoryProvider, files
from recall_hermes import provider as provider_module
from recall_hermes.config import read_config
from recall_hermes.health import read_failure
from recall_hermes.names import config_file, memory_file


def test_a_memory_that_can_not_be_opened_is_opened_later_and_nothing_is_lost(hosts, home):
    warnings = []
    (home / "recall").write_text("a file is in the way")
    manager = hosts.start(warning_callback=warnings.append)
    assert len(warnings) == 1
    hosts.say(manager, "I live in Ghent")
    assert manager.prefetch_all("Where do I live?") == ""
    assert "not open" in call(manager, "search", query="Ghent")["error"]
    (home / "recall").unlink()
    manager.recall._next_try = 0.0
    hosts.say(manager, "My bicycle is red")
    with Memory.open(memory_file(home), embedder=None) as memory:
        assert sorted(record.text for record in memory.records()) == ["I live in Ghent", "My bicycle is red", "OK."]
    assert len(warnings) == 1


def test_a_locked_file_keeps_turns_waiting_and_status_says_so(impatient, hosts, home):
    manager = hosts.start()
    hosts.say(manager, "first")
    hold = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN IMMEDIATE')"
    command = [sys.executable, "-c", f"{hold}; print('held', flush=True); sys.stdin.read()", str(memory_file(home))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        manager.recall.sync_turn("I live in Ghent", "OK.", session_id="s1")
        state = call(manager, "status")
        other.stdin.close()
    assert state["not stored yet"] >= 1
    assert "sync_turn" in state["last failure"]
    manager.on_session_end([])
    assert call(manager, "status")["not stored yet"] == 0
    assert "Ghent" in call(manager, "search", query="Ghent")["memories"]
    failure = read_failure(home)
    assert failure is not None
    assert failure.where == "sync_turn"


def test_what_can_never_be_stored_keeps_nothing_else_out(hosts, home):
    manager = hosts.start()
    manager.recall.sync_turn("I live in Ghent", "OK.", turn_author={"name": "x" * 1_000_001})
    assert "metadata" in call(manager, "status")["last failure"]
    hosts.say(manager, "My bicycle is red", "I see.")
    state = call(manager, "status")
    assert (state["not stored yet"], state["memories"]) == (0, 3)


def test_an_embedder_of_another_kind_leaves_words_to_find_by(hosts, home):
    class Other:
        model_id, dimensions = "another", 8

        def embed_passages(self, texts):
            import numpy as np

            return np.ones((len(texts), 8), np.float32)

        embed_queries = embed_passages

    memory_file(home).parent.mkdir()
    with Memory.open(memory_file(home), embedder=Other()) as memory:
        memory.add("I live in Ghent", scope="profile/default")
    manager = hosts.start()
    assert "Ghent" in manager.prefetch_all("Do I live in Ghent?")
    state = call(manager, "status")
    assert "another" in state["model error"]
    assert "another" in state["last failure"]


@pytest.mark.parametrize("broken", ["{", "[]", '{"max_chars": "many"}', '{"colour": "blue"}', '{"limit": true}'])
def test_broken_settings_are_told_and_the_defaults_hold(hosts, home, broken):
    config_file(home).write_text(broken)
    manager = hosts.start()
    assert "recall.json" in call(manager, "status")["last failure"]
    hosts.say(manager, "I live in Ghent")
    assert "Ghent" in hosts.start("s2").prefetch_all("Where do I live?")


def test_settings_may_begin_with_the_mark_of_an_editor(home):
    config_file(home).write_bytes('\ufeff{"limit": 3}'.encode())
    assert read_config(home).limit == 3


def test_settings_of_the_wizard_are_kept(hosts, home):
    provider = RecallMemoryProvider()
    provider.save_config({"capture": "false", "max_chars": "800"}, str(home))
    provider.save_config({"recall": "true"}, str(home))
    config = read_config(home)
    assert (config.capture, config.max_chars, config.redact) == (False, 800, True)
    manager = hosts.start()
    hosts.say(manager, "I live in Ghent")
    assert call(manager, "status")["memories"] == 0


def test_a_checkpoint_that_fails_is_no_checkpoint(home):
    (home / "recall").write_text("a file is in the way")
    provider = RecallMemoryProvider()
    provider.initialize("s1", hermes_home=str(home), platform="cli")
    messages = [{"role": "user", "content": "I live in Ghent"}]
    assert provider.on_pre_compress(messages) == ""
    with pytest.raises(Exception, match="not open"):
        provider.on_pre_compress(messages, require_checkpoint=True)
    provider.shutdown()


def test_newer_hosts_may_say_more(home):
    provider = RecallMemoryProvider()
    provider.initialize("s1", hermes_home=str(home), platform="discord", user_id="7", something_new=1)
    author = {"id": "7", "name": "Anna", "is_bot": False}
    provider.on_turn_start(1, "hello", author_id="7", author_name="Anna", author_is_bot=False)
    provider.sync_turn("I live in Ghent", "OK.", session_id="s1", messages=None, turn_author=author, new=1)
    assert "Ghent" in provider.prefetch("Where do I live?", session_id="s1", new=1)
    provider.queue_prefetch("Where do I live?", session_id="s1", new=1)
    assert provider.recall_status() is None  # this host has no RecallStatus
    assert provider.unavailable_reason() == ""
    assert json.loads(provider.handle_tool_call("recall_nothing", {}, session_id="s1"))["error"]
    with Memory.open(memory_file(home), embedder=None) as memory:
        (record,) = (one for one in memory.records() if one.role == "user")
    assert (record.metadata["author_name"], record.scope) == ("Anna", "user/default/discord/7")
    provider.shutdown()


def test_before_and_after_its_life_a_provider_answers(home):
    provider = RecallMemoryProvider()
    assert provider.prefetch("Where do I live?") == ""
    provider.sync_turn("a", "b")
    provider.on_session_end([])
    assert "error" in json.loads(provider.handle_tool_call("recall_search", {"query": "x"}))
    provider.initialize("s1", hermes_home=str(home), platform="cli")
    provider.shutdown()
    provider.shutdown()
    assert provider.prefetch("Where do I live?") == ""
    assert {path.name for path in home.parent.iterdir()} == {"hermes", "user"}
    assert list((home.parent / "user").iterdir()) == []


def test_a_shutdown_ends_while_another_process_holds_the_file_locked(hosts, home, monkeypatch):
    monkeypatch.setattr(provider_module, "PATIENCE", 1.0)
    monkeypatch.setattr(files, "SETTINGS", replace(files.SETTINGS, busy_timeout=600.0))  # so long a write may wait
    manager = hosts.start()
    hosts.say(manager, "The boiler is in the cellar.")
    code = (
        "import apsw, sys; c = apsw.Connection(sys.argv[1]); c.set_busy_timeout(30_000); c.execute('BEGIN IMMEDIATE');"
        "print('locked', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(memory_file(home))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout.readline().strip() == b"locked"
        provider = manager.providers[-1]
        storing = threading.Thread(
            target=provider.sync_turn, args=("The ladder is in the attic.", "Noted."), daemon=True
        )
        storing.start()
        while not provider._transcript.waiting:
            time.sleep(0.02)
        ending = threading.Thread(target=provider.shutdown, daemon=True)
        ending.start()
        ending.join(120)
        assert not ending.is_alive()
    finally:
        other.communicate(timeout=120)
    storing.join(120)
    assert not storing.is_alive()


def test_a_process_that_ends_without_a_shutdown_waits_for_the_model_that_it_loads(home):
    code = f"""if True:
        import sys, threading, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from agents import Hosts
        from recall_hermes import files

        class Slow:
            model_id, dimensions, begun = "slow", 8, threading.Event()

            def embed_passages(self, texts):
                import numpy as np
                self.begun.set()
                time.sleep(1)
                print("loaded", flush=True)
                return np.ones((len(texts), 8), np.float32)

            embed_queries = embed_passages

        files.DEFAULT = Slow()
        manager = Hosts(Path({str(home)!r})).start()
        manager.prefetch_all("Where do I live?")
        assert Slow.begun.wait(120)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, "loaded" in done.stdout) == (0, True), done.stderr
