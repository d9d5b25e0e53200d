"""Making all versions of Hermes find the provider: a small plugin in a Hermes home, and a line in its config."""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from recall_core.errors import InvalidInputError

from .config import write_atomically
from .names import PROVIDER, plugin_folder

MARK = "Written by recall-hermes"
SHIM = {
    "__init__.py": f'"""{MARK}: the MemoryProvider is in the package recall_hermes."""\n\n'
    'from recall_hermes import register\n\n__all__ = ["register"]\n',
    "cli.py": f'"""{MARK}: the commands are in the package recall_hermes."""\n\n'
    'from recall_hermes.cli import register_cli\n\n__all__ = ["register_cli"]\n',
    "plugin.yaml": "name: recall\nversion: {version}\nkind: exclusive\n"
    f"# {MARK}\n"
    "description: Long-term memory in one SQLite file, by meaning and words, Chinese and English, all local\n"
    "provides_tools: [recall_search, recall_remember, recall_forget, recall_status]\n",
}
SCALAR = re.compile(r"""'[^'\n]*'|"[^"\n]*"|[^\s'"#,{}\[\]]+""")
BEFORE = "provider-before"  # which provider was in use before, for `uninstall`
DIGEST = "config-before"  # what the config is known by that there was before, "" if there was none


@dataclass(frozen=True, slots=True)
class Installed:
    """What was done: where, whether anything had to be, and which provider was in use before."""

    home: Path
    changed: bool
    before: str


def find_profile_home(home: str | None, profile: str | None) -> Path:
    """Return the Hermes home that is meant. Raises InvalidInputError if there is no such profile."""
    if home is not None:
        return Path(home).expanduser().resolve()
    if profile is None:
        from .setup import find_home

        return find_home()
    from hermes_cli import profiles

    try:
        exists, folder = profiles.profile_exists(profile), Path(profiles.get_profile_dir(profile))
    except ValueError as error:
        raise InvalidInputError(f"{profile!r} is no name of a profile: {error}") from error
    if not exists:
        raise InvalidInputError(f"there is no profile {profile!r}; `hermes profile list` shows those that there are")
    return folder


def install(home: Path) -> Installed:
    """Write the plugin into a home and make it the memory provider. Doing it again changes nothing.

    Raises InvalidInputError if something else lies there, or the config can't be read; then nothing is changed.
    """
    from . import __version__

    folder = plugin_folder(home)
    if folder.exists() and not _is_ours(folder):
        raise InvalidInputError(f"{folder} is another plugin; move it away, then install again")
    config, text = _read_config(home)
    memory = config.get("memory")
    if memory is not None and not hasattr(memory, "get"):
        raise InvalidInputError(f"`memory` in {home / 'config.yaml'} is {memory!r}; it must be a mapping")
    before = str((memory or {}).get("provider") or "")
    changed = False
    for name, content in SHIM.items():
        changed |= _write(folder / name, content.replace("{version}", __version__))
    if before != PROVIDER:
        _write(folder / BEFORE, before)
        _write(folder / DIGEST, _digest(text) if (home / "config.yaml").exists() else "")
        changed |= _write(home / "config.yaml", set_provider(text, PROVIDER))
    return Installed(home, changed, before)


def uninstall(home: Path) -> Installed:
    """Take the plugin out of a home and give the config back the provider from before. What is remembered stays."""
    folder = plugin_folder(home)
    config, text = _read_config(home)
    before_file = folder / BEFORE
    before = before_file.read_text("utf-8") if before_file.exists() else ""
    changed = False
    memory = config.get("memory")
    if hasattr(memory, "get") and memory.get("provider") == PROVIDER:
        changed = True
        _undo(home / "config.yaml", text, before, folder / DIGEST)
    if folder.exists():
        if not _is_ours(folder):
            raise InvalidInputError(f"{folder} is another plugin, and stays")
        shutil.rmtree(folder)
        changed = True
    return Installed(home, changed, before)


def _undo(path: Path, text: str, before: str, digest_file: Path) -> None:
    """Give a config back the provider from before: to the letter, if nothing else in it has changed since."""
    digest = digest_file.read_text("utf-8") if digest_file.exists() else None
    end, given = _line_end(text), set_provider(text, before)
    added = text.removesuffix(f"memory:{end}  provider: {PROVIDER}{end}")
    if digest == "" and added == "":
        path.resolve().unlink()
        return
    lines = rf"(?m)^( *provider:) {PROVIDER}(\r?\n)"
    shapes = [given, added, added.removesuffix(end), re.sub(lines, "", text, count=1)]
    shapes.append(text.replace(f", provider: {PROVIDER}", "", 1))
    shapes += [re.sub(lines, rf"\1{value}\2", text, count=1) for value in ("", ' ""')]
    _write(path, next((shape for shape in shapes if _digest(shape) == digest), given))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _is_ours(folder: Path) -> bool:
    try:
        return MARK.encode() in (folder / "__init__.py").read_bytes()
    except OSError:
        return not any(folder.iterdir()) if folder.is_dir() else False


def _write(path: Path, text: str) -> bool:
    """Write a file unless it says the same; tell whether it was written."""
    if path.exists() and path.read_bytes() == text.encode():
        return False
    write_atomically(path, text)
    return True


def _yaml() -> Any:
    """Return a reader and writer that keeps comments, order and quotes."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    return yaml


def _read_config(home: Path) -> tuple[Any, str]:
    path = home / "config.yaml"
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        text = ""
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is not written in UTF-8, so it was left alone: {error}") from error
    try:
        config = _yaml().load(text)
    except Exception as error:  # the library's errors have several bases
        raise InvalidInputError(f"{path} can't be read as YAML, so it was left alone: {error}") from error
    if config is None:
        config = {}
    if not hasattr(config, "get"):
        raise InvalidInputError(f"{path} holds {config!r:.60}; it must be a mapping")
    return config, text


def set_provider(text: str, provider: str) -> str:
    """Return a config with another memory provider, and every other character as it was, if that can be done."""
    wanted = _yaml().load(text)
    wanted = {} if wanted is None else wanted
    if wanted.get("memory") is None:
        wanted["memory"] = {}
    wanted["memory"]["provider"] = provider
    edited = _edit(text, _yaml().load(text) or {}, provider if provider else "''")
    if edited is not None and _means(edited, wanted):
        return edited
    out = StringIO()
    _yaml().dump(wanted, out)
    return out.getvalue().replace("\n", _line_end(text))


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _means(text: str, wanted: Any) -> bool:
    """Tell whether a text is YAML for a value."""
    try:
        return bool(_yaml().load(text) == wanted)
    except Exception:  # the library's errors have several bases
        return False


def _edit(text: str, config: Any, value: str) -> str | None:
    """Return the text with one value changed, or one line added; None if it is written in another way."""
    memory, lines, end = config.get("memory"), text.splitlines(keepends=True), _line_end(text)
    if "memory" not in config:
        return f"{text}{'' if not text or text.endswith(chr(10)) else end}memory:{end}  provider: {value}{end}"
    if not memory or ("provider" in memory and "provider" not in memory.lc.data):  # the latter: merged from elsewhere
        return None
    if "provider" in memory and memory["provider"] is None:
        line, column = memory.lc.key("provider")
        place = column + len("provider:")
        lines[line] = f"{lines[line][:place]} {value}{lines[line][place:]}"
    elif "provider" in memory:
        line, column = memory.lc.value("provider")
        found = SCALAR.match(lines[line], column)
        if found is None:
            return None
        lines[line] = lines[line][: found.start()] + value + lines[line][found.end() :]
    elif memory.fa.flow_style():
        return None
    else:
        line, column = memory.lc.key(next(iter(memory)))
        lines.insert(line, f"{' ' * column}provider: {value}{end}")
    return "".join(lines)
