"""In which scope an agent's client keeps its memories: one that all share, one for each project, one of its own."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Literal

from .errors import InvalidInputError
from .scopes import escape_segment

Sharing = Literal["shared", "project", "private"]

SHARED = "shared"
LONGEST_NAME = 64


def check_client(name: str) -> str:
    """Return the name of a client. Raises InvalidInputError if it can't be a source and a scope."""
    if not name.isprintable() or len(name) > LONGEST_NAME:
        raise InvalidInputError(
            f"{name[:LONGEST_NAME]!r} is no name of a client: at most {LONGEST_NAME} printable characters"
        )
    return name


def choose_scope(sharing: Sharing, client: str | None, folder: Path | None) -> str:
    """Return the scope; `folder` is that of the project. Scopes of different kinds lie beside each other, so none sees
    into another.

    Raises InvalidInputError if a private one has no client to belong to, or one of a project no folder.
    """
    if sharing == "project":
        if folder is None:
            raise InvalidInputError("the scope of a project needs its folder; give --project")
        return project_scope(folder)
    if sharing == "shared":
        return SHARED
    if not client:
        raise InvalidInputError("a private scope needs the name of its client; give --client")
    return f"private/{escape_segment(client)}"


def project_scope(folder: Path) -> str:
    """Return the scope of the project that a folder belongs to."""
    root = project_root(folder)
    digest = hashlib.blake2b(str(root).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"project/{escape_segment(root.name[:LONGEST_NAME] or 'root')}-{digest}"


def project_root(folder: Path) -> Path:
    """Return the folder of the project that a folder belongs to: the nearest one with a `.git`, else itself. A worktree
    belongs to the project that it is another tree of. A repository of the home folder, as people keep their settings
    in, is no project of all that lies in it.
    """
    place, home = folder.expanduser().resolve(), _find_home()
    for one in (place, *place.parents):
        if one == home and one != place:
            return place
        mark = one / ".git"
        if os.path.isfile(mark):  # noqa: PTH113 - Path's own raises where a folder may not be looked into
            return _main_tree(mark) or one
        if os.path.isdir(mark):  # noqa: PTH112
            return one
    return place


def _find_home() -> Path | None:
    with contextlib.suppress(RuntimeError):
        return Path.home().resolve()
    return None


def _main_tree(mark: Path) -> Path | None:
    """Return the main tree of the worktree whose `.git` this is, or the bare repository; None if it is no worktree."""
    with contextlib.suppress(OSError, ValueError):
        target = mark.read_text("utf-8").removeprefix("gitdir:").strip()
        found = (mark.parent / target).resolve()
        if found.parent.name == "worktrees":
            return found.parents[2] if found.parents[1].name == ".git" else found.parents[1]
    return None
