"""The chunks that a search scores, and all that is known of them: a whole scope, or the best of a large one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .blocks import Flags, Floats
from .bm25 import Corpus
from .frame import Frame
from .meaning import FrameVectors
from .surroundings import Surroundings
from .whitening import Statistics

if TYPE_CHECKING:
    from .models import Vectors


class Prior(Protocol):
    """What statistics lean on while there is little: the typical vector of a language."""

    language: str

    def vector(self) -> Vectors | None:
        """Return the vector, shape (dimensions,), None if it is not known."""
        ...


class Compared(NamedTuple):
    """The candidates' vectors, the statistics of their scope, and their whitened lengths by these."""

    vectors: FrameVectors
    statistics: Statistics
    lengths: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """A frame; its rows that the search may see; its records' surroundings; what describes the corpus that they come
    from, and how many terms may be looked for (None: all); vectors, if any are compared; how many chunks were searched
    by keywords, and how many were compared by their vectors.
    """

    frame: Frame
    visible: Flags
    around: Surroundings
    describe: Callable[[Sequence[str]], Corpus]
    most_terms: int | None
    vectors: Compared | None
    size: int
    compared: int
