"""Regular expressions that are compiled when they are first used: a process needs few of them, and to compile them all
would take as long as a whole search.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _LatePattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(re.compile(self._pattern, self._flags), name)
        setattr(self, name, found)  # the next time it is found without coming here
        return found


def compile_late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what has the methods of `re.compile(pattern, flags)`, and compiles when one of them is asked for."""
    return cast("re.Pattern[str]", _LatePattern(pattern, flags))
