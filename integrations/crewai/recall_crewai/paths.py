"""CrewAI's scope paths as scopes of a memory, and back."""

from __future__ import annotations

import re

from recall_core import escape_segment, unescape_segment

NO_NAME = "unknown"  # what CrewAI calls it, too
_OTHERS = re.compile(r"[^\w-]+")


def to_scope(path: str | None) -> str:
    """Return the scope that a path such as "/a/b" means; None and "/" are the root."""
    return "/".join(escape_segment(part) for part in (path or "").split("/") if part)


def to_path(scope: str) -> str:
    """Return the path of a scope."""
    return "/" + "/".join(map(unescape_segment, scope.split("/"))) if scope else "/"


def is_within(path: str, root: str | None) -> bool:
    """Tell whether a path is `root` or lies below it."""
    outer, inner = to_scope(root), to_scope(path)
    return not outer or inner == outer or inner.startswith(outer + "/")


def name_segment(name: str) -> str:
    """Return a name as a part of a path, as CrewAI's `sanitize_scope_name` does, but with the letters of all languages:
    "Research Crew" is "research-crew", and "研究团队" stays itself.
    """
    return _OTHERS.sub("-", name.lower().strip()).strip("-") or NO_NAME
