"""Asks the process that an earlier hook left behind, which has all loaded that a search needs.

A request is a line of JSON and what the client told the hook; the answer is "=" and what the hook prints. Whatever else
comes back, or nothing, means that the hook has to see for itself.
"""

from __future__ import annotations

import json
import os
import socket
import zlib
from pathlib import Path

from recall_core import __version__

IDLE = 1800.0  # seconds without a prompt, after which it ends
LONGEST_PATH = 100  # characters of a socket's path; macOS takes no more than 103
DONE = b"="


def find_socket(folder: Path, db: Path) -> Path | None:
    """Return where the process that serves a memory file listens, None where there can be none.

    Another version, or another installation, is another process.
    """
    if not hasattr(socket, "AF_UNIX") or os.name != "posix" or find_idle() == 0:
        return None
    served = f"{__version__} {__file__} {os.path.abspath(db)}"  # noqa: PTH100  # Path has nothing without a look at links
    path = folder / f"{zlib.crc32(os.fsencode(served)):08x}.sock"
    return path if len(os.fsencode(path)) <= LONGEST_PATH else None


def find_idle() -> float:
    """Return after how many seconds without a prompt it ends; 0 if there shall be none."""
    try:
        return max(0.0, float(os.environ.get("RECALL_HOOK_RESIDENT", IDLE)))
    except ValueError:
        return IDLE


def ask_resident(path: Path, raw: bytes, project: str | None, seconds: float) -> str | None:
    """Return what the hook prints, None if nobody answers in time."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            connection.connect(str(path))
            connection.sendall(json.dumps({"project": project, "here": os.getcwd()}).encode() + b"\n" + raw)  # noqa: PTH109
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    except (OSError, ValueError):
        return None
    return answer[len(DONE) :].decode() if answer.startswith(DONE) else None
