"""Making all versions of Hermes find the provider: a small plugin in a Hermes home, and a line in its config."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from recall_core.clients.files import Edit, find_backup, read_file, write_edits
from recall_core.errors import InvalidInputError

from .names import PROVIDER, plugin_folder

CONFIG = "config.yaml"
MARK = "Written by recall-hermes"
# Nothing is imported before it is called: Hermes takes a module that is still being loaded for another user of the
# gateway, in another thread, for one without a provider.
SHIM = {
    "__init__.py": f'"""{MARK}: the MemoryProvider is in the package recall_hermes."""\n\n\n'
    "def register(ctx):\n    import recall_hermes\n\n    recall_hermes.register(ctx)\n",
    "cli.py": f'"""{MARK}: the commands are in the package recall_hermes."""\n\n\n'
    "def register_cli(subparser):\n    import recall_hermes.cli\n\n    recall_hermes.cli.register_cli(subparser)\n",
    "plugin.yaml": "name: recall\nversion: {version}\nkind: exclusive\n"
    f"# {MARK}\n"
    "description: Long-term memory in one SQLite file, by meaning and words, Chinese and English, all local\n"
    "provides_tools: [recall_search, recall_remember, recall_forget, recall_status]\n",
}
SCALAR = re.compile(r"""'[^'\n]*'|"[^"\n]*"|[^\s'"#,{}\[\]]+""")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be changed in a home, and which provider was in use before the installation."""

    home: Path
    edits: Sequence[Edit]
    before: str
    removes: bool = False  # the folder of the plugin

    @property
    def changed(self) -> bool:
        """Whether anything has to be changed."""
        return bool(self.edits) or self.removes


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


def plan_install(home: Path) -> Plan:
    """Return what writes the plugin into a home and makes it the memory provider; nothing if all of it is there.

    Raises InvalidInputError if something else lies there, or the config can't be read.
    """
    from . import __version__

    folder, file = plugin_folder(home), home / CONFIG
    if folder.exists() and not _is_ours(folder):
        raise InvalidInputError(f"{folder} is another plugin; move it away, then install again")
    text = read_file(file)
    before = _find_provider(file, text)
    shim = {folder / name: content.replace("{version}", __version__) for name, content in SHIM.items()}
    edits = [Edit(path, read_file(path), content) for path, content in shim.items()]
    if before != PROVIDER:
        edits.append(Edit(file, text, set_provider(text or "", PROVIDER), keeps=text is not None))
    return Plan(home, [edit for edit in edits if edit.before != edit.after], before)


def plan_uninstall(home: Path) -> Plan:
    """Return what takes the plugin out of a home and gives the config back the provider from before: to the byte, if
    nothing else in it has changed since. What is remembered stays.

    Raises InvalidInputError if another plugin lies there, or the config can't be read.
    """
    folder, file = plugin_folder(home), home / CONFIG
    if folder.exists() and not _is_ours(folder):
        raise InvalidInputError(f"{folder} is another plugin, and stays")
    text, original = read_file(file), read_file(find_backup(file))
    before = _find_provider(find_backup(file), original)
    edits = [Edit(path, read_file(path), None) for name in SHIM if (path := folder / name).exists()]
    if text is not None and _find_provider(file, text) == PROVIDER:
        untouched = text == set_provider(original or "", PROVIDER)
        edits.append(Edit(file, text, original if untouched else set_provider(text, before), drops=True))
    return Plan(home, edits, before, removes=folder.exists())


def install(home: Path) -> Plan:
    """Do what `plan_install` says, all of it or nothing, and return it. Raises what that raises, and OSError."""
    return _carry_out(plan_install(home))


def uninstall(home: Path) -> Plan:
    """Do what `plan_uninstall` says, and return it. Raises what that raises, and OSError."""
    return _carry_out(plan_uninstall(home))


def _carry_out(plan: Plan) -> Plan:
    write_edits(plan.edits)
    if plan.removes:
        shutil.rmtree(plugin_folder(plan.home))  # with the bytecode that Python has put there
        find_backup(plan.home / CONFIG).unlink(missing_ok=True)
    return plan


def _is_ours(folder: Path) -> bool:
    try:
        return MARK.encode() in (folder / "__init__.py").read_bytes()
    except OSError:  # such as what an uninstallation that was interrupted has left: bytecode
        return folder.is_dir() and not any(path.is_file() for path in folder.iterdir())


def _yaml() -> Any:
    """Return a reader and writer that keeps comments, order and quotes."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    return yaml


def _find_provider(file: Path, text: str | None) -> str:
    """Return the provider that a config names, "" for none. Raises InvalidInputError if it can't be read or changed."""
    try:
        config = _yaml().load(text or "")
    except Exception as error:  # the library's errors have several bases
        raise InvalidInputError(f"{file} can't be read as YAML, so it was left alone: {error}") from error
    if config is not None and not hasattr(config, "get"):
        raise InvalidInputError(f"{file} holds {config!r:.60}; it must be a mapping")
    memory = None if config is None else config.get("memory")
    if memory is not None and not hasattr(memory, "get"):
        raise InvalidInputError(f"`memory` in {file} is {memory!r}; it must be a mapping")
    return "" if memory is None else str(memory.get("provider") or "")


def set_provider(text: str, provider: str) -> str:
    """Return a config with another memory provider, and every other character as it was, if that can be done."""
    wanted = _yaml().load(text)
    wanted = {} if wanted is None else wanted
    if wanted.get("memory") is None:
        wanted["memory"] = {}
    wanted["memory"]["provider"] = provider
    try:
        edited = _edit(text, _yaml().load(text) or {}, provider if provider else "''")
    except (AttributeError, LookupError, TypeError, ValueError):  # places that are not there, in forms nobody expects
        edited = None
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
    if memory is None:
        return _edit_nothing(lines, config, value, end)
    own, (line, column) = memory.lc.data or {}, config.lc.value("memory")
    if "provider" in own and memory["provider"] is not None:
        line, column = memory.lc.value("provider")
        found = SCALAR.match(lines[line], column)
        if found is None:
            return None
        lines[line] = lines[line][: found.start()] + value + lines[line][found.end() :]
    elif "provider" in own:
        line, column = memory.lc.key("provider")
        place = column + len("provider:")
        lines[line] = f"{lines[line][:place]} {value}{lines[line][place:]}"
    elif lines[line].startswith("{", column):
        inside = lines[line][column + 1 :]
        comma = "" if inside.lstrip().startswith("}") else ", "
        lines[line] = f"{lines[line][: column + 1]}provider: {value}{comma}{inside}"
    else:
        line, column = min(memory.lc.key(key) for key in own)
        lines.insert(line, f"{' ' * column}provider: {value}{end}")
    return "".join(lines)


def _edit_nothing(lines: list[str], config: Any, value: str, end: str) -> str:
    """Return the text with a provider where `memory:` has no value, or says that it has none."""
    line, column = config.lc.key("memory")
    head = lines[line][: column + len("memory:")]
    rest = lines[line][len(head) :].rstrip("\r\n")
    rest = re.sub(r"\A\s*(~|null|Null|NULL)(?=\s|\Z)", "", rest)
    return "".join([*lines[:line], f"{head}{rest}{end}", f"{' ' * column}  provider: {value}{end}", *lines[line + 1 :]])
