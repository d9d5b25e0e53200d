"""Reads and writes the clients' files: each at once, and none if one of them can't be written."""

from __future__ import annotations

import contextlib
import difflib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidInputError

BACKUP = ".before-recall"


@dataclass(frozen=True, slots=True)
class Edit:
    """What becomes of a file: its text before and after, None for no file."""

    file: Path
    before: str | None
    after: str | None
    keeps: bool = False  # whether `before` is kept as a backup
    drops: bool = False  # whether the backup goes

    @property
    def backup(self) -> Path:
        """Where the file is kept as it was before the installation."""
        return find_backup(self.file)

    def diff(self) -> str:
        """Return the lines that change, for people."""
        names = str(self.file), "deleted" if self.after is None else str(self.file)
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), *names, lineterm="")
        return "\n".join(line.rstrip("\r\n") for line in lines)


def _lines(text: str | None) -> list[str]:
    """Return the lines of a file for a comparison, which also shows whether the last one has an end."""
    lines = (text or "").splitlines(keepends=True)
    return [*lines, "(no end of line)"] if lines and not lines[-1].endswith("\n") else lines


def find_backup(file: Path) -> Path:
    """Return where a file is kept as it was before the installation."""
    return file.with_name(file.name + BACKUP)


def read_file(file: Path) -> str | None:
    """Return the text of a file, None if there is none. Raises InvalidInputError if it is not UTF-8."""
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InvalidInputError(f"{file} was left alone: it is not UTF-8; save it as UTF-8") from None


def write_edits(edits: Sequence[Edit]) -> None:
    """Write the files through their links, with the permissions and the owner that they have.

    Raises InvalidInputError if one is read-only, OSError if one can't be written; then all are as they were.
    """
    for edit in edits:
        if edit.file.exists() and not edit.file.stat().st_mode & stat.S_IWUSR:
            raise InvalidInputError(f"{edit.file} was left alone: it is read-only")
    with contextlib.ExitStack() as undo:
        parts = [(_write_part(target, text, like, undo), target) for target, text, like in _find_texts(edits)]
        for part, target in parts:
            part.replace(target)
    for edit in edits:
        if edit.after is None:
            edit.file.resolve().unlink()
        if edit.drops:
            edit.backup.unlink(missing_ok=True)


def _find_texts(edits: Sequence[Edit]) -> Iterator[tuple[Path, str, Path]]:
    """Yield what is to be written where, and whose rights it gets."""
    for edit in edits:
        target = edit.file.resolve()
        if edit.keeps and edit.before is not None:
            yield edit.backup, edit.before, target
        if edit.after is not None:
            yield target, edit.after, target


def _write_part(file: Path, text: str, like: Path, undo: contextlib.ExitStack) -> Path:
    """Write what shall become a file beside it, as `like` may be read if that exists, else for its owner alone."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    undo.callback(part.unlink, missing_ok=True)
    part.touch(mode=0o600)
    with part.open("wb") as out:
        out.write(text.encode("utf-8"))
        out.flush()
        os.fsync(out.fileno())
    if like.exists():
        _copy_rights(like, part)
    return part


def _copy_rights(source: Path, target: Path) -> None:
    found = source.stat()
    if hasattr(os, "chown"):
        with contextlib.suppress(
            OSError
        ):  # only root may give a file away; the folder's owner may write it all the same
            os.chown(target, found.st_uid, found.st_gid)
    target.chmod(stat.S_IMODE(found.st_mode))
