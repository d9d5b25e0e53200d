"""`recall install` and `recall uninstall`: what else is in a client's files stays as it was written."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest
from cli_support import run
from hypothesis import given
from hypothesis import strategies as st

from recall_core.clients import json_text, toml_text
from recall_core.clients.installing import plan_install, plan_uninstall, write_edits
from recall_core.clients.known import CLIENTS, Place, find_changes
from recall_core.errors import InvalidInputError

COMMAND = ["/opt/with space/recall", "mcp", "--client", "x"]
JSONS = {
    "empty": "",
    "braces": "{}",
    "spread braces": "{\n}\n",
    "plain": '{\n  "a": 1,\n  "mcpServers": {\n    "other": {"command": "x"}\n  },\n  "z": [1, 2]\n}\n',
    "tabs": '{\n\t"theme": "dark",\n\t"hooks": {\n\t\t"SessionStart": [\n\t\t\t{"hooks": []}\n\t\t]\n\t}\n}',
    "one line": '{"mcpServers": {"other": {"command": "x"}}, "hooks": {"Stop": []}}',
    "windows": '{\r\n  "servers": {\r\n    "other": {}\r\n  }\r\n}\r\n',
    "comments": '// mine\n{\n  // servers\n  "mcpServers": {\n    "a": {"url": "http://x//y"}, // keep "this"\n  },\n'
    '  /* the end { */\n  "servers": {},\n}\n',
    "only comments": "{\n  // nothing yet\n}\n",
    "unicode": '\ufeff{"name": "记忆 \\u8bb0 \\"q\\""}',
    "empty parts": '{"mcpServers": {}, "servers": {}, "hooks": {"SessionStart": []}}',
}
TOMLS = {
    "empty": "",
    "plain": '# mine\nmodel = "o"  # this\n\n[mcp_servers.other]\ncommand = "x"\n',
    "no line end": "[a]\nb = 1",
    "windows": "a = 1\r\n\r\n[b]\r\nc = 2\r\n",
    "blank end": "a = 1\n\n\n",
}


def contents(client: str) -> dict[str, str]:
    return TOMLS if client == "codex" else JSONS


CASES = [(client, name) for client in CLIENTS for name in contents(client)]


@pytest.fixture
def place(tmp_path):
    return Place(home=tmp_path, environment={}, platform="linux")


def install(client: str, place: Place, command: list[str] = COMMAND) -> None:
    write_edits(plan_install(find_changes(client, command, place)), installs=True)


def uninstall(client: str, place: Place) -> None:
    write_edits(plan_uninstall(find_changes(client, ["recall", "mcp"], place)), installs=False)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def parse(client: str, text: str):
    return toml_text.parse(text) if client == "codex" else json_text.parse(text) if text.strip() else {}


@pytest.mark.parametrize(("client", "name"), CASES)
def test_installing_adds_the_server_and_uninstalling_leaves_every_byte_as_it_was(client, name, place):
    changes = find_changes(client, COMMAND, place)
    for change in changes:
        change.file.parent.mkdir(parents=True, exist_ok=True)
        change.file.write_bytes(contents(client)[name].encode())
    before = files(place.home)
    install(client, place)
    for change in changes:
        found = parse(client, change.file.read_bytes().decode())
        for key in change.path:
            found = found[key]
        assert found == change.value or change.value in found
    uninstall(client, place)
    assert files(place.home) == before


@pytest.mark.parametrize("client", CLIENTS)
def test_where_there_was_no_file_there_is_none_afterwards(client, place):
    install(client, place)
    assert files(place.home)
    uninstall(client, place)
    assert files(place.home) == {}


@pytest.mark.parametrize(("client", "name"), CASES)
def test_all_else_means_what_it_meant(client, name, place):
    file = find_changes(client, COMMAND, place)[0].file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(contents(client)[name].encode())
    before = parse(client, contents(client)[name])
    install(client, place)
    after = parse(client, file.read_bytes().decode())
    top = find_changes(client, COMMAND, place)[0].path[0]
    assert {key: value for key, value in after.items() if key != top} == {
        key: value for key, value in before.items() if key != top
    }
    assert {key: value for key, value in after[top].items() if key != "recall"} == before.get(top, {})


@pytest.mark.parametrize("client", CLIENTS)
def test_installing_again_changes_nothing_and_another_command_replaces_the_first(client, place):
    install(client, place)
    assert plan_install(find_changes(client, COMMAND, place)) == []
    install(client, place, ["/new/recall", "mcp"])
    text = "".join(content.decode() for content in files(place.home).values())
    assert "/new/recall" in text
    assert "/opt/" not in text
    uninstall(client, place)
    assert files(place.home) == {}


@pytest.mark.parametrize(("client", "name"), CASES)
def test_what_was_written_in_between_stays(client, name, place):
    changes = find_changes(client, COMMAND, place)
    for change in changes:
        change.file.parent.mkdir(parents=True, exist_ok=True)
        change.file.write_bytes(contents(client)[name].encode())
    install(client, place)
    for file in {change.file for change in changes}:
        text = file.read_bytes().decode()
        text = f"# late\nlate = true\n{text}" if client == "codex" else json_text.add_member(text, ["late"], True)
        file.write_bytes(text.encode())
    uninstall(client, place)
    for change in changes:
        found = parse(client, change.file.read_bytes().decode())
        assert found.pop("late") is True
        kept = parse(client, contents(client)[name])
        full = {key: value for key, value in kept.items() if value not in ({}, {"SessionStart": []})}
        assert {key: value for key, value in found.items() if value not in ({}, {"SessionStart": []})} == full
        assert "recall" not in change.file.read_text("utf-8")


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', '{"a": nope}', "no json", '{"mcpServers": "x"}'])
def test_a_file_that_can_not_be_edited_is_left_alone(place, text):
    file = place.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(InvalidInputError, match="left alone"):
        install("cursor", place)
    assert files(place.home) == {".cursor/mcp.json": text.encode()}


@pytest.mark.parametrize("text", ["a = ", "mcp_servers = 1", "mcp_servers = {other = {command = 'x'}}"])
def test_toml_that_can_not_be_added_to_is_left_alone(place, text):
    file = place.home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(InvalidInputError, match="left alone"):
        install("codex", place)
    assert file.read_text() == text


def test_other_tables_of_codex_stay_behind_ours(place):
    text = toml_text.add_table("", "mcp_servers.recall", {"command": "x"})
    text += '\n[mcp_servers.recall.env]\nA = "1"\n\n[other]\nb = 2\n'
    assert tomllib.loads(toml_text.remove_table(text, "mcp_servers.recall")) == {"other": {"b": 2}}


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


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_and_links_stay(place):
    real = place.home / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    (place.home / ".cursor").mkdir()
    (place.home / ".cursor" / "mcp.json").symlink_to(real)
    install("cursor", place)
    assert (place.home / ".cursor" / "mcp.json").is_symlink()
    assert "recall" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_each_platform_has_folders_of_its_own(tmp_path):
    where = {
        platform: find_changes("vscode", COMMAND, Place(home=tmp_path, environment={}, platform=platform))[0].file
        for platform in ("linux", "darwin", "win32")
    }
    assert {platform: file.relative_to(tmp_path).as_posix() for platform, file in where.items()} == {
        "linux": ".config/Code/User/mcp.json",
        "darwin": "Library/Application Support/Code/User/mcp.json",
        "win32": "AppData/Roaming/Code/User/mcp.json",
    }


def test_the_command_shows_first_then_does_and_undoes(tmp_path, db_path):
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "CLAUDE_CONFIG_DIR": None}
    shown = run(db_path, "install", "claude-code", "--dry-run", **home)
    assert shown.exit_code == 0, shown.stderr
    assert "mcpServers" in shown.stdout
    assert not (tmp_path / ".claude.json").exists()
    done = run(db_path, "install", "claude-code", "--sharing", "project", "--db", str(db_path), **home)
    assert str(tmp_path / ".claude.json") in done.stdout
    server = json.loads((tmp_path / ".claude.json").read_text())["mcpServers"]["recall"]
    assert Path(server["command"]).is_absolute()
    assert server["args"] == ["mcp", "--client", "claude-code", "--sharing", "project", "--db", str(db_path)]
    assert (
        "nothing was changed"
        in run(db_path, "install", "claude-code", "--sharing", "project", "--db", str(db_path), **home).stdout
    )
    assert run(db_path, "uninstall", "claude-code", **home).exit_code == 0
    assert not (tmp_path / ".claude.json").exists()
    assert "does not have" in run(db_path, "uninstall", "claude-code", **home).stdout


def test_without_hermes_adapter_the_command_says_what_to_install(db_path):
    done = run(db_path, "install", "hermes")
    assert (done.exit_code, "dualrecall-hermes" in done.stderr) == (2, True)


keys = st.text(st.characters(blacklist_categories=("Cs",)), max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(keys, values, max_size=4),
    st.sampled_from([None, 2, "\t"]),
    st.dictionaries(keys, values, max_size=2),
)
def test_what_is_added_to_any_json_is_there_and_gone_when_removed(document, indent, value):
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    path = ["outer key", "inner"]
    added = json_text.add_member(text, path, value)
    assert json.loads(added) == {**document, "outer key": {"inner": value}}
    removed = json_text.remove(json_text.remove(added, path), path[:1])
    assert json.loads(removed) == document


@given(st.lists(values, min_size=1, max_size=4), st.sampled_from([None, 2]), st.data())
def test_an_item_can_be_removed_from_any_list(items, indent, data):
    place = data.draw(st.integers(0, len(items) - 1))
    text = json.dumps({"a": items}, indent=indent)
    assert json.loads(json_text.remove(text, ["a", place])) == {"a": items[:place] + items[place + 1 :]}
    assert json.loads(json_text.add_item(text, ["a"], items[0])) == {"a": [*items, items[0]]}
