"""Copies a memory to another file while it is in use. The copy appears under its name once it is whole and verified."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from .engine import Engine
from .errors import InvalidInputError, StoreUnavailableError
from .reports import BackedUp
from .store import MEMORY_PATH, find_path

UNFINISHED = ".partial"

Progress = Callable[[int, int], object]


def back_up(engine: Engine, path: str | Path, *, force: bool = False, progress: Progress | None = None) -> BackedUp:
    """Copy an open memory to the file at `path`, which only `force` overwrites. `progress` is told pages."""
    target = Path(find_path(path))
    _check_target(engine, target, force)
    try:
        with _unfinished(target) as part:
            held = engine.store.upkeep.copy(str(part), progress)
            size = part.stat().st_size
            _sync(part)
            _put_in_place(part, target, force)
    except OSError as error:
        raise StoreUnavailableError(f"{target} can't be written: {error}") from error
    return BackedUp(path=str(target), file_bytes=size, records=held.records, chunks=held.chunks, vectors=held.vectors)


def _check_target(engine: Engine, target: Path, force: bool) -> None:
    source = engine.store.path
    if str(target) == MEMORY_PATH or target.name == "-" or target.is_dir():
        raise InvalidInputError(f"{target} is no path of a file; give one such as backup.db")
    if not target.parent.is_dir():
        raise InvalidInputError(f"the folder {target.parent} does not exist; create it first")
    if not target.exists():
        return
    if source != MEMORY_PATH and target.samefile(source):
        raise InvalidInputError(f"{target} is the memory itself; give the backup another name")
    if not force:
        raise InvalidInputError(f"{target} exists; give another name, or overwrite it with --force (force=True)")
    log = target.with_name(target.name + "-wal")
    if log.exists():
        raise InvalidInputError(f"{target} is in use, or was not closed: there is {log}; give another name")


@contextlib.contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """Give a new, empty file beside a target that only its owner can read, and remove what is left of it at the end."""
    _clear_up(target)
    name = f".{target.name}.{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}{UNFINISHED}"
    part = target.with_name(name)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        yield part
    finally:
        _remove(part)


def _clear_up(target: Path) -> None:
    """Remove what backups to this target have left that were killed on this machine."""
    name = re.compile(rf"\.{re.escape(target.name)}\.(.+)\.(\d+)\.[0-9a-f]{{8}}{re.escape(UNFINISHED)}")
    for file in list(target.parent.iterdir()):
        found = name.fullmatch(file.name)
        if found and found[1] == socket.gethostname() and not _is_alive(int(found[2])):
            _remove(file)


def _is_alive(process: int) -> bool:
    """Tell whether a process is there. On Windows, where that is not asked, its files can't be removed while it is."""
    if os.name == "nt":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def _remove(part: Path) -> None:
    for file in (part, *(part.with_name(part.name + end) for end in ("-wal", "-shm", "-journal"))):
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


def _put_in_place(part: Path, target: Path, force: bool) -> None:
    """Give the finished copy its name. Without `force` it takes no file's place, even if that was made just now."""
    if force:
        part.replace(target)
    elif os.name == "nt":
        part.rename(target)
    else:
        try:
            target.hardlink_to(part)
        except FileExistsError:
            raise InvalidInputError(f"{target} was made by somebody else meanwhile; give another name") from None
        except OSError:  # no hard links there
            part.replace(target)
    if os.name != "nt":
        _sync(target.parent)


def _sync(path: Path) -> None:
    """Have the disk write a file, or the names in a folder."""
    opened = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
