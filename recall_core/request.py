"""What a caller asks for, checked and complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .filters import Selection
from .models import Fusion, Mode
from .store import Space

if TYPE_CHECKING:
    from .models import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A search."""

    text: str
    selection: Selection
    mode: Mode
    limit: int
    fusion: Fusion
    alpha: float | None  # None: as much as the evidence says
    recency: float
    candidates: int
    pool: int  # how many of the best `diversity` chooses from
    diversity: float
    min_relevance: float | None
    min_similarity: float | None
    vector: Vectors | None
    space_name: str
    space: Space | None  # None if there is no such space yet
