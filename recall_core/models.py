"""The values that travel through recall_core, and the protocols of the parts that a user may bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, overload, runtime_checkable

from .times import Time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .counts import Breakdown

    Vectors = NDArray[np.float32]  # shape (texts, dimensions), or (dimensions,) where one is meant

Json = Any  # what json.dumps takes: None, bool, int, float, str, lists and string-keyed mappings of them
Mode = Literal["hybrid", "keyword", "semantic"]
Fusion = Literal["default", "rrf", "plain"]
OnDuplicate = Literal["keep", "skip", "touch", "replace"]
GivenVector = Sequence[float] | Sequence[Sequence[float]]  # of a record, or one for each of its pages
Span = tuple[int, int]  # character offsets [start, end) into a text
RerankFunction = Callable[[str, Sequence[str]], Sequence[float]]  # `Reranker.score` as a plain function


class Default(Enum):
    """The type of `DEFAULT`."""

    DEFAULT = "default"

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT: Literal[Default.DEFAULT] = Default.DEFAULT
"""Stands for the model that ships with recall_core. None means no model at all, hence keyword search only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One memory, as it is stored. Times are aware UTC datetimes with microseconds."""

    id: str
    text: str
    scope: str = ""
    session: str | None = None
    turn: int | None = None
    role: str | None = None
    kind: str = "memory"
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    payload: Json = None
    source: str | None = None
    importance: float = 0.5
    created_at: datetime
    updated_at: datetime
    accessed_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A memory to store: the arguments of `Memory.add` as one value."""

    text: str
    id: str | None = None
    scope: str = ""
    session: str | None = None
    turn: int | None = None
    role: str | None = None
    kind: str = "memory"
    tags: Sequence[str] = ()
    metadata: Mapping[str, Json] | None = None
    payload: Json = None
    source: str | None = None
    importance: float = 0.5
    created_at: Time | None = None
    expires_at: Time | None = None
    ttl: float | timedelta | None = None
    vector: GivenVector | None = None
    space: str | None = None
    redact: bool | None = None
    on_duplicate: OnDuplicate = "keep"


@dataclass(frozen=True, slots=True)
class Chunk:
    """The slice `record.text[start:end]` of a record, the `index`-th of it."""

    index: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a record was found: what each part of the ranking said. None means that part did not see it."""

    rank: int  # position in the result list, from 1
    keyword_rank: int | None = None  # position in the keyword leg, from 1
    bm25: float | None = None  # larger is better; the parts are in docs/ranking.md
    coverage: float | None = None  # bm25 / the most this query could reach, 0..1
    vector_rank: int | None = None  # position in the vector leg, from 1
    similarity: float | None = None  # cosine of the raw vectors, -1..1
    meaning: float | None = None  # cosine after centring and whitening by the scope's statistics, -1..1
    keyword_weight: float = 0.5  # the share of coverage in the score; the rest is that of meaning
    context: float = 0.0  # what neighbouring turns and the session added
    prior: float = 0.0  # what the kind of turn, its speaker and its date added, or took
    hop: float = 0.0  # what its likeness to the best hits added
    decay: float = 1.0  # 0.5 ** (age / half-life), 1 is now
    rerank: float | None = None  # what the reranker said, larger is better, on its own scale

    def __str__(self) -> str:
        parts = []
        if self.keyword_rank is not None:
            parts.append(f"keyword #{self.keyword_rank} (bm25 {self.bm25:.2f})")
        if self.vector_rank is not None:
            shown = self.meaning if self.meaning is not None else self.similarity
            parts.append(f"meaning #{self.vector_rank} ({shown:.2f})")
        if self.context > 0:
            parts.append(f"context +{self.context:.2f}")
        if self.rerank is not None:
            parts.append(f"rerank {self.rerank:.2f}")
        return ", ".join(parts) or f"#{self.rank}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A relation between two records, by their ids: what the source is to the target says the kind."""

    source: str
    target: str
    kind: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """A deleted record that can be restored, and when it was deleted."""

    record: Record
    deleted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What `forget` deleted, or would delete: how many memories, and the first of them."""

    count: int
    sample: tuple[Record, ...]
    hard: bool
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One found record. `relevance` is calibrated to 0..1; `score` orders the list and means nothing across queries.

    `links` are the links from and to the record, as far as the searching view sees both ends.
    """

    record: Record
    chunk: Chunk
    relevance: float
    score: float
    why: Why
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """The result of a search, best first.

    `mode` is the mode that ran; `degraded` says what the vectors could not do: all of it, so that keywords answered
    instead, or a part, since some chunks wait for a vector; and that a reranker failed, so that its order is missing.
    """

    items: tuple[Hit, ...]
    mode: Mode
    degraded: str | None = None

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceStats:
    """One vector space of a file: whose vectors, and how many."""

    name: str
    model: str
    dimensions: int
    vectors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What a file holds and in which state it is."""

    path: str
    records: int
    chunks: int
    sessions: int
    spaces: tuple[SpaceStats, ...]
    pending: int  # chunks that wait for a vector
    failed: int  # of these: could not be embedded when they were last tried
    file_bytes: int
    schema_version: int
    segmenter: str
    vector_index: str
    notes: tuple[str, ...] = ()  # what wants the owner's attention, in words
    resting: int = 0  # of the failed: not tried again before `flush(retry_failed=True)`
    leased: int = 0  # of the pending: are being embedded by some process
    degraded: str | None = None  # why the last search of this process could not use the vectors
    degraded_at: datetime | None = None  # when that was
    query_hits: int = 0  # queries whose vector this process had kept
    query_misses: int = 0  # queries that it had to embed
    details: Breakdown | None = None  # the records counted by scope, session, role and so on, if that was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembedded:
    """What moving a file to another model did: the model that it has now, and the numbers of this call.

    `chunks` of the file have a vector of the model, for which `embedded` texts were embedded now; the rest had one from
    an interrupted call, or says the same as another. `recut` records were cut anew, since their chunks were too large
    for the model. `refused` chunks have no vector since the model failed on their text; they are tried again later.
    All are 0 if the file had the model already.
    """

    model: str
    dimensions: int
    chunks: int = 0
    embedded: int = 0
    recut: int = 0
    refused: int = 0


@runtime_checkable
class Embedder(Protocol):
    """Turns text into vectors. Any object with these members will do.

    `model_id` names everything that makes vectors comparable (model, pooling, prefixes): vectors of two embedders
    with the same id may be mixed. An embedder may be called from several threads at once.
    """

    @property
    def model_id(self) -> str:
        """What makes vectors comparable: model, pooling, prefixes."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return float32 of shape (len(texts), dimensions) for texts to be stored."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return float32 of shape (len(texts), dimensions) for texts to search with."""
        ...


@runtime_checkable
class TokenWindow(Protocol):
    """What an embedder may offer beside `Embedder`, so that chunks fit its window exactly."""

    @property
    def window(self) -> int:
        """The number of tokens of a passage that one vector can hold, prefix and special tokens already taken off."""
        ...

    def token_spans(self, text: str) -> list[Span]:
        """Return the character offsets of each token of `text`, in order."""
        ...


@runtime_checkable
class LanguageMeans(Protocol):
    """What an embedder may offer beside `Embedder`: typical vectors, to centre by while a scope is still small."""

    def language_mean(self, language: str, kind: Literal["passage", "query"]) -> Vectors:
        """Return the mean vector, shape (dimensions,), of texts of a language ("zh" or "en")."""
        ...


@runtime_checkable
class Chunker(Protocol):
    """Cuts text into chunks."""

    def chunk(self, text: str) -> Sequence[Span]:
        """Return the chunks' character offsets, in order of their start. They may overlap."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Says how well texts answer a query. A plain function `(query, texts) -> scores` will do as well.

    A reranker may be called from several threads at once.
    """

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one finite number for each text, in their order. Larger is better, on any scale."""
        ...


class AddArguments(TypedDict, total=False):
    """The keyword arguments of `add` that `Session.append` passes on."""

    id: str | None
    kind: str
    tags: Sequence[str]
    metadata: Mapping[str, Json] | None
    payload: Json
    source: str | None
    importance: float
    created_at: Time | None
    expires_at: Time | None
    ttl: float | timedelta | None
    vector: GivenVector | None
    space: str | None
    redact: bool | None
    on_duplicate: OnDuplicate


class SearchArguments(TypedDict, total=False):
    """The keyword arguments of `search` that `context` passes on."""

    scope: str
    mode: Mode
    limit: int
    where: Json  # a mapping or a Filter, as in `search`
    session: str | None
    roles: Sequence[str] | None
    tags: Sequence[str] | None
    since: Time | None
    until: Time | None
    min_relevance: float | None
    min_similarity: float | None
    fusion: Fusion
    alpha: float | None
    recency: float | None
    candidates: int | None
    diversify: float | None
    now: Time | None
    vector: Sequence[float] | None
    space: str | None
