"""What maintenance has done, in numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexed:
    """What making indexes anew did.

    The texts of `records` were cut into terms again, and those of `changed` were found by other terms before. The codes
    of `vectors` were made anew. `added` and `removed` are the words that came to the dictionary or left it. A dry run
    counts the records that would be cut, and writes nothing.
    """

    records: int = 0
    changed: int = 0
    vectors: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedUp:
    """How many records were deleted, by the first reason that held for each, and how many of `sessions` as a whole.

    `purged` are the records that were in the trash for longer than the grace period and are gone now. A dry run counts
    what would go, and deletes nothing.
    """

    expired: int = 0
    old: int = 0
    idle: int = 0
    unimportant: int = 0
    over_cap: int = 0
    sessions: int = 0
    purged: int = 0
    dry_run: bool = False

    @property
    def records(self) -> int:
        """How many records were deleted, for whatever reason."""
        return self.expired + self.old + self.idle + self.unimportant + self.over_cap


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuumed:
    """The size of the file together with its log, in bytes, before and after.

    `settled` is False if other programs went on reading an old state of the file: then the log is emptied, and the file
    cut, by the next checkpoint after they are done.
    """

    bytes_before: int
    bytes_after: int
    settled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """A finished and verified backup: where it is, how large, and what it holds."""

    path: str
    file_bytes: int
    records: int
    chunks: int
    vectors: int
