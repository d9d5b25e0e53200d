"""Which memories a session has been shown: they stay in its context, so none is put there twice."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

MOST = 500  # ids of one session
KEPT_DAYS = 14


def read_shown(folder: Path, session: str | None) -> set[str]:
    """Return the ids that a session has been shown."""
    if session is None:
        return set()
    try:
        found = json.loads(_file(folder, session).read_text("utf-8"))
    except (OSError, ValueError):
        return set()
    return {id for id in found if isinstance(id, str)} if isinstance(found, list) else set()


def note_shown(folder: Path, session: str | None, ids: Iterable[str]) -> None:
    """Note what a session was shown. If that is not possible it is shown again, rather than nothing at all."""
    if session is None:
        return
    known = list(dict.fromkeys([*sorted(read_shown(folder, session)), *ids]))[-MOST:]
    file = _file(folder, session)
    part = file.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        part.write_text(json.dumps(known), "utf-8")
        part.replace(file)


def forget_shown(folder: Path, session: str | None) -> None:
    """Forget what a session was shown, since its context is gone, and what is old of others."""
    if session is not None:
        with contextlib.suppress(OSError):
            _file(folder, session).unlink()
    oldest = time.time() - KEPT_DAYS * 86_400
    for file in (folder / "sessions").glob("*"):
        with contextlib.suppress(OSError):
            if file.stat().st_mtime < oldest:
                file.unlink()


def _file(folder: Path, session: str) -> Path:
    name = hashlib.blake2b(session.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return folder / "sessions" / f"{name}.json"
