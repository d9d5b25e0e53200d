"""Writes the changes into the clients' files, and takes them out again: what else is there stays byte by byte."""

from __future__ import annotations

import contextlib
import copy
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError
from ..models import Json
from . import json_text, toml_text
from .known import Change

BACKUP = ".before-recall"


@dataclass(frozen=True, slots=True)
class Edit:
    """What becomes of a file: its text before and after, None for no file."""

    file: Path
    before: str | None
    after: str | None
    keeps: bool = False  # whether `before` is kept as a backup

    @property
    def backup(self) -> Path:
        """Where the file is kept as it was before the installation."""
        return _backup(self.file)


def plan_install(changes: Sequence[Change]) -> list[Edit]:
    """Return what has to be edited; nothing if all is there. Raises InvalidInputError for a file that can't be."""
    edits = []
    for file, wanted in _by_file(changes).items():
        before, original = _read(file), _read(_backup(file))
        has_ours = before is not None and bool(_find_installed(before, wanted))
        untouched = before is not None and _is_untouched(before, original, wanted)
        after = _install((original if untouched else before) or "", wanted)
        if after != before:
            edits.append(Edit(file, before, after, keeps=before is not None and not has_ours))
    return edits


def plan_uninstall(changes: Sequence[Change]) -> list[Edit]:
    """Return what has to be edited. A file that nobody has changed since becomes what it was, to the byte."""
    edits = []
    for file, wanted in _by_file(changes).items():
        before = _read(file)
        if before is None:
            continue
        after = _uninstall(before, _read(_backup(file)), wanted)
        if after != before:
            edits.append(Edit(file, before, after))
    return edits


def write_edits(edits: Sequence[Edit], *, installs: bool) -> None:
    """Write the files, each at once. What was there before is kept while the server is installed."""
    for edit in edits:
        target = edit.file.resolve()
        if edit.after is None:
            target.unlink()
        else:
            if edit.keeps and edit.before is not None:
                _write(edit.backup, edit.before, target)
            _write(target, edit.after, target)
        if not installs:
            edit.backup.unlink(missing_ok=True)


def _backup(file: Path) -> Path:
    return file.with_name(file.name + BACKUP)


def _by_file(changes: Sequence[Change]) -> Mapping[Path, list[Change]]:
    files: dict[Path, list[Change]] = {}
    for change in changes:
        files.setdefault(change.file, []).append(change)
    return files


def _install(text: str, changes: Sequence[Change]) -> str:
    for change in changes:
        with _about(change.file):
            if not _has(text, change):
                without = _take_out(text, change)
                text = _checked(without, _put_in(without, change), change)
    return text


def _uninstall(text: str, original: str | None, changes: Sequence[Change]) -> str | None:
    for change in changes:
        with _about(change.file):
            _parse(text, change)
    if _is_untouched(text, original, changes):
        return original
    for change in changes:
        with _about(change.file):
            text = _take_out(text, change)
    return text


def _is_untouched(text: str, original: str | None, changes: Sequence[Change]) -> bool:
    """Tell whether a text is what the installation made of the original, and nobody has changed it since."""
    installed = _find_installed(text, changes)
    with contextlib.suppress(InvalidInputError):
        return bool(installed) and text == _install(original or "", installed)
    return False


def _find_installed(text: str, changes: Sequence[Change]) -> list[Change]:
    """Return the changes that are in a text, with their values there: they may be of other options."""
    with contextlib.suppress(InvalidInputError):
        return [found for change in changes for found in _as_installed(text, change)]
    return []


def _put_in(text: str, change: Change) -> str:
    if change.form == "toml":
        return toml_text.add_table(text, ".".join(change.path), change.value)
    add = json_text.add_item if change.item and text.strip() else json_text.add_member
    value: Json = [change.value] if change.item and not text.strip() else change.value
    return add(text, change.path, value)


def _take_out(text: str, change: Change) -> str:
    """Return the text without what is ours, and without what is empty then."""
    if not text.strip() or not _own_places(text, change):
        return text
    if change.form == "toml":
        return toml_text.remove_table(text, ".".join(change.path))
    for place in reversed(_own_places(text, change)):
        text = json_text.remove(text, place)
    for length in range(len(change.path) if change.item else len(change.path) - 1, 0, -1):
        if _look_up(json_text.parse(text), change.path[:length]) in ({}, []):
            text = json_text.remove(text, change.path[:length])
    return text


def _own_places(text: str, change: Change) -> list[tuple[str | int, ...]]:
    found = _look_up(_parse(text, change), change.path)
    if not change.item:
        return [] if found is None else [change.path]
    items = found if isinstance(found, list) else []
    return [(*change.path, place) for place, item in enumerate(items) if _is_ours(item, change)]


def _as_installed(text: str, change: Change) -> list[Change]:
    """Return a change with the values that are in the text, which an installation with other options has put there."""
    found = _look_up(_parse(text, change), change.path)
    if not change.item:
        return [] if found is None else [replace(change, value=found)]
    return [replace(change, value=item) for item in found or [] if _is_ours(item, change)]


def _is_ours(item: Json, change: Change) -> bool:
    handlers = item.get("hooks") if isinstance(item, dict) else None
    commands = [one.get("command") for one in handlers or [] if isinstance(one, dict)]
    return (
        len(commands) == 1 and isinstance(commands[0], str) and "recall" in commands[0] and change.mark in commands[0]
    )


def _has(text: str, change: Change) -> bool:
    found = _look_up(_parse(text, change), change.path) if text.strip() else None
    return change.value in (found or []) if change.item and isinstance(found, list) else found == change.value


def _checked(before: str, after: str, change: Change) -> str:
    """Return the text after a change, once it is sure that it means what it did before and the new value.

    Raises InvalidInputError if it does not: then the file is written in a way that we can't change.
    """
    wanted: Any = copy.deepcopy(_parse(before, change)) if before.strip() else {}
    place = wanted
    for key in change.path[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else None
    if isinstance(place, dict):
        last = change.path[-1]
        place[last] = [*place.get(last, []), change.value] if change.item else change.value
    if not isinstance(place, dict) or _parse(after, change) != wanted:
        raise InvalidInputError(f"{'.'.join(change.path)} can't be added there without changing more")
    return after


def _parse(text: str, change: Change) -> Json:
    return toml_text.parse(text) if change.form == "toml" else json_text.parse(text) if text.strip() else {}


def _look_up(value: Json, path: Sequence[str]) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


@contextlib.contextmanager
def _about(file: Path) -> Any:
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{file} was left alone: {error}; correct it, or add the server by hand") from error


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InvalidInputError(f"{file} was left alone: it is not UTF-8; save it as UTF-8") from None


def _write(file: Path, text: str, like: Path) -> None:
    """Write a file at once, with the permissions of `like` if that exists, else for its owner alone."""
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(like.stat().st_mode) if like.exists() else 0o600
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    part.write_bytes(text.encode("utf-8"))
    part.chmod(mode)
    part.replace(file)
