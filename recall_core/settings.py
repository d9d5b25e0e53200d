"""The settings of a memory: few, and each says what it changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .errors import InvalidInputError
from .models import Chunker, Reranker, RerankFunction

_RERANKER = "an object with score(query, texts), such as CrossEncoder(folder), a function of the same, or None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a memory cuts, ranks and stores. Raises InvalidInputError for values that make no sense."""

    chunk_size: int = 256
    """Largest chunk, in `chunk_unit`. Smaller chunks pin an answer down, larger ones keep its context.
    Never more than the model's window."""
    chunk_overlap: int = 32
    """How much of a chunk's end is said again at the start of the next one, in `chunk_unit`."""
    chunk_unit: Literal["tokens", "characters"] = "tokens"
    """Tokens are the embedding model's; without a model they are estimated."""
    chunker: Chunker | None = None
    """Cuts in place of ours; chunks larger than the model's window are still cut to fit."""
    keyword_weight: float = 0.5
    """Share of the keyword leg in the default ranking; the vector leg has the rest."""
    recency_weight: float = 0.0
    """Share of recency in the final score. 0 only puts the newer of two equal memories first; `recency=` of a search
    overrides it."""
    recency_half_life_days: float = 30.0
    """After this many days a memory counts half as recent."""
    candidates: int = 200
    """How many records take part in recency, reranking and the levelling of relevances, and how many chunks each leg
    brings of a scope that is too large to be held in memory."""
    rrf_k: int = 60
    """The constant of `fusion="rrf"`: the larger, the less the first places count."""
    reranker: Reranker | RerankFunction | None = None
    """Reads the first hits again and puts them in its own order: a `CrossEncoder`, or a function of yours."""
    rerank_candidates: int = 50
    """How many of the first hits the reranker gets; those behind them keep their order."""
    rerank_budget: float = 1.0
    """Seconds that the reranker may take, looked at after every 8 hits. The others stay behind in their order."""
    context_relevance: float = 0.3
    """`context()` leaves out what is less relevant than this, unless the call says otherwise."""
    embedding: Literal["inline", "background"] = "inline"
    """Whether `add` returns with the vectors made, or leaves them to a worker thread."""
    embed_roles: tuple[str, ...] | None = None
    """Only records of these roles are embedded, None: all. The others are found by keyword alone."""
    embed_min_characters: int = 0
    """Only texts of at least so many characters are embedded."""
    embed_failures: int = 3
    """A chunk that could not be embedded more often than this rests until `flush(retry_failed=True)`."""
    backfill_interval: float = 300.0
    """Seconds between two runs over the chunks that still wait for a vector, whoever added them; the first is made when
    the memory is opened. `math.inf`: none."""
    backfill_limit: int = 1000
    """How many chunks such a run takes at most if embedding is in the background."""
    close_timeout: float = 5.0
    """Seconds that `close` goes on embedding what this memory has added."""
    query_cache_size: int = 2000
    """How many vectors of recent queries are kept in memory; 0: none."""
    query_cache_ttl: float = 1800.0
    """Seconds after which a query is embedded again."""
    similarity_floors: tuple[tuple[str, float], ...] = ()
    """Pairs of a part of a model's id and the least cosine at which its vectors count as a match. `min_similarity=` of
    a search overrides it. Each model has a scale of its own: unrelated texts have 0.2 with one and 0.8 with another."""
    trash_days: float = 30.0
    """For so many days deleted memories can be restored; 0: they are deleted for good at once."""
    durability: Literal["normal", "full"] = "normal"
    """"normal" survives a killed process, "full" also a power cut, at the price of slower writes."""
    busy_timeout: float = 30.0
    """Seconds to wait for other writers of the file before StoreBusyError."""
    dictionary: tuple[str, ...] = ()
    """Words that the keyword index keeps whole, beside those already stored in the file."""
    redact: bool | Callable[[str], str] = False
    """Whether secrets are taken out of what is stored, where a call does not say `redact=` itself; or a function that
    takes a text and returns what may be stored of it, in place of the rules of the package."""

    def __post_init__(self) -> None:
        self._check_number("chunk_size", 8, whole=True)
        self._check_number("chunk_overlap", 0, self.chunk_size // 2, whole=True, most_is=" (half of chunk_size)")
        self._check_choice("chunk_unit", ("tokens", "characters"))
        self._check_number("keyword_weight", 0, 1)
        self._check_number("recency_weight", 0, 1)
        self._check_number("recency_half_life_days", 1e-9)
        self._check_number("candidates", 1, 4096, whole=True)
        self._check_number("rrf_k", 1, 1000)  # beyond, neighbouring ranks differ by no more than noise
        self._check("reranker", _can_score(self.reranker), _RERANKER)
        self._check_number("rerank_candidates", 1, 4096, whole=True)
        self._check_number("rerank_budget", 0)
        self._check_number("context_relevance", 0, 1)
        self._check_choice("embedding", ("inline", "background"))
        self._check_embedding()
        self._check_number("trash_days", 0, 36_500)
        self._check_choice("durability", ("normal", "full"))
        self._check_number("busy_timeout", 0, 86_400)
        self._check("dictionary", _are_words(self.dictionary), "a tuple of words")
        self._check("redact", isinstance(self.redact, bool) or callable(self.redact), "True, False or a function")

    def _check_embedding(self) -> None:
        self._check(
            "embed_roles", self.embed_roles is None or _are_words(self.embed_roles), "a tuple of roles, or None"
        )
        self._check_number("embed_min_characters", 0, whole=True)
        self._check_number("embed_failures", 0, whole=True)
        self._check_number("backfill_interval", 0.01)
        self._check_number("backfill_limit", 1, whole=True)
        self._check_number("close_timeout", 0, 86_400)
        self._check_number("query_cache_size", 0, whole=True)
        self._check_number("query_cache_ttl", 0)
        floors = self.similarity_floors
        self._check("similarity_floors", _are_floors(floors), "a tuple of pairs such as ('doubao-embedding', 0.4)")

    def _check_number(
        self, name: str, least: float, most: float = math.inf, *, whole: bool = False, most_is: str = ""
    ) -> None:
        value = getattr(self, name)
        number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        kind = "a whole number" if whole else "a number"
        upwards = "" if most == math.inf else f" and at most {most:g}{most_is}"
        self._check(name, number and least <= value <= most, f"{kind}, at least {least:g}{upwards}")

    def _check_choice(self, name: str, choices: tuple[str, ...]) -> None:
        self._check(name, getattr(self, name) in choices, " or ".join(map(repr, choices)))

    def _check(self, name: str, holds: bool, want: str) -> None:
        if not holds:
            raise InvalidInputError(f"Settings.{name} is {getattr(self, name)!r}; it must be {want}")


def _are_words(words: object) -> bool:
    return isinstance(words, tuple) and all(isinstance(word, str) and word.strip() for word in words)


def _are_floors(floors: object) -> bool:
    return isinstance(floors, tuple) and all(
        isinstance(pair, tuple)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], int | float)
        and -1 <= pair[1] <= 1
        for pair in floors
    )


def _can_score(reranker: object) -> bool:
    if isinstance(reranker, type):  # the class is given in place of an instance
        return False
    return reranker is None or callable(reranker) or callable(getattr(reranker, "score", None))


CHAT_HISTORY = Settings(
    embedding="background",
    embed_roles=("user", "assistant"),
    embed_min_characters=11,
    embed_failures=3,
    backfill_interval=300.0,
    backfill_limit=1000,
    candidates=30,
    query_cache_size=2000,
    query_cache_ttl=1800.0,
    similarity_floors=(("doubao-embedding", 0.4),),
)
"""Settings for the history of a chat assistant with a remote embedder: adding never waits for it, and only what user
and assistant said in more than 10 characters is sent there. `dataclasses.replace` changes single ones."""
