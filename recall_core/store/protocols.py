"""What the rest of recall_core asks of a store and of its vector index: records, chunks, filters and ids, no SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..filters import Selection
from ..models import OnDuplicate, Record, Span

if TYPE_CHECKING:
    from ..models import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkDraft:
    """A chunk ready to be stored: offsets into the record's text and space-separated index terms by column."""

    start: int
    end: int
    tokens: int
    hash: bytes  # identifies the text that is embedded; equal hashes have equal vectors
    latin: str
    grams: str
    words: str
    labels: str
    embeds: bool = True  # whether it waits for a vector of the memory's own embedder
    dictionary: str = ""  # the version of the user dictionary that the terms were made with


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A record ready to be stored.

    `once_per_turn` makes a second record with the same session, turn and role the first one again. `named` says that
    the caller chose the id, `dated` the time of making.
    """

    record: Record
    chunks: tuple[ChunkDraft, ...]
    on_duplicate: OnDuplicate = "keep"
    once_per_turn: bool = False
    named: bool = False
    dated: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a draft: the record as it now is, and its chunks (empty if nothing was written)."""

    record: Record
    chunk_keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """In which scope an id is taken, and whether its record was deleted and can be restored."""

    scope: str
    deleted: bool


@dataclass(frozen=True, slots=True)
class Stale:
    """A record whose chunks are missing or out of date, since another program wrote it, and its key in the file."""

    key: int
    record: Record


@dataclass(frozen=True, slots=True)
class Indexed:
    """A record as it is in the indexes: its key in the file, and where its chunks lie in its text."""

    key: int
    record: Record
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The words of the user dictionary, and what tells this state of it from others."""

    version: str
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class WordsToIndex:
    """Words that came to the dictionary or left it, up to a version, and that the records behind the key `after` are
    not indexed by yet.
    """

    words: frozenset[str]
    version: str
    after: int


@dataclass(frozen=True, slots=True)
class WordChange:
    """Which words a change of the dictionary added, and which it removed."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trashed:
    """A deleted record that can be restored: its entry in the trash, and when it was deleted (microseconds)."""

    key: int
    deleted_at: int
    record: Record


EXTERNAL_MODEL = "external"  # the model of a space whose vectors are all brought by callers
OWN_SPACE = "memory"  # the space of the memory's own embedder; hosts name theirs otherwise
RESERVED = "memory:"  # how no host's space begins
NEXT_SPACE = "memory:next"  # the one that the file is moving to
OLD_SPACE = "memory:old:"  # and its number: one that was replaced or given up, and is being deleted


@dataclass(frozen=True, slots=True)
class Space:
    """A vector space of the file: vectors of one model, which may be compared with each other."""

    id: int
    name: str
    model: str
    dimensions: int

    @property
    def is_brought(self) -> bool:
        """Whether callers bring its vectors. One stands for a whole record, and lies with its first chunk."""
        return self.model == EXTERNAL_MODEL


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVector:
    """A vector of a record's chunk: float32 numbers, little-endian. `given`: a caller brought it."""

    record_id: str
    space: Space
    place: int
    start: int
    end: int
    given: bool
    data: bytes


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that has no vector yet: the text to embed (its slice of the record) and what to call its speaker."""

    key: int
    hash: bytes
    role: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many chunks wait for a vector in the memory's own space, and how many of these in which state."""

    pending: int
    failed: int  # could not be embedded when they were last tried
    resting: int  # of these: not tried again before somebody asks for it
    leased: int  # are being embedded


@dataclass(frozen=True, slots=True, kw_only=True)
class Medium:
    """What a file lies on, how it is written, and how far its indexes are behind."""

    journal: str  # SQLite's journal mode
    network: str | None  # the type of a network file system
    unindexed_changes: int  # vectors that the codes have not taken up
    stale_records: int  # that another program wrote, and nobody has indexed
    changed_words: int  # of the dictionary, that older records are not indexed by


@dataclass(frozen=True, slots=True)
class Unit:
    """What goes together or not at all: a record (then it has an id), or a session."""

    scope: str
    session: str | None
    id: str | None
    size: int  # records
    last: int  # microseconds: when the last of them was made

    @property
    def key(self) -> tuple[str, str | None, str | None]:
        """What tells it from all others."""
        return self.scope, self.session, self.id


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much a file holds."""

    records: int
    chunks: int
    vectors: int


class SessionKey(NamedTuple):
    """What tells a conversation from all others."""

    scope: str
    id: str


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A conversation: microseconds UTC of its first and last record."""

    scope: str
    id: str
    title: str | None
    created_at: int
    updated_at: int
    records: int


@dataclass(frozen=True, slots=True)
class Nearest:
    """The keys of the chunks nearest to a query, and how many were compared with it."""

    keys: list[int]
    compared: int


class VectorIndex(Protocol):
    """Finds the chunks whose vectors are nearest to a query's, among those that a selection admits."""

    @property
    def name(self) -> str:
        """What the index is called in `Stats`."""
        ...

    def nearest(self, space: Space, direction: Vectors, selection: Selection, limit: int) -> Nearest:
        """Return the selected chunks with the largest dot products of their unit vectors with `direction`, shape
        (dimensions,): about `limit`, or all if they are fewer.
        """
        ...

    def refresh(self, space: Space, *, at_once: bool = False) -> bool:
        """Take up some of the vectors that were stored or deleted since, and tell whether others are left.

        A few are left for later, unless `at_once` says that even one is taken up.
        Inside a transaction it is part of it. What is left is found all the same, only more slowly.
        """
        ...

    def rebuild(self, space: Space) -> Iterator[int]:
        """Make the index of a space anew from its vectors, bit by bit, each in a short transaction; yield how many
        vectors each bit has taken up. Searches go on meanwhile.
        """
        ...

    def compact(self, space: Space) -> None:
        """Take up all changes, and let go of what the index keeps for vectors that are gone."""
        ...
