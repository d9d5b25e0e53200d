"""What could not be stored yet, in files of the Hermes home: the process may end before it can be."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from recall_core import NewRecord, redact_text

from .config import write_atomically
from .names import WAITING, state_folder

FIELDS = ("text", "id", "scope", "session", "role", "kind", "metadata", "source", "created_at", "redact")


class Waiting:
    """Keeps records of one agent in a file of its own, and takes over those of agents that have ended.

    Nothing raises; what fails goes to `note`.
    """

    def __init__(self, home: Path, note: Callable[[str, BaseException], object]) -> None:
        self._folder = state_folder(home)
        self._note = note
        self._name = uuid4().hex
        self._taken: list[Path] = []

    @property
    def _file(self) -> Path:
        return self._folder / f"{WAITING}{os.getpid()}-{self._name}.json"  # a forked child has one of its own

    def keep(self, records: Sequence[NewRecord]) -> None:
        """Let these be all that waits."""
        if not records:
            self.clear()
            return
        try:
            write_atomically(self._file, json.dumps([_to_json(record) for record in records], ensure_ascii=False))
            self._drop_taken()
        except OSError as error:  # the disk may be full; then it waits in memory alone
            self._note("keeping what waits to be stored", error)

    def clear(self) -> None:
        """Nothing waits any more."""
        try:
            self._file.unlink(missing_ok=True)
            self._drop_taken()
        except OSError as error:
            self._note("clearing what waited to be stored", error)

    def take_over(self) -> list[NewRecord]:
        """Return what others could not store; it is this agent's now, and stays in its file until `keep` or `clear`.

        One that lives stores it, too, which does no harm: what is stored already is passed over.
        """
        found: list[NewRecord] = []
        for file in sorted(self._folder.glob(f"{WAITING}*.json")):
            if file == self._file or file in self._taken:
                continue
            mine = self._folder / f"{WAITING}{os.getpid()}-{uuid4().hex}.json"
            try:
                file.rename(mine)  # at once, so that what is added to it meanwhile goes into another file
                found += [NewRecord(**fields) for fields in json.loads(mine.read_text("utf-8"))]
                self._taken.append(mine)
            except FileNotFoundError:  # another agent was quicker
                continue
            except (OSError, ValueError, TypeError) as error:
                self._note(f"reading {mine.name}", error)
                mine.rename(mine.with_suffix(".unreadable"))
        return found

    def _drop_taken(self) -> None:
        while self._taken:
            self._taken.pop().unlink(missing_ok=True)


def count_waiting(home: Path) -> int:
    """Return how many records wait in the files of a home, whoever's they are."""
    count = 0
    for file in state_folder(home).glob(f"{WAITING}*.json"):
        with contextlib.suppress(OSError, ValueError):  # stored meanwhile, or told when an agent takes it over
            count += len(json.loads(file.read_text("utf-8")))
    return count


def _to_json(record: NewRecord) -> dict[str, Any]:
    """Return a record as it may lie on a disk: without secrets, if it shall be stored without them."""
    fields = {name: getattr(record, name) for name in FIELDS}
    if record.redact:
        fields["text"] = redact_text(record.text)
        told = dict(record.metadata or {})
        fields["metadata"] = {
            key: redact_text(value) if isinstance(value, str) else value for key, value in told.items()
        }
    return fields
