"""What became of an export or an import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .entries import Damaged

KEPT_FAILURES = 100  # of those that failed, so many are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What could not be imported: the line or row, where it is known, and why."""

    reason: str
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did, or would do, if it was a dry run.

    `read` records were found in the file: `added` or `replaced` are stored now, `present` were there before, `skipped`
    were left out on purpose, by their reasons, and `failed` could not be read or stored; `failures` are the first
    hundred of these. `ignored` names fields that have no place in a record. `sessions` got a title, `words` are new in
    the dictionary, `links` lie between records, and `vectors` were taken over, so that nothing has to be embedded.
    """

    format: str
    read: int = 0
    added: int = 0
    replaced: int = 0
    present: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    failures: tuple[Failure, ...] = ()
    ignored: tuple[str, ...] = ()
    sessions: int = 0
    words: int = 0
    links: int = 0
    vectors: int = 0
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export wrote: the numbers of its lines by what they hold."""

    records: int = 0
    sessions: int = 0
    words: int = 0
    links: int = 0
    vectors: int = 0


@dataclass(slots=True)
class Tally:
    """Counts while an import runs."""

    format: str
    dry_run: bool
    read: int = 0
    added: int = 0
    replaced: int = 0
    present: int = 0
    failed: int = 0
    sessions: int = 0
    words: int = 0
    links: int = 0
    vectors: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    ignored: dict[str, None] = field(default_factory=dict)  # in the order of their appearance

    def skip(self, reason: str) -> None:
        """Count what is left out on purpose."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def fail(self, damage: Damaged) -> None:
        """Count what could not be read or stored."""
        self.failed += 1
        if len(self.failures) < KEPT_FAILURES:
            self.failures.append(Failure(reason=damage.reason, line=damage.line))

    def report(self) -> Imported:
        """Return the counts."""
        return Imported(
            format=self.format,
            read=self.read,
            added=self.added,
            replaced=self.replaced,
            present=self.present,
            skipped=dict(self.skipped),
            failed=self.failed,
            failures=tuple(self.failures),
            ignored=tuple(self.ignored),
            sessions=self.sessions,
            words=self.words,
            links=self.links,
            vectors=self.vectors,
            dry_run=self.dry_run,
        )
