"""The process that a hook leaves behind: it has a memory file open, and answers the prompts that follow at once.

There is one for a memory file. It ends by itself after half an hour without a prompt, or when its socket is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from .asking import DONE, find_idle

if TYPE_CHECKING:
    from ..memory import Memory

LOOK = 10.0  # seconds, after which it looks whether its socket is still its own
REQUEST_SECONDS = 2.0  # that a client may need to say what it wants
LONGEST_REQUEST = 64_000_000  # bytes


def start_resident(path: Path, db: Path, folder: Path) -> None:
    """Start the process, without waiting for it. Where one runs already, the new one ends at once."""
    arguments = [sys.executable, "-m", __name__, str(path), str(db), str(folder)]
    nothing = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        subprocess.Popen(arguments, stdin=nothing, stdout=nothing, stderr=nothing, cwd="/", start_new_session=True)


def serve(path: Path, db: Path, folder: Path) -> None:
    """Answer at a socket until nobody asks any more; do nothing if another process does."""
    os.umask(0o077)  # nobody else may ask
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(path) as alone:
        if not alone:
            return
        path.unlink(missing_ok=True)  # of one that was killed
        with socket.socket(socket.AF_UNIX) as listener, contextlib.closing(Answerer(db, folder)) as answerer:
            listener.bind(str(path))
            listener.listen()
            own = path.stat().st_ino
            _listen(listener, answerer, path, own)
            if _find_inode(path) == own:
                path.unlink(missing_ok=True)


class Answerer:
    """Answers prompts from a memory file, which it keeps open."""

    def __init__(self, db: Path, folder: Path) -> None:
        self._db = db
        self._folder = folder
        self._memory: Memory | None = None

    def answer(self, request: bytes) -> bytes:
        """Return the answer to a request, b"" if the hook has to see for itself."""
        from .running import answer_event, write_log

        head, _, raw = request.partition(b"\n")
        try:
            caller = json.loads(head)
            output = answer_event(
                "user-prompt-submit",
                raw,
                self._open,
                exists=self._db.exists(),
                folder=self._folder,
                project=caller["project"],
                here=caller["here"],
            )
        except Exception as error:
            write_log(self._folder, f"resident: {type(error).__name__}: {error}")
            self.close()  # the file may be another, or damaged
            return b""
        return DONE + output.encode()

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def _open(self, busy_timeout: float) -> AbstractContextManager[Memory]:
        from ..memory import Memory
        from ..settings import Settings

        if self._memory is None:
            self._memory = Memory.open(self._db, embedder=None, settings=Settings(busy_timeout=busy_timeout))
        return nullcontext(self._memory)


def _listen(listener: socket.socket, answerer: Answerer, path: Path, own: int) -> None:
    idle, last = find_idle(), time.monotonic()
    while time.monotonic() - last < idle and _find_inode(path) == own:
        listener.settimeout(min(LOOK, idle))
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        with connection, contextlib.suppress(OSError):
            connection.settimeout(REQUEST_SECONDS)
            connection.sendall(answerer.answer(_read(connection)))
        last = time.monotonic()


def _read(connection: socket.socket) -> bytes:
    parts, size = [], 0
    while part := connection.recv(65_536):
        parts.append(part)
        size += len(part)
        if size > LONGEST_REQUEST:
            raise ConnectionAbortedError
    return b"".join(parts)


def _find_inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Tell whether no other process has this place, and keep it until the end of the block."""
    import fcntl

    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


if __name__ == "__main__":
    serve(*map(Path, sys.argv[1:]))
