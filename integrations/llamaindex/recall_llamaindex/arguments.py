"""What a class of the adapter may be given."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def check_names(kind: type, given: Iterable[str], known: Collection[str]) -> None:
    """Raise TypeError for an argument that a class does not take: pydantic passes over a mistyped `scope`, which would
    put the memories of one user where all see them. The name that LlamaIndex serialises a class by is let through.
    """
    for name in given:
        if name not in known and name != "class_name":
            raise TypeError(f"{kind.__name__} takes no {name!r}; it takes {', '.join(sorted(known))}")
