"""Plans the changes of the clients' files, and how to take them out again: what else is there stays byte by byte."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError
from ..models import Json
from . import json_text, toml_text
from .files import Edit, find_backup, read_file
from .known import Change
from .ours import command_of, is_own_handler, is_own_server

_Place = tuple[str | int, ...]


def plan_install(changes: Sequence[Change]) -> list[Edit]:
    """Return what has to be edited; nothing if all is there.

    Raises InvalidInputError for a file that can't be edited, or has a server of this name that is not ours.
    """
    edits = []
    for file, wanted in _by_file(changes).items():
        before, original = read_file(file), read_file(find_backup(file))
        with _about(file):
            text = before or ""
            kept = [_keep_settings(text, change) for change in wanted]
            untouched = before is not None and _is_untouched(text, original, wanted)
            after = _install((original or "") if untouched else text, kept)
            has_ours = any(_own_places(text, change) for change in wanted)
        if after != before:
            keeps = before is not None and not untouched and (original is None or not has_ours)
            edits.append(Edit(file, before, after, keeps=keeps))
    return edits


def plan_uninstall(changes: Sequence[Change]) -> list[Edit]:
    """Return what has to be edited. A file that nobody has changed since becomes what it was, to the byte.

    Raises InvalidInputError for a file that can't be edited.
    """
    edits = []
    for file, wanted in _by_file(changes).items():
        before = read_file(file)
        if before is None:
            continue
        with _about(file):
            after = _uninstall(before, read_file(find_backup(file)), wanted)
        if after != before:
            edits.append(Edit(file, before, after, drops=True))
    return edits


def _by_file(changes: Sequence[Change]) -> Mapping[Path, list[Change]]:
    files: dict[Path, list[Change]] = {}
    for change in changes:
        files.setdefault(change.file, []).append(change)
    return files


def _install(text: str, changes: Sequence[Change]) -> str:
    for change in changes:
        if not _has(text, change):
            without = _take_out(text, change)
            text = _checked(without, _put_in(without, change), change)
    return text


def _uninstall(text: str, original: str | None, changes: Sequence[Change]) -> str | None:
    for change in changes:
        _parse(text, change)
    if _is_untouched(text, original, changes):
        if original is None:
            return None
        text = original
    for change in changes:
        known = original is not None and change.form == "json"  # a table of TOML needs no place that is there before
        text = _take_out(text, change, _parse(_take_out(original or "", change), change) if known else None)
    return text


def _is_untouched(text: str, original: str | None, changes: Sequence[Change]) -> bool:
    """Tell whether a text is what the installation made of the original, and nobody has changed it since."""
    with contextlib.suppress(InvalidInputError):
        # With the values that are there: they may be of other options.
        found = [
            replace(change, value=_look_up(_parse(text, change), place))
            for change in changes
            for place in _own_places(text, change)
        ]
        return bool(found) and text == _install(original or "", found)
    return False


def _keep_settings(text: str, change: Change) -> Change:
    """Return a change that leaves what somebody has added to an entry of ours: the environment, a longer timeout.

    Raises InvalidInputError if there is an entry of this name that is not ours.
    """
    value = _parse(text, change)
    places = _own_places(text, change)
    found = _look_up(value, places[0]) if len(places) == 1 else None
    if change.item:
        same = found is not None and command_of(_handler(found)) == command_of(_handler(change.value))
        return replace(change, value=found) if found and same else change
    if found is None and (foreign := _look_up(value, change.path)) is not None:
        shown = command_of(foreign) or str(foreign)
        raise InvalidInputError(f"{'.'.join(change.path)} there is something else ({shown[:80]}), which would be lost")
    return replace(change, value={**(found or {}), **change.value})


def _put_in(text: str, change: Change) -> str:
    if change.form == "toml":
        return toml_text.add_table(text, change.path, change.value)
    add = json_text.add_item if change.item else json_text.add_member
    return add(text, change.path, change.value)


def _take_out(text: str, change: Change, before_us: Json = None) -> str:
    """Return the text without what is ours, and without what is empty then and was not there before us.

    Raises InvalidInputError if it is written in a way that it can't be taken out of alone.
    """
    places = _own_places(text, change)
    if not places:
        return text
    wanted, before = copy.deepcopy(_parse(text, change)), text
    for place in reversed(places):
        text = toml_text.remove_table(text, change.path) if change.form == "toml" else json_text.remove(text, place)
        _remove_value(wanted, place)
    for length in range(len(change.path) if change.item else len(change.path) - 1, 0, -1):
        parent = change.path[:length]
        if _look_up(wanted, parent) not in ({}, []) or _look_up(before_us, parent) is not None:
            break
        if change.form == "json" and not json_text.is_bare(text, parent):
            break
        _remove_value(wanted, parent)
        if change.form == "json":
            text = json_text.remove(text, parent)
    if change.form == "toml" and text.strip("\ufeff\r\n") == "":
        text = before[: len(before) - len(before.lstrip("\ufeff"))]
    found = _parse(text, change)
    if _without_empty(found, change) != wanted:
        raise InvalidInputError(f"{'.'.join(change.path)} is written there in a way that it can't be changed in")
    return text


def _own_places(text: str, change: Change) -> list[_Place]:
    """Return where in a text what is ours is: a server, a hook's entry, or a handler beside others' in one."""
    found = _look_up(_parse(text, change), change.path)
    if not change.item:
        return [change.path] if is_own_server(found) else []
    places: list[_Place] = []
    for number, entry in enumerate(found if isinstance(found, list) else []):
        handlers = entry.get("hooks") if isinstance(entry, dict) else None
        if not isinstance(handlers, list):
            continue
        own = [place for place, handler in enumerate(handlers) if is_own_handler(handler, change.mark)]
        if own and len(own) == len(handlers):
            places.append((*change.path, number))
        else:
            places += [(*change.path, number, "hooks", place) for place in own]
    return places


def _handler(entry: Json) -> Json:
    """Return the handler of a hook's entry, or what already is one."""
    handlers = entry.get("hooks") if isinstance(entry, dict) else None
    return handlers[0] if handlers else entry


def _has(text: str, change: Change) -> bool:
    places = _own_places(text, change)
    return len(places) == 1 and _look_up(_parse(text, change), places[0]) == change.value


def _checked(before: str, after: str, change: Change) -> str:
    """Return the text after a change, once it is sure that it means what it did before and the new value.

    Raises InvalidInputError if it does not: then the file is written in a way that we can't change.
    """
    wanted: Any = copy.deepcopy(_parse(before, change))
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
    return toml_text.parse(text) if change.form == "toml" else json_text.parse(text)


def _look_up(value: Json, path: Sequence[str | int]) -> Json:
    for key in path:
        if isinstance(value, list) and isinstance(key, int):
            value = value[key]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _remove_value(value: Json, path: Sequence[str | int]) -> None:
    del _look_up(value, path[:-1])[path[-1]]


def _without_empty(value: Json, change: Change) -> Json:
    value = copy.deepcopy(value)
    if change.form == "toml" and _look_up(value, change.path[:1]) == {}:
        _remove_value(value, change.path[:1])
    return value


@contextlib.contextmanager
def _about(file: Path) -> Iterator[None]:
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{file} was left alone: {error}; change it by hand") from error
