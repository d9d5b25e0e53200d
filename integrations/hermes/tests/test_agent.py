"""The real agent with a model server that says what it was told to: nothing of Hermes is replaced."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from agents import serving, start_agent, telegram, use_memory, use_tool

from recall_core import Memory
from recall_hermes.installing import install
from recall_hermes.mirror import KIND
from recall_hermes.names import memory_file

HERE = Path(__file__).parent
STORIES = [
    ("给 watchdog 脚本加了自动重启，间隔五分钟", "watchdog 的间隔是多少？", "间隔五分钟"),
    ("我叫小明，生产数据库是 PostgreSQL", "我的生产数据库是什么？", "PostgreSQL"),
    ("I am allergic to peanuts", "Which food am I allergic to?", "peanuts"),
]


@pytest.fixture
def talk(home, capsys):
    """Return what lets an agent have a conversation of some turns, and what the model was asked in the last one."""
    install(home)

    def talk(model, session, *said, **given):
        with contextlib.ExitStack() as stack:
            agent = start_agent(model, session, **given)
            stack.callback(agent.shutdown_memory_provider)
            history = None
            for text in said:
                history = agent.run_conversation(text, conversation_history=history)["messages"]
        return str(model.asked[-1][-1]["content"])

    return talk


def mirrored(home):
    with Memory.open(memory_file(home), embedder=None) as memory:
        return {record.text for record in memory.records(limit=100) if record.kind == KIND}


@pytest.mark.parametrize(("told", "asked", "expected"), STORIES)
def test_what_was_told_in_one_session_is_before_the_model_in_the_next(talk, told, asked, expected):
    with serving() as model:
        talk(model, "s1", told)
        assert expected in talk(model, "s2", asked)
        assert "<memory-context>" in str(model.asked[-1][-1]["content"])
        assert {"recall_search", "recall_remember", "recall_forget", "recall_status"} <= set(model.tools)
        assert "recall_search" in str(model.asked[-1][0]["content"])  # the system prompt tells of it


def test_what_is_recalled_is_not_stored_again(talk, home):
    with serving() as model:
        talk(model, "s1", "I am allergic to peanuts")
        talk(model, "s2", "Which food am I allergic to?")
    with Memory.open(memory_file(home), embedder=None) as memory:
        texts = [record.text for record in memory.records(limit=100)]
    assert sorted(texts) == ["I am allergic to peanuts", "OK.", "OK.", "Which food am I allergic to?"]


def test_the_memory_tool_is_mirrored_exactly(talk, home):
    steps = [
        (use_memory(action="add", target="user", content="Editor: zed"), {"Editor: zed"}),
        (
            use_memory(action="add", target="memory", content="部署用 Docker Compose"),
            {"Editor: zed", "部署用 Docker Compose"},
        ),
        (
            use_memory(action="replace", target="user", old_text="zed", content="Editor: helix"),
            {"Editor: helix", "部署用 Docker Compose"},
        ),
        (use_memory(action="remove", target="memory", old_text="Docker"), {"Editor: helix"}),
    ]
    for number, (answer, expected) in enumerate(steps):
        with serving(answer) as model:
            talk(model, f"s{number}", "Change your notes")
        assert mirrored(home) == expected
    assert "helix" in (home / "memories" / "USER.md").read_text("utf-8")


def test_an_agent_uses_the_tools(talk, home):
    with serving(use_tool("recall_remember", text="The wifi is called Blaumeise")) as model:
        talk(model, "s1", "Remember the wifi")
    with serving(use_tool("recall_search", query="wifi name")) as model:
        assert "Blaumeise" in talk(model, "s2", "Look it up")


def test_a_gateway_user_is_recalled_nothing_of_another(talk):
    with serving() as model:
        talk(model, "a", "My favourite fruit is apricot", **_gateway("1"))
        assert "apricot" not in talk(model, "b", "What is my favourite fruit?", **_gateway("2"))
        assert "apricot" in talk(model, "c", "What is my favourite fruit?", **_gateway("1"))


def _gateway(user):
    return {key: value for key, value in telegram(user).items() if not key.startswith("agent_")}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_agent_has_lost_nothing_of_a_turn(home, talk):
    with serving() as model:
        code = f"""
            import sys
            sys.path.insert(0, {str(HERE)!r})
            from types import SimpleNamespace
            from agents import start_agent
            agent = start_agent(SimpleNamespace(url={model.url!r}), "s1")
            agent.run_conversation("The code of the bicycle lock is 4711")
            agent._memory_manager.flush_pending(timeout=120)
            print("answered", flush=True)
            sys.stdin.read()
        """
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            stdout=subprocess.PIPE, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ.copy(),
        )  # fmt: skip
        with child:
            assert child.stdout is not None
            while "answered" not in child.stdout.readline():
                assert child.poll() is None
            os.kill(child.pid, signal.SIGKILL)
        assert "4711" in talk(model, "s2", "What is the code of my bicycle lock?")
