"""Where records stand in their conversations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where records stand in their sessions: `beside` has the places of the records two before, one before, one after
    and two after, shape (4, records), -1 for none; `sessions` numbers the sessions, -1 for none; `sizes` counts the
    records of each record's session.
    """

    beside: Places
    sessions: Places
    sizes: Places

    def at(self, offset: int) -> Places:
        """Return the places of the records that stand `offset` after each, -1 where none does."""
        return np.asarray(self.beside[OFFSETS.index(offset)])


OFFSETS = (-2, -1, 1, 2)  # in the order of `beside`


def find_surroundings(order: Places, sessions: Places, visible: Flags, counted: Flags) -> Surroundings:
    """Return the surroundings of records, given their order in the conversations: only `visible` records are
    neighbours, `counted` ones count for the size of a session.
    """
    beside = np.full((len(OFFSETS), len(sessions)), -1, dtype=np.int32)
    present = order[visible[order]]
    for place, offset in enumerate(OFFSETS):
        step = abs(offset)
        earlier, later = present[:-step], present[step:]
        same = sessions[earlier] == sessions[later]
        here, there = (later, earlier) if offset < 0 else (earlier, later)
        beside[place, here[same]] = there[same]
    return Surroundings(beside, sessions, _count_sessions(sessions, counted))


def _count_sessions(sessions: Places, counted: Flags) -> Places:
    inside = sessions >= 0
    if not inside.any():
        return np.zeros(len(sessions), dtype=np.int32)
    sizes = np.bincount(sessions[inside & counted], minlength=int(sessions.max()) + 1)
    return np.where(inside, sizes[sessions], 0).astype(np.int32)
