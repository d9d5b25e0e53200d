"""The entries of MEMORY.md and USER.md, as memories: what the host's own memory tool writes, and what it never tells.

The files are the truth. A write that is told is mirrored at once, in the scope of whoever it was; what came about
otherwise (background reviews, approvals, an editor) is found in the files, and belongs to the profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recall_core import Condition, Filter, Memory, NewRecord, Record, derive_id
from recall_core.forks import Lock
from recall_core.opening import read_all

from .callers import Caller

KIND = "hermes-memory"
TARGETS = {"memory": "MEMORY.md", "user": "USER.md"}
SEPARATOR = "\n§\n"

Stamp = tuple[int, int]
_lock = Lock()  # two agents of one process must not repair the same difference in two ways


class Mirror:
    """Keeps the mirrored entries of one home in step with the files."""

    def __init__(self, memory: Memory, home: Path, caller: Caller, *, redact: bool) -> None:
        self._memory = memory
        self._folder = home / "memories"
        self._caller = caller
        self._redact = redact
        self._stamps: dict[str, Stamp | None] = {}

    def write(self, action: str, target: str, content: str, metadata: Mapping[str, Any]) -> None:
        """Mirror what the memory tool has done. `old_text` is a part of the entry that it replaced or removed."""
        if target not in TARGETS:
            return
        with _lock:
            held = self._held(target)
            gone = [] if action == "add" else _find(held, target, metadata)
            added = [] if action == "remove" or not content.strip() else [content.strip()]
            # What was found in the file before this was told was taken for the profile's.
            guessed = [one for one in held if one.scope == self._caller.profile and _key(one) in _keys(target, added)]
            gone += [one for one in guessed if one.scope != self._caller.scope]
            self._change(target, gone, added, self._caller.scope, metadata)
        self.reconcile()

    def reconcile(self) -> None:
        """Take over what has changed in the files since they were last looked at.

        One that can't be read keeps the other from nothing; what it raised is raised at the end.
        """
        failed: Exception | None = None
        with _lock:
            for target, name in TARGETS.items():
                try:
                    self._look(target, self._folder / name)
                except Exception as error:
                    failed = error
        if failed is not None:
            raise failed

    def _look(self, target: str, path: Path) -> None:
        stamp = _stamp(path)
        if stamp is not None and stamp != self._stamps.get(target):
            self._follow(target, path.read_text("utf-8-sig"))  # some editors begin a file with a mark
            self._stamps[target] = stamp

    def _follow(self, target: str, text: str) -> None:
        entries = {_digest(target, entry): entry for entry in map(str.strip, text.split(SEPARATOR)) if entry}
        held = self._held(target)
        known = {_key(one) for one in held}
        gone = [one for one in held if _key(one) not in entries]
        added = [entry for key, entry in entries.items() if key not in known]
        self._change(target, gone, added, self._caller.profile, {"write_origin": TARGETS[target]})

    def _held(self, target: str) -> list[Record]:
        """Return the mirrored entries of a target, whoever wrote them: the file is one for all."""
        return [one for one in read_all(self._memory, make_filter()) if one.metadata.get("target") == target]

    def _change(
        self, target: str, gone: Sequence[Record], added: Sequence[str], scope: str, about: Mapping[str, Any]
    ) -> None:
        kept = {name: str(about[name]) for name in ("write_origin", "session_id", "platform") if about.get(name)}
        news = [
            NewRecord(
                text=entry,
                id=derive_id(KIND, scope, target, entry),
                scope=scope,
                kind=KIND,
                metadata={**kept, "target": target, "_entry": _digest(target, entry)},
                source=TARGETS[target],
                importance=0.8,
                redact=self._redact,
            )
            for entry in added
        ]
        stays = {new.id for new in news}
        if gone or news:
            self._memory.change(news, [one.id for one in gone if one.id not in stays], if_taken="skip")


def make_filter() -> Filter:
    """Return the filter that mirrored entries pass."""
    return Condition("@kind", "eq", KIND)


def _find(held: Sequence[Record], target: str, metadata: Mapping[str, Any]) -> list[Record]:
    """Return the entry that was replaced or removed; none if it can't be told, which the file then decides."""
    whole, part = metadata.get("previous_content"), metadata.get("old_text")
    if isinstance(whole, str) and whole.strip():
        return [one for one in held if _key(one) == _digest(target, whole.strip())]
    if not isinstance(part, str) or not part.strip():
        return []
    found = [one for one in held if part.strip() in one.text]
    return found if len({_key(one) for one in found}) == 1 else []


def _key(record: Record) -> str:
    return str(record.metadata.get("_entry"))


def _keys(target: str, entries: Sequence[str]) -> set[str]:
    return {_digest(target, entry) for entry in entries}


def _digest(target: str, entry: str) -> str:
    """Return what an entry is known by: it may be stored redacted."""
    return derive_id(target, entry)


def _stamp(path: Path) -> Stamp | None:
    """Return when a file was last changed, None if there is none: that says nothing of what was in it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
