"""What a source finds in a file: records, titles, and what it leaves out or can't read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ..models import NewRecord
from ..times import Time
from .input import Input

# The fields of a record, in the order in which they are written; what is empty is left out.
FIELDS = (
    "id",
    "text",
    "scope",
    "session",
    "turn",
    "role",
    "kind",
    "tags",
    "metadata",
    "payload",
    "source",
    "importance",
    "created_at",
    "updated_at",
    "accessed_at",
    "expires_at",
)
# Those that it can be stored with.
NEW_RECORD_FIELDS = frozenset(FIELDS) - {"updated_at", "accessed_at"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorEntry:
    """A vector of a record: which space, which slice of the text, and float32 numbers, little-endian."""

    space: str
    model: str
    dimensions: int
    place: int  # the chunk's number within the record
    start: int
    end: int
    given: bool  # a caller brought it; it stands for the whole record
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record found in a file. Its scope is relative to the one that the import goes to.

    `key` names it within its source, the same whenever the source is read: unless the record has an id, one is made
    from the key, by which a second import knows it again. With neither it is stored anew each time.
    """

    record: NewRecord
    key: str | None = None
    line: int | None = None
    title: str | None = None  # of the record's session
    updated_at: Time | None = None
    accessed_at: Time | None = None
    vectors: tuple[VectorEntry, ...] = ()
    ignored: tuple[str, ...] = ()  # fields that have no place in a record


@dataclass(frozen=True, slots=True, kw_only=True)
class TitleEntry:
    """A session's title, where no record carries it."""

    scope: str
    session: str
    title: str
    created_at: Time | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class WordEntry:
    """A word of the user dictionary."""

    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEntry:
    """A link between two records, by their ids."""

    source: str
    target: str
    kind: str
    created_at: Time
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that is left out on purpose. Reasons are few and fixed, for they are counted."""

    reason: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Damaged:
    """Something that can't be read, and why."""

    reason: str
    line: int | None = None


Item = Entry | TitleEntry | WordEntry | LinkEntry | Skipped | Damaged


class Source(Protocol):
    """Reads one format. It yields as it reads, so that a file of any size fits in memory."""

    @property
    def name(self) -> str:
        """What `format=` calls it."""
        ...

    def detect(self, file: Input) -> bool:
        """Tell by the first bytes, the tables or the names in a folder whether this is such a file. Reads no more."""
        ...

    def read(self, file: Input) -> Iterator[Item]:
        """Yield what is in the file, in its order. What can't be read is yielded as `Damaged`, and costs nothing else.

        Raises InvalidInputError if nothing of the file can be read.
        """
        ...
