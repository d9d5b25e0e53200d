"""Claude Code's hooks, called as the client calls them: a process, JSON on standard input, JSON or nothing back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_support import run_process
from support import LIMIT, HashedEmbedder

from recall_core import Memory
from recall_core.client_scopes import project_scope

COMMAND = "from recall_core.cli import main; main()"
EVENTS = {
    "session-start": {"hook_event_name": "SessionStart", "source": "startup", "model": "opus"},
    "user-prompt-submit": {"hook_event_name": "UserPromptSubmit", "prompt": "how do we deploy the payment service?"},
    "post-tool-use": {
        "hook_event_name": "PostToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": "src/deploy.py", "content": "Deploys with Docker Compose"},
        "tool_response": {"type": "create", "filePath": "src/deploy.py"},
        "tool_use_id": "toolu_1",
        "duration_ms": 3,
    },
    "pre-compact": {"hook_event_name": "PreCompact", "trigger": "manual", "custom_instructions": None},
    "session-end": {"hook_event_name": "SessionEnd", "reason": "other"},
}
DEPLOY = "The payment service is deployed with Docker Compose, not with virtual machines"
SECRET = "sk-proj-" + "a1B2" * 12


@pytest.fixture
def project(tmp_path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def state(tmp_path) -> Path:
    """Return the folder of the hooks' log."""
    return tmp_path / "state"


@pytest.fixture
def call(db_path, project, state):
    """Return what calls a hook and returns the context that it injects, None if it prints nothing."""

    def call(
        event: str, *, raw: bytes | None = None, budget: int = 100_000, session: str = "s1", **given: Any
    ) -> str | None:
        known = {"session_id": session, "cwd": str(project), "transcript_path": "/nowhere.jsonl"}
        payload = json.dumps({**known, **EVENTS[event], **given}).encode() if raw is None else raw
        environment = {**os.environ, "RECALL_DB": str(db_path), "RECALL_HOOK_DIR": str(state)}
        environment["RECALL_HOOK_BUDGET"] = str(budget)
        environment.pop("CLAUDE_PROJECT_DIR", None)
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, "hook", event],
            input=payload,
            capture_output=True,
            env=environment,
            timeout=LIMIT,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        if not done.stdout:
            return None
        output = json.loads(done.stdout)
        assert set(output) == {"suppressOutput", "hookSpecificOutput"}
        assert output["hookSpecificOutput"]["hookEventName"] == EVENTS[event]["hook_event_name"]
        return output["hookSpecificOutput"]["additionalContext"]

    return call


@pytest.fixture
def remember(db_path, project):
    def remember(text: str, scope: str | None = None, **arguments: Any) -> str:
        with Memory.open(db_path, embedder=None) as memory:
            return memory.add(text, scope=project_scope(project) if scope is None else scope, **arguments).id

    return remember


@pytest.fixture
def kept(db_path):
    def kept() -> list[Any]:
        with Memory.open(db_path, embedder=None) as memory:
            return memory.records()

    return kept


def write_transcript(folder: Path, *said: tuple[str, str]) -> Path:
    """Write a transcript as Claude Code does."""
    lines = [
        {
            "type": role, "uuid": f"u{number}", "parentUuid": None, "sessionId": "s1", "isSidechain": False,
            "timestamp": f"2026-01-31T09:{number:02}:00.000Z", "cwd": "/shop", "version": "2.1.197",
            "message": {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]},
        }
        for number, (role, text) in enumerate(said)
    ]  # fmt: skip
    file = folder / "s1.jsonl"
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines) + '{"type": "assi', "utf-8")
    return file


def test_what_is_relevant_to_a_prompt_goes_before_it(call, remember):
    id = remember(DEPLOY)
    remember("She takes her coffee without sugar")
    block = call("user-prompt-submit")
    assert f"[{id}]" in block
    assert f"> {DEPLOY}" in block
    assert "coffee" not in block


def test_chinese_prompts_find_chinese_memories(call, remember):
    remember("项目部署统一使用 Docker Compose，不再使用虚拟机")
    assert "> 项目部署统一使用" in call("user-prompt-submit", prompt="项目怎么部署？")


@pytest.mark.parametrize("prompt", ["ok", "", "yes", "what is the weather like in Lisbon", "/help", "🙂"])
def test_a_prompt_that_nothing_is_relevant_to_stays_alone(call, remember, prompt):
    remember(DEPLOY)
    assert call("user-prompt-submit", prompt=prompt) is None


def test_a_session_sees_a_memory_once_until_its_context_is_gone(call, remember):
    remember(DEPLOY)
    assert call("user-prompt-submit") is not None
    assert call("user-prompt-submit") is None
    assert call("user-prompt-submit", session="another") is not None
    assert call("session-start", source="resume") is None
    assert DEPLOY in call("session-start", source="compact")


def test_a_project_sees_its_own_and_shared_memories_and_no_others(call, remember, tmp_path):
    remember("deploy the payment service by hand, says another project", project_scope(tmp_path / "other"))
    remember("deploy the payment service at night, says a private one", "private/cursor")
    assert call("user-prompt-submit") is None
    remember("deploy the payment service on Mondays, say all", "shared")
    assert "on Mondays" in call("user-prompt-submit")


def test_a_block_has_an_end_and_is_never_stored_again(call, remember, kept, project):
    for number in range(40):
        remember(f"{number}: how we deploy the payment service. " + "word " * 400)
    block = call("user-prompt-submit")
    assert len(block) <= 3_000
    call("post-tool-use", tool_input={"file_path": "a.txt", "content": f"{block} rest"})
    (change,) = [record for record in kept() if record.kind == "file-change"]
    assert change.text == "Write a.txt: rest"


def test_a_session_begins_with_the_last_decisions(call, remember):
    remember(DEPLOY, kind="decision")
    remember("Write a.py: x", kind="file-change")
    block = call("session-start")
    assert DEPLOY in block
    assert "a.py" not in block
    assert "relevance" not in block


def test_a_written_file_is_remembered_once_for_each_session(call, kept, project):
    for content in ("first", "second"):
        call("post-tool-use", tool_input={"file_path": str(project / "src" / "a.py"), "content": content})
    (record,) = kept()
    assert (record.text, record.kind, record.session) == ("Write src/a.py: second", "file-change", "s1")
    assert (record.scope, record.expires_at is None) == (project_scope(project), False)


@pytest.mark.parametrize("name", [".env", ".env.local", "server.pem", "id_rsa", "aws-credentials.json"])
def test_a_file_of_secrets_is_not_remembered(call, db_path, name):
    call("post-tool-use", tool_input={"file_path": f"/shop/{name}", "content": "hunter2"})
    with Memory.open(db_path, embedder=None) as memory:
        assert memory.count() == 0


def test_secrets_are_taken_out_of_what_is_kept(call, kept):
    call("post-tool-use", tool_input={"file_path": "a.py", "new_string": f"key = '{SECRET}'"}, tool_name="Edit")
    (record,) = kept()
    assert SECRET not in record.text
    assert "redacted" in record.text


def test_the_message_of_a_commit_is_kept(call, kept):
    call("post-tool-use", tool_name="Bash", tool_input={"command": "ls -la"})
    call("post-tool-use", tool_name="Bash", tool_input={"command": "git add . && git commit -m 'Use Redis'"})
    assert [(record.text, record.kind) for record in kept()] == [("Use Redis", "commit")]


@pytest.mark.parametrize("event", ["session-end", "pre-compact"])
def test_decisions_and_the_conclusion_of_a_session_are_kept(call, kept, tmp_path, event):
    transcript = write_transcript(
        tmp_path,
        ("user", f"Make the deployment work. From now on use pnpm, the key is {SECRET}."),
        ("assistant", "Working on it, first I look at the files that are there."),
        ("user", "以后都用 Docker Compose 部署。那个测试怎么样了？"),
        ("assistant", "Done: the deployment runs with Docker Compose, and the port is 8080 now."),
    )
    for _ in range(2):  # again, as after a compaction: nothing is stored twice
        call(event, transcript_path=str(transcript))
    found = {record.kind: record for record in kept() if record.kind == "conclusion"}
    decisions = {record.text for record in kept() if record.kind == "decision"}
    assert decisions == {"From now on use pnpm, the key is [redacted: openai key].", "以后都用 Docker Compose 部署。"}
    assert "the port is 8080 now" in found["conclusion"].text
    assert SECRET not in found["conclusion"].text
    assert len(kept()) == 3


@pytest.mark.parametrize(
    "arguments", [["stop"], [], ["user-prompt-submit", "--nope"], ["user-prompt-submit", "--db"], ["--help", "stop"]]
)
def test_a_call_of_another_version_blocks_nothing(db_path, state, arguments):
    done = run_process(db_path, "hook", *arguments, RECALL_HOOK_DIR=str(state), given=b"{}")
    assert done.returncode == 0
    assert (state / "hooks.log").exists() or b"Usage" in done.stdout


@pytest.mark.parametrize("budget", ["abc", "inf", "nan", "-5", "0", "1e300"])
def test_a_budget_that_is_none_is_passed_over(db_path, state, budget):
    done = run_process(
        db_path, "hook", "post-tool-use", given=b"{}", RECALL_HOOK_DIR=str(state), RECALL_HOOK_BUDGET=budget
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    log = state / "hooks.log"
    assert not log.exists() or "gave up after 8 s" in log.read_text("utf-8")  # as on a machine that stops for a while


def test_without_a_place_for_its_state_a_hook_recalls_all_the_same(call, remember, state):
    remember(DEPLOY)
    state.write_text("a file")
    assert DEPLOY in call("user-prompt-submit")
    assert DEPLOY in call("session-start")


@pytest.mark.parametrize("given", [{"session_id": "a\0b\ud800"}, {"session_id": 7}, {"cwd": "/a" * 3_000}])
def test_names_that_can_not_be_stored_are_no_obstacle(call, kept, given):
    call("post-tool-use", **given)
    assert len(kept()) == 1


def test_notes_that_the_program_writes_ask_for_nothing(call, remember):
    remember(DEPLOY)
    note = "<task-notification>how do we deploy the payment service?</task-notification>"
    assert call("user-prompt-submit", prompt=note) is None


def test_the_beginning_of_a_session_has_room_for_more_than_one_conclusion(call, remember):
    ids = [remember(f"Conclusion {number}. " + "It came to this. " * 100, kind="conclusion") for number in range(3)]
    remember("Use Redis", kind="commit")
    remember("Always use tabs.", kind="decision")
    block = call("session-start")
    assert all(f"[{id}]" in block for id in ids)
    assert block.index("Always use tabs") < block.index("Use Redis")


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"prompt": 7, "cwd": [], "tool_input": 3}'])
def test_input_that_is_broken_blocks_nothing(call, event, raw):
    assert call(event, raw=raw) is None


@pytest.mark.parametrize("event", ["session-start", "user-prompt-submit"])
def test_without_a_memory_none_is_made(call, db_path, event):
    assert call(event) is None
    assert not db_path.exists()


@pytest.mark.parametrize("event", EVENTS)
def test_a_file_that_is_no_memory_is_told_to_the_log_alone(call, db_path, state, tmp_path, event):
    db_path.write_bytes(b"this is no database at all, it is a text" * 100)
    transcript = write_transcript(tmp_path, ("user", "x"), ("assistant", "y" * 50))
    assert call(event, transcript_path=str(transcript)) is None
    assert event in (state / "hooks.log").read_text("utf-8")


def test_a_locked_memory_is_read_all_the_same(call, remember, db_path):
    remember(DEPLOY)
    with Memory.open(db_path, embedder=None) as memory, memory._engine.store.records.transaction():
        assert DEPLOY in call("user-prompt-submit")


def test_what_can_not_be_stored_since_another_writes_is_told_to_the_log(call, remember, db_path, state):
    remember(DEPLOY)
    with Memory.open(db_path, embedder=None) as memory, memory._engine.store.records.transaction():
        assert call("post-tool-use") is None
    assert "StoreBusyError" in (state / "hooks.log").read_text("utf-8")


def test_the_log_is_turned_over_when_it_is_long(call, state):
    state.mkdir()
    (state / "hooks.log").write_text("old\n" * 300_000)
    call("post-tool-use", raw=b"{")
    assert (state / "hooks.log.1").read_text().startswith("old")
    assert (state / "hooks.log").read_text("utf-8").count("\n") == 1


def test_a_hook_that_takes_too_long_ends_by_itself(call, remember, state):
    remember(DEPLOY)
    assert call("user-prompt-submit", budget=1) is None
    assert "gave up" in (state / "hooks.log").read_text("utf-8")


def test_a_prompt_of_five_megabytes_is_answered(call, remember):
    remember(DEPLOY)
    assert DEPLOY in call("user-prompt-submit", prompt="How do we deploy the payment service? " + "x = 1\n" * 900_000)


def test_what_a_hook_stored_without_a_model_gets_its_vector_from_the_next_who_has_one(call, db_path):
    call("post-tool-use")
    with Memory.open(db_path, embedder=HashedEmbedder()) as memory:
        assert memory.flush() == 0
        assert memory.stats().spaces[0].vectors == 1
