"""What each client wants in which file."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..models import Json

SERVER = "recall"
HOOKS = (  # event, matcher, what `recall hook` calls it, seconds
    ("SessionStart", "startup|resume|clear|compact", "session-start", 5),
    ("UserPromptSubmit", None, "user-prompt-submit", 3),
    ("PostToolUse", "Write|Edit|MultiEdit|NotebookEdit|Bash", "post-tool-use", 60),  # in the background
    ("PreCompact", None, "pre-compact", 10),
    ("SessionEnd", None, "session-end", 10),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A value in a configuration file: the member at `path`, or one more item of the list there."""

    file: Path
    form: Literal["json", "toml"] = "json"
    path: tuple[str, ...]
    value: Mapping[str, Json]
    item: bool = False
    mark: str = ""  # of an item: what `recall hook` calls its event


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The machine that is configured: its home folder, its environment, its platform as `sys.platform` names it."""

    home: Path
    environment: Mapping[str, str]
    platform: str

    @classmethod
    def here(cls) -> Place:
        """Return this machine."""
        return cls(home=Path.home(), environment=os.environ, platform=sys.platform)

    def application(self, *names: str) -> Path:
        """Return a folder of an application's settings."""
        if self.platform == "darwin":
            return self.home.joinpath("Library", "Application Support", *names)
        if self.platform == "win32":
            return Path(self.environment.get("APPDATA") or self.home / "AppData" / "Roaming").joinpath(*names)
        return Path(self.environment.get("XDG_CONFIG_HOME") or self.home / ".config").joinpath(*names)


def find_changes(client: str, command: Sequence[str], place: Place, *, hooks: bool = True) -> list[Change]:
    """Return what a client's files shall hold so that it starts the server by `command`."""
    return CLIENTS[client](list(command), place, hooks)


def _claude_code(command: list[str], place: Place, hooks: bool) -> list[Change]:
    moved = place.environment.get("CLAUDE_CONFIG_DIR")
    folder = Path(moved) if moved else place.home / ".claude"
    state = (Path(moved) if moved else place.home) / ".claude.json"
    server = {"type": "stdio", "command": command[0], "args": command[1:]}
    changes = [Change(file=state, path=("mcpServers", SERVER), value=server)]
    return changes + [_hook(folder / "settings.json", command, place, *hook) for hook in HOOKS if hooks]


def _hook(
    file: Path, command: Sequence[str], place: Place, event: str, matcher: str | None, name: str, timeout: int
) -> Change:
    database = command[command.index("--db") : command.index("--db") + 2] if "--db" in command else []
    words = [command[0], "hook", name, *database]
    handler: dict[str, Json] = {"type": "command", **_in_shell(words, place), "timeout": timeout}
    if event == "PostToolUse":
        handler["async"] = True
    value: dict[str, Json] = {"hooks": [handler]}
    if matcher is not None:
        value = {"matcher": matcher, **value}
    return Change(file=file, path=("hooks", event), value=value, item=True, mark=name)


def _in_shell(words: Sequence[str], place: Place) -> dict[str, Json]:
    """Return how a hook's command is written. On Windows its shell may be Git's or PowerShell: what both would not take
    as it stands goes past them.
    """
    if place.platform != "win32":
        return {"command": shlex.join(words)}
    plain = [word.replace("\\", "/") for word in words]
    if all(re.fullmatch(r"[\w./:-]+", word) for word in plain):
        return {"command": " ".join(plain)}
    return {"command": words[0], "args": list(words[1:])}


def _json_client(*path: str, kind: bool = False) -> Callable[[list[str], Path], list[Change]]:
    def find(command: list[str], file: Path) -> list[Change]:
        server: dict[str, Json] = {"command": command[0], "args": command[1:]}
        return [Change(file=file, path=(*path, SERVER), value={"type": "stdio", **server} if kind else server)]

    return find


def _claude_desktop(command: list[str], place: Place, hooks: bool) -> list[Change]:  # noqa: ARG001
    return _json_client("mcpServers")(command, place.application("Claude") / "claude_desktop_config.json")


def _cursor(command: list[str], place: Place, hooks: bool) -> list[Change]:  # noqa: ARG001
    return _json_client("mcpServers", kind=True)(command, place.home / ".cursor" / "mcp.json")


def _windsurf(command: list[str], place: Place, hooks: bool) -> list[Change]:  # noqa: ARG001
    return _json_client("mcpServers")(command, place.home / ".codeium" / "windsurf" / "mcp_config.json")


def _vscode(command: list[str], place: Place, hooks: bool) -> list[Change]:  # noqa: ARG001
    return _json_client("servers", kind=True)(command, place.application("Code", "User") / "mcp.json")


def _codex(command: list[str], place: Place, hooks: bool) -> list[Change]:  # noqa: ARG001
    folder = Path(place.environment.get("CODEX_HOME") or place.home / ".codex")
    server = {"command": command[0], "args": command[1:]}
    return [Change(file=folder / "config.toml", form="toml", path=("mcp_servers", SERVER), value=server)]


CLIENTS: Mapping[str, Callable[[list[str], Place, bool], list[Change]]] = {
    "claude-code": _claude_code,
    "claude-desktop": _claude_desktop,
    "cursor": _cursor,
    "codex": _codex,
    "vscode": _vscode,
    "windsurf": _windsurf,
}
