"""`recall install` and `recall uninstall` beside what others have written: only what is ours is touched."""

from __future__ import annotations

import json
import tomllib

import pytest
from clients_support import COMMAND, files, install, uninstall

from recall_core.clients import toml_text
from recall_core.clients.installing import plan_install
from recall_core.clients.known import Place, find_changes
from recall_core.errors import InvalidInputError


@pytest.fixture
def place(tmp_path):
    return Place(home=tmp_path, environment={}, platform="linux")


def test_other_tables_of_codex_stay_behind_ours(place):
    text = toml_text.add_table("", ["mcp_servers", "recall"], {"command": "x"})
    text += '\n[mcp_servers.recall.env]\nA = "1"\n\n[other]\nb = 2\n'
    assert tomllib.loads(toml_text.remove_table(text, ["mcp_servers", "recall"])) == {"other": {"b": 2}}


def test_comments_and_line_ends_around_a_table_stay(place):
    file = place.home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_bytes(b"a = 1\r\n")
    install("codex", place)
    file.write_bytes(file.read_bytes() + b"\r\n# mine\r\n[other]\r\nb = 1\r\n")
    uninstall("codex", place)
    assert file.read_bytes() == b"a = 1\r\n\r\n# mine\r\n[other]\r\nb = 1\r\n"


def test_comments_around_a_member_stay(place):
    file = place.home / ".config" / "Code" / "User" / "mcp.json"
    install("vscode", place)
    text = file.read_text("utf-8").replace("\n  }\n}", ',\n    // theirs\n    "other": {} // too\n  }\n}')
    file.write_text(text, "utf-8")
    uninstall("vscode", place)
    assert file.read_text("utf-8") == '{\n  "servers": {\n    // theirs\n    "other": {} // too\n  }\n}\n'


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"recall": {"command": "npx", "args": ["-y", "total-recall"], "env": {"KEY": "1"}}}}',
        '{"mcpServers": {"recall": {"url": "https://recall.example/mcp"}}}',
        '{"mcpServers": {"recall": {"command": "/opt/my-recall", "args": ["mcp"]}}}',
    ],
)
def test_another_server_of_this_name_is_neither_replaced_nor_taken_out(place, text):
    file = place.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(InvalidInputError, match="something else"):
        install("cursor", place)
    uninstall("cursor", place)
    assert files(place.home) == {".cursor/mcp.json": text.encode()}


@pytest.mark.parametrize(
    "command", [["recall", "mcp"], ["C:\\venv\\recall.exe", "mcp"], ["uvx", "--from", "dualrecall", "recall", "mcp"]]
)
def test_an_entry_of_ours_that_was_written_by_hand_keeps_its_settings_and_is_backed_up(place, command):
    file = place.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    by_hand = {"command": command[0], "args": command[1:], "env": {"RECALL_DB": "/x"}, "disabled": False}
    text = json.dumps({"mcpServers": {"recall": by_hand, "b": {}}})
    file.write_text(text)
    install("cursor", place)
    found = json.loads(file.read_text())["mcpServers"]["recall"]
    assert found == {**by_hand, "type": "stdio", "command": COMMAND[0], "args": COMMAND[1:]}
    assert (file.parent / "mcp.json.before-recall").read_text() == text
    uninstall("cursor", place)
    assert json.loads(file.read_text()) == {"mcpServers": {"b": {}}}


def test_settings_that_codex_adds_to_our_table_stay_when_it_is_replaced(place):
    install("codex", place)
    file = place.home / ".codex" / "config.toml"
    with file.open("a") as out:
        out.write('enabled = false\ntool_timeout_sec = 5.5\n[mcp_servers.recall.env]\n"A B" = "1"\n')
    install("codex", place, ["/new/recall", "mcp"])
    assert tomllib.loads(file.read_text())["mcp_servers"]["recall"] == {
        "command": "/new/recall", "args": ["mcp"], "enabled": False, "tool_timeout_sec": 5.5, "env": {"A B": "1"}
    }  # fmt: skip
    uninstall("codex", place)
    assert file.read_text() == ""


@pytest.mark.parametrize("header", ['[mcp_servers."recall"]', "[ mcp_servers . recall ] # ours"])
def test_a_table_is_known_however_its_name_is_written(place, header):
    file = place.home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(f'[a]\nb = 1\n\n{header}\ncommand = "recall"\nargs = [\n  "mcp",\n]\n\n# c\n[c]\nd = 2\n')
    uninstall("codex", place)
    assert file.read_text() == "[a]\nb = 1\n\n# c\n[c]\nd = 2\n"


def test_a_table_that_can_not_be_taken_out_is_left_alone(place):
    file = place.home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text('[mcp_servers]\nrecall = {command = "recall", args = ["mcp"]}\n')
    before = files(place.home)
    with pytest.raises(InvalidInputError, match="left alone"):
        uninstall("codex", place)
    with pytest.raises(InvalidInputError, match="left alone"):
        install("codex", place)
    assert files(place.home) == before


def test_a_handler_of_ours_beside_others_goes_alone(place):
    file = place.home / ".claude" / "settings.json"
    file.parent.mkdir()
    theirs = {"type": "command", "command": "my-recall hook session-start"}
    ours = {"type": "command", "command": "/old/recall hook session-start"}
    file.write_text(json.dumps({"hooks": {"SessionStart": [{"matcher": "startup", "hooks": [theirs, ours]}]}}))
    install("claude-code", place)
    entries = json.loads(file.read_text())["hooks"]["SessionStart"]
    assert entries[0] == {"matcher": "startup", "hooks": [theirs]}
    assert [handler["command"] for handler in entries[1]["hooks"]] == ["'/opt/with space/recall' hook session-start"]
    assert len(entries) == 2
    uninstall("claude-code", place)
    assert json.loads(file.read_text()) == {"hooks": {"SessionStart": [{"matcher": "startup", "hooks": [theirs]}]}}


def test_what_somebody_has_set_at_our_hooks_stays(place):
    install("claude-code", place)
    file = place.home / ".claude" / "settings.json"
    file.write_text(file.read_text().replace("Write|Edit|MultiEdit|NotebookEdit|Bash", "Write"))
    assert plan_install(find_changes("claude-code", COMMAND, place)) == []
    uninstall("claude-code", place)
    assert files(place.home) == {}


def test_hooks_of_others_stay(place):
    file = place.home / ".claude" / "settings.json"
    file.parent.mkdir()
    theirs = {"hooks": [{"type": "command", "command": "their hook session-start"}]}
    file.write_text(json.dumps({"hooks": {"SessionStart": [theirs]}, "model": "opus"}))
    install("claude-code", place)
    hooks = json.loads(file.read_text())["hooks"]
    assert hooks["SessionStart"][0] == theirs
    assert hooks["SessionStart"][1]["hooks"][0]["command"] == "'/opt/with space/recall' hook session-start"
    assert list(hooks) == ["SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "SessionEnd"]
    json_text_before = file.read_text()
    file.write_text(json_text_before.replace('"opus"', '"sonnet"'))
    uninstall("claude-code", place)
    assert json.loads(file.read_text()) == {"hooks": {"SessionStart": [theirs]}, "model": "sonnet"}


def test_an_empty_place_that_was_there_before_stays(place):
    file = place.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": { /* none yet */ }, "other": {}}')
    install("cursor", place)
    file.write_text(file.read_text().replace('"other": {}', '"other": {"a": 1}'))
    uninstall("cursor", place)
    assert file.read_text() == '{"mcpServers": { /* none yet */\n}, "other": {"a": 1}}'
