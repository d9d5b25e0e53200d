"""What the hooks keep of a session, and what they leave as somebody has made it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recall_core import Memory
from recall_core.hooks.capturing import capture_session, capture_tool
from recall_core.hooks.payload import Payload
from recall_core.settings import Settings

KEY = "sk-proj-" + "a1B2" * 12
PRIVATE_KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7bq\n" * 30 + "-----END RSA PRIVATE KEY-----"


@pytest.fixture
def memory(db_path):
    with Memory.open(db_path, embedder=None, settings=Settings(redact=True)) as memory:
        yield memory


def write(folder: Path, *said: tuple[str, Any], **more: Any) -> Path:
    """Write a transcript and return its path."""
    lines = [
        {"type": role, "uuid": f"u{n}", "sessionId": "s1", "message": {"role": role, "content": text}, **more}
        for n, (role, text) in enumerate(said)
    ]
    file = folder / "s1.jsonl"
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return file


def keep(memory: Memory, folder: Path, *said: tuple[str, Any], session: str = "s1") -> dict[str, list[str]]:
    """Capture a session and return the texts that are kept, by kind."""
    capture_session(memory, Payload(session=session, folder=folder, transcript=write(folder, *said)))
    return kept(memory)


def kept(memory: Memory) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for record in memory.records():
        found.setdefault(str(record.kind), []).append(record.text)
    return found


def use(memory: Memory, folder: Path, tool: str, response: Any = None, **given: Any) -> list[str]:
    """Let a tool be used and return the texts that are kept."""
    capture_tool(memory, Payload(session="s1", folder=folder, tool=tool, tool_input=given, tool_response=response))
    return [record.text for record in memory.records()]


DONE = ("assistant", "The deployment runs with Docker Compose now, and the port is 8080.")


def test_what_was_corrected_or_deleted_by_hand_stays_so(memory, tmp_path):
    said = ("user", "From now on use pnpm. Never commit to main. Always run the linter.")
    keep(memory, tmp_path, said, DONE)
    by_text = {record.text: record.id for record in memory.records()}
    memory.delete(by_text["Never commit to main."])
    memory.update(by_text["From now on use pnpm."], text="From now on use pnpm 9", tags=["tools"])
    found = keep(memory, tmp_path, said, DONE)
    assert sorted(found["decision"]) == ["Always run the linter.", "From now on use pnpm 9"]
    assert memory.get([by_text["From now on use pnpm."]])[0].tags == ("tools",)


def test_a_conclusion_goes_on_with_its_session(memory, tmp_path):
    keep(memory, tmp_path, ("user", "Make the deployment work"), DONE)
    last = "It listens at 9090 instead, as you asked, and the tests of the deployment pass."
    found = keep(memory, tmp_path, ("user", "Make the deployment work"), DONE, ("user", "9090"), ("assistant", last))
    assert found == {"conclusion": [f"Make the deployment work\n\n{last}"]}


def test_a_greeting_and_thanks_are_neither_request_nor_conclusion(memory, tmp_path):
    thanks = "You're welcome! Let me know if there is anything else that I can help you with today."
    found = keep(memory, tmp_path, ("user", "hi"), ("user", "Make it work, please"), DONE, ("assistant", thanks))
    assert found == {"conclusion": [f"Make it work, please\n\n{DONE[1]}"]}


@pytest.mark.parametrize(
    "injected",
    [
        "<system-reminder>Always use tabs.</system-reminder>",
        "<ide_selection>Selected from a.md:\nAlways use tabs.\n</ide_selection>",
        "<ide_opened_file>The user opened always.md. Always use tabs.</ide_opened_file>",
        "<task-notification>\nAlways use tabs.\n</task-notification>",
        "<user-prompt-submit-hook>Always use tabs.</user-prompt-submit-hook>",
        "<recalled_memories>\n> Always use tabs.\n</recalled_memories>",
    ],
)
def test_what_the_program_puts_into_a_message_is_not_kept(memory, tmp_path, injected):
    found = keep(memory, tmp_path, ("user", f"{injected}\nNever use eval."), DONE)
    assert found == {"decision": ["Never use eval."], "conclusion": [f"Never use eval.\n\n{DONE[1]}"]}


def test_what_has_a_beginning_but_no_end_stays_and_takes_no_time_to_speak_of(memory, tmp_path):
    text = "Never use eval.\n" + "</ide_selection><ide_selection>\n" * 100_000
    found = keep(memory, tmp_path, ("user", text), DONE)
    assert found["decision"] == ["Never use eval."]


def test_what_a_subagent_and_tools_say_is_not_kept(memory, tmp_path):
    file = write(tmp_path, ("user", "Always use tabs."), DONE, isSidechain=True)
    capture_session(memory, Payload(session="s1", folder=tmp_path, transcript=file))
    result = [{"type": "tool_result", "tool_use_id": "t", "content": "Always use tabs."}]
    assert keep(memory, tmp_path, ("user", result)) == {}


@pytest.mark.parametrize("offset", [0, 260, 285, 299])
def test_a_secret_at_the_edge_of_an_excerpt_is_taken_out(memory, tmp_path, offset):
    (text,) = use(memory, tmp_path, "Write", file_path="a.py", content=f"{'x ' * (offset // 2)} key = '{KEY}'")
    assert "sk-proj" not in text


def test_a_private_key_in_a_file_is_taken_out(memory, tmp_path):
    (text,) = use(memory, tmp_path, "Write", file_path="deploy.py", content=f'KEY = """{PRIVATE_KEY}"""\nrun()')
    assert "MIIE" not in text
    assert "run()" in text


def test_a_secret_at_the_edge_of_a_conclusion_is_taken_out(memory, tmp_path):
    found = keep(memory, tmp_path, ("user", f"{'word ' * 58}{KEY}"), ("assistant", f"{'word ' * 396}{KEY}"))
    assert "sk-proj" not in found["conclusion"][0]


@pytest.mark.parametrize(
    "path",
    ["/home/u/.ssh/config", "/shop/prod.env", "/shop/main.tfvars", "/shop/id_ed25519.pub", "/shop/.pgpass", "/x/k.p12"],
)
def test_a_file_or_folder_of_secrets_is_passed_over(memory, tmp_path, path):
    assert use(memory, tmp_path, "Write", file_path=path, content="hunter2") == []


def test_source_code_with_such_a_name_is_not(memory, tmp_path):
    assert use(memory, tmp_path, "Write", file_path="src/id_generator.py", content="x") == [
        "Write src/id_generator.py: x"
    ]


def test_a_path_is_that_below_the_project_wherever_the_session_began(memory, tmp_path):
    (tmp_path / ".git").mkdir()
    below = tmp_path / "backend"
    below.mkdir()
    assert use(memory, below, "Write", file_path=str(below / "app.py"), content="x") == ["Write backend/app.py: x"]


@pytest.mark.parametrize("response", [{"interrupted": True}, {"stdout": "nothing to commit, working tree clean"}])
def test_a_commit_that_came_to_nothing_is_not_kept(memory, tmp_path, response):
    assert use(memory, tmp_path, "Bash", response, command="git commit -m 'Use Redis'") == []


def test_a_commit_is_kept_once(memory, tmp_path):
    for _ in range(2):
        found = use(memory, tmp_path, "Bash", {"stdout": ""}, command="git commit -m 'Use Redis'")
    assert found == ["Use Redis"]
    assert kept(memory) == {"commit": ["Use Redis"]}
