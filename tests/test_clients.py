"""`recall install` and `recall uninstall`: what else is in a client's files stays as it was written."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from cli_support import run
from clients_support import COMMAND, files, install, uninstall
from hypothesis import given
from hypothesis import strategies as st

from recall_core.clients import json_text, toml_text
from recall_core.clients.files import Edit, write_edits
from recall_core.clients.installing import plan_install
from recall_core.clients.known import CLIENTS, Place, find_changes
from recall_core.errors import InvalidInputError
from recall_core.hooks.running import BUDGETS

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
    "a mark alone": "\ufeff",
    "a comment alone": "// nothing yet",
    "a mark and Windows": '\ufeff{\r\n\t"mcpServers": {\r\n\t\t"other": {"args": ["a",],},\r\n\t},\r\n}',
    "comments behind": '{"mcpServers": {"a": {} /* one */, // two\n }, /* three */ "hooks": {"Stop": [/* four */]} }',
    "empty parts": '{"mcpServers": {}, "servers": {}, "hooks": {"SessionStart": []}}',
}
TOMLS = {
    "empty": "",
    "plain": '# mine\nmodel = "o"  # this\n\n[mcp_servers.other]\ncommand = "x"\n',
    "no line end": "[a]\nb = 1",
    "windows": "a = 1\r\n\r\n[b]\r\nc = 2\r\n",
    "blank end": "a = 1\n\n\n",
    "a mark": "\ufeff[a]\nb = 1\n",
    "a mark alone": "\ufeff",
    "text like ours": 'x = """\n[mcp_servers.recall]\ncommand = "y"\n"""\nz = [\n  "[mcp_servers.recall]",\n]\n',
    "comment at the end": "[[a]]\nb = 1\n# the end\n",
}


def contents(client: str) -> dict[str, str]:
    return TOMLS if client == "codex" else JSONS


CASES = [(client, name) for client in CLIENTS for name in contents(client)]


@pytest.fixture
def place(tmp_path):
    return Place(home=tmp_path, environment={}, platform="linux")


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
        mark = "\ufeff" * text.startswith("\ufeff")
        late = f"{mark}# late\nlate = true\n{text.removeprefix(mark)}"
        text = late if client == "codex" else json_text.add_member(text, ["late"], True)
        file.write_bytes(text.encode())
    uninstall(client, place)
    for change in changes:
        found = parse(client, change.file.read_bytes().decode())
        assert found.pop("late") is True
        kept = parse(client, contents(client)[name])
        full = {key: value for key, value in kept.items() if value not in ({}, {"SessionStart": []})}
        assert {key: value for key, value in found.items() if value not in ({}, {"SessionStart": []})} == full
        assert "recall" not in change.file.read_text("utf-8") or name == "text like ours"


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


def test_a_hook_ends_by_itself_before_its_client_ends_it(place):
    for change in find_changes("claude-code", COMMAND, place)[1:]:
        assert BUDGETS[change.mark] < change.value["hooks"][0]["timeout"]


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


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_read_only_file_is_left_alone_and_so_are_the_others(place):
    (place.home / ".claude").mkdir()
    file = place.home / ".claude" / "settings.json"
    file.write_text("{}")
    file.chmod(0o444)
    with pytest.raises(InvalidInputError, match="read-only"):
        install("claude-code", place)
    assert files(place.home) == {".claude/settings.json": b"{}"}


def test_if_one_file_can_not_be_written_none_is(place):
    (place.home / ".claude").write_text("no folder")
    edits = plan_install([change for change in find_changes("claude-code", COMMAND, place) if not change.item])
    settings = find_changes("claude-code", COMMAND, place)[1]
    broken = Edit(settings.file, None, "{}")
    with pytest.raises(OSError, match=r"\.claude"):
        write_edits([*edits, broken])
    assert files(place.home) == {".claude": b"no folder"}


@pytest.mark.parametrize(
    ("program", "handler"),
    [
        ("C:\\venv\\Scripts\\recall.exe", {"command": "C:/venv/Scripts/recall.exe hook session-start"}),
        ("C:\\记忆\\recall.exe", {"command": "C:/记忆/recall.exe hook session-start"}),
        (
            "C:\\Program Files\\recall.exe",
            {"command": "C:\\Program Files\\recall.exe", "args": ["hook", "session-start"]},
        ),
    ],
)
def test_a_hook_on_windows_is_written_as_any_of_its_shells_takes_it(tmp_path, program, handler):
    windows = Place(home=tmp_path, environment={}, platform="win32")
    change = find_changes("claude-code", [program, "mcp"], windows)[1]
    assert change.value["hooks"] == [{"type": "command", **handler, "timeout": 5}]
    install("claude-code", windows, [program, "mcp"])
    uninstall("claude-code", windows)
    assert files(tmp_path) == {}


PLACES = {
    "claude-code": (".claude.json", ".claude.json", ".claude.json"),
    "claude-desktop": (
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        "AppData/Roaming/Claude/claude_desktop_config.json",
    ),
    "cursor": (".cursor/mcp.json",) * 3,
    "codex": (".codex/config.toml",) * 3,
    "vscode": (
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
        "AppData/Roaming/Code/User/mcp.json",
    ),
    "windsurf": (".codeium/windsurf/mcp_config.json",) * 3,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_each_platform_has_folders_of_its_own(client, tmp_path):
    places = [Place(home=tmp_path, environment={}, platform=platform) for platform in ("linux", "darwin", "win32")]
    found = [find_changes(client, COMMAND, place)[0].file.relative_to(tmp_path).as_posix() for place in places]
    assert tuple(found) == PLACES[client]


@pytest.mark.parametrize(
    ("client", "platform", "variable", "file"),
    [
        ("claude-code", "linux", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "linux", "CODEX_HOME", "config.toml"),
        ("vscode", "linux", "XDG_CONFIG_HOME", "Code/User/mcp.json"),
        ("claude-desktop", "win32", "APPDATA", "Claude/claude_desktop_config.json"),
    ],
)
def test_a_variable_moves_a_client_s_folder(client, platform, variable, file, tmp_path):
    place = Place(home=tmp_path / "home", environment={variable: str(tmp_path / "moved")}, platform=platform)
    changes = find_changes(client, COMMAND, place)
    assert changes[0].file == tmp_path / "moved" / file
    assert all(change.file.is_relative_to(tmp_path / "moved") for change in changes)


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


def test_without_hooks_those_from_before_are_taken_out(tmp_path, db_path):
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "CLAUDE_CONFIG_DIR": None}
    assert run(db_path, "install", "claude-code", **home).exit_code == 0
    assert (tmp_path / ".claude" / "settings.json").exists()
    assert run(db_path, "install", "claude-code", "--no-hooks", **home).exit_code == 0
    assert not (tmp_path / ".claude" / "settings.json").exists()
    assert (tmp_path / ".claude.json").exists()


@pytest.mark.parametrize("arguments", [["cursor", "--no-hooks"], ["hermes", "--sharing", "private"]])
def test_an_option_that_means_nothing_to_a_client_is_refused(tmp_path, db_path, arguments):
    done = run(db_path, "install", *arguments, HOME=str(tmp_path), USERPROFILE=str(tmp_path))
    assert (done.exit_code, "leave out" in done.stderr) == (2, True)


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
