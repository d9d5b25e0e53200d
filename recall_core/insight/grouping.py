"""Forms groups around the record that says most, so that every member is like that one, not only like a neighbour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def group_around(order: Sequence[int], pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return a partition of `order`: each group begins with its centre, and all others are paired with that.

    Who comes first in `order` becomes a centre, and takes whoever is paired with it and has not been taken. The order
    of the pairs does not matter.
    """
    neighbours: dict[int, set[int]] = {}
    for one, other in pairs:
        neighbours.setdefault(one, set()).add(other)
        neighbours.setdefault(other, set()).add(one)
    place = {item: number for number, item in enumerate(order)}
    taken: set[int] = set()
    groups = []
    for centre in order:
        if centre not in taken:
            near = neighbours.get(centre, set()) - taken - {centre}
            groups.append([centre, *sorted(near, key=place.__getitem__)])
            taken |= {centre, *near}
    return groups


def rank(tokens: int, importance: float, created_at: int, id: str) -> tuple[float, float, int, str]:
    """Return by what records that say the same are ordered, the one that is to survive first: who says most, of equal
    ones the most important, of these the newest (microseconds), then by id.
    """
    return -tokens, -importance, -created_at, id
