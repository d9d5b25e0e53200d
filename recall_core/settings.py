"""The settings of a memory: few, and each says what it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .errors import InvalidInputError
from .models import Chunker


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a memory cuts, ranks and stores. Raises InvalidInputError for values that make no sense."""

    chunk_size: int = 256
    """Largest chunk, in `chunk_unit`. Smaller chunks pin an answer down, larger ones keep its context. Never more than the model's window."""
    chunk_overlap: int = 32
    """How much of a chunk's end is said again at the start of the next one, in `chunk_unit`."""
    chunk_unit: Literal["tokens", "characters"] = "tokens"
    """Tokens are the embedding model's; without a model they are estimated."""
    chunker: Chunker | None = None
    """Cuts in place of ours; chunks larger than the model's window are still cut to fit."""
    keyword_weight: float = 0.5
    """Share of the keyword leg in the default ranking; the vector leg has the rest."""
    recency_weight: float = 0.0
    """Share of recency in the final score. 0 only puts the newer of two equal memories first; `recency=` of a search overrides it."""
    recency_half_life_days: float = 30.0
    """After this many days a memory counts half as recent."""
    candidates: int = 200
    """How many candidates each leg hands to the ranking."""
    rrf_k: int = 60
    """The constant of `fusion="rrf"`: the larger, the less the first places count."""
    context_relevance: float = 0.3
    """`context()` leaves out what is less relevant than this, unless the call says otherwise."""
    embedding: Literal["inline", "background"] = "inline"
    """Whether `add` returns with the vectors made, or leaves them to a worker thread."""
    durability: Literal["normal", "full"] = "normal"
    """"normal" survives a killed process, "full" also a power cut, at the price of slower writes."""
    busy_timeout: float = 30.0
    """Seconds to wait for other writers of the file before StoreBusyError."""
    dictionary: tuple[str, ...] = ()
    """Words that the keyword index keeps whole, beside those already stored in the file."""

    def __post_init__(self) -> None:
        _check(self.chunk_size >= 8, "chunk_size", self.chunk_size, "at least 8")
        _check(0 <= self.chunk_overlap <= self.chunk_size // 2, "chunk_overlap", self.chunk_overlap, "from 0 to half of chunk_size")
        _check(self.chunk_unit in ("tokens", "characters"), "chunk_unit", self.chunk_unit, "'tokens' or 'characters'")
        _check(0 <= self.keyword_weight <= 1, "keyword_weight", self.keyword_weight, "from 0 to 1")
        _check(0 <= self.recency_weight <= 1, "recency_weight", self.recency_weight, "from 0 to 1")
        _check(self.recency_half_life_days > 0, "recency_half_life_days", self.recency_half_life_days, "above 0")
        _check(1 <= self.candidates <= 4096, "candidates", self.candidates, "from 1 to 4096")
        _check(self.rrf_k >= 1, "rrf_k", self.rrf_k, "at least 1")
        _check(0 <= self.context_relevance <= 1, "context_relevance", self.context_relevance, "from 0 to 1")
        _check(self.embedding in ("inline", "background"), "embedding", self.embedding, "'inline' or 'background'")
        _check(self.durability in ("normal", "full"), "durability", self.durability, "'normal' or 'full'")
        _check(self.busy_timeout >= 0, "busy_timeout", self.busy_timeout, "at least 0")


def _check(holds: bool, name: str, value: object, want: str) -> None:
    if not holds:
        raise InvalidInputError(f"Settings.{name} is {value!r}; it must be {want}")
