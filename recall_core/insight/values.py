"""What the insights into a memory are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..models import Json, Record

GroupKind = Literal["duplicate", "conflict"]
Thin = Literal["few", "stale", "asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How a record of a group is like its survivor: `similarity`, 0 to 1, of the words, or of the vectors where these
    found it; `meaning` of the vectors in any case (whitened cosine, None without vectors); and what they share or where
    they stand against each other, in words.
    """

    id: str
    similarity: float
    meaning: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarGroup:
    """Records of one scope that say the same (a duplicate), or the same but for something that stands against it (a
    conflict: other numbers, a negation, another word in the same place).

    `records` begins with the survivor that is suggested, for the `reason` given; `likenesses` tell of the others, in
    their order.
    """

    kind: GroupKind
    survivor: str
    reason: str
    records: tuple[Record, ...]
    likenesses: tuple[Likeness, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A field in which merged records differ: what was kept, and by id what was not. `name` is that of a field, or of
    an entry of the metadata: "metadata.port".
    """

    name: str
    kept: Json
    others: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """What a merge did, or with `dry_run` would do: the record that is left, the ids of those that are deleted, what
    of their text was added to it, in which fields they differ, and how many links were taken over.
    """

    record: Record
    deleted: tuple[str, ...]
    added: tuple[str, ...]
    disagreements: tuple[Disagreement, ...]
    links: int
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What a cluster of records is about.

    `recent` of its records are of the period that was asked for, `before` of the one before, equally long; `questions`
    only ask. `mentions` counts records of others that hold one of its terms. `thin` says where knowledge is thin: "few"
    records though others mention it, "asked" more often than told, "stale".
    """

    label: str
    terms: tuple[str, ...]
    size: int
    recent: int
    before: int
    questions: int
    mentions: int
    first_at: datetime
    last_at: datetime
    thin: tuple[Thin, ...]
    ids: tuple[str, ...]  # the most typical first
    examples: tuple[Record, ...]  # the first of these

    @property
    def growth(self) -> int:
        """How many more records than in the period before."""
        return self.recent - self.before
