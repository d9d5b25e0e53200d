"""In which scope an agent's client keeps its memories: one that all share, one for each project, one of its own."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

from .errors import InvalidInputError
from .scopes import escape_segment

Sharing = Literal["shared", "project", "private"]

SHARED = "shared"
LONGEST_NAME = 64


def choose_scope(sharing: Sharing, client: str | None, folder: Path) -> str:
    """Return the scope. Scopes of different kinds lie beside each other, so none sees into another.

    Raises InvalidInputError if a private one has no client to belong to.
    """
    if sharing == "project":
        return project_scope(folder)
    if sharing == "shared":
        return SHARED
    if not client:
        raise InvalidInputError("a private scope needs the name of its client; give --client")
    return f"private/{escape_segment(client)}"


def project_scope(folder: Path) -> str:
    """Return the scope of the project that a folder belongs to: the nearest folder with a `.git`, else itself."""
    place = folder.expanduser().resolve()
    root = next((one for one in (place, *place.parents) if (one / ".git").exists()), place)
    digest = hashlib.blake2b(str(root).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"project/{escape_segment(root.name[:LONGEST_NAME] or 'root')}-{digest}"
