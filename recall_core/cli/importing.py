"""`recall import`: the texts of a JSONL file, batch by batch; a broken line costs no other."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from recall_core.errors import InvalidInputError, RecordExistsError
from recall_core.models import NewRecord, OnDuplicate, Record

from .adding import add_record
from .lines import Line, read_line
from .opening import open_for_writing
from .options import db_option, duplicates_option, json_option, model_option, redact_option
from .output import NOTHING, tell, write, write_json
from .progress import Progress, show_progress

if TYPE_CHECKING:
    from recall_core.view import View

STDIN = "-"
MAX_BATCH = 256  # what add_many stores in one transaction: a refused batch has stored nothing
KEPT_FAILURES = 100  # failed lines that --json names


@dataclass(slots=True)
class Tally:
    """What became of the lines."""

    imported: int = 0
    skipped: int = 0
    failed: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)  # the first line numbers and reasons
    ignored: dict[str, None] = field(default_factory=dict)  # keys without a place, in the order of their appearance

    def __str__(self) -> str:
        return f"imported {self.imported}, skipped {self.skipped}, failed {self.failed}"


class Importer:
    """Stores lines below one scope and keeps the tally."""

    def __init__(
        self, view: View, progress: Progress, *, on_duplicate: OnDuplicate, keeps_extra: bool, redacts: bool = False
    ) -> None:
        self.tally = Tally()
        self._view = view
        self._progress = progress
        self._on_duplicate = on_duplicate
        self._keeps_extra = keeps_extra
        self._redacts = redacts

    def run(self, source: Iterable[bytes], batch: int) -> None:
        """Store all lines of `source`, `batch` in one transaction."""
        lines = self._read(source)
        while read := list(islice(lines, batch)):
            self._store(self._drop_taken(read))

    def _read(self, source: Iterable[bytes]) -> Iterator[Line]:
        for number, raw in enumerate(source, 1):
            self._progress.advance(len(raw))
            if not raw.strip():
                continue
            try:
                record, unknown = read_line(raw, on_duplicate=self._on_duplicate, keeps_extra=self._keeps_extra)
            except InvalidInputError as error:
                self._fail(number, str(error))
                continue
            self.tally.ignored.update(dict.fromkeys(unknown))
            yield Line(number, replace(record, redact=True) if self._redacts else record)

    def _drop_taken(self, lines: Sequence[Line]) -> Sequence[Line]:
        """Settle the lines whose ids are already stored, many of them when a file is imported again."""
        ids = [line.record.id for line in lines if line.record.id is not None]
        if not ids or self._on_duplicate == "replace":
            return lines
        taken = {record.id for record in self._view.get(ids)}
        for line in lines:
            if line.record.id in taken:
                self._settle_taken(line)
        return [line for line in lines if line.record.id not in taken]

    def _store(self, lines: Sequence[Line]) -> None:
        """Store lines in one transaction. If one of them is refused, the halves are tried, down to that line."""
        started = datetime.now(UTC)
        try:
            stored = self._write([line.record for line in lines])
        except (InvalidInputError, RecordExistsError) as error:
            if len(lines) > 1:
                middle = len(lines) // 2
                self._store(lines[:middle])
                self._store(lines[middle:])
            elif isinstance(error, RecordExistsError):
                self._settle_taken(lines[0])
            else:
                self._fail(lines[0].number, str(error))
            return
        skipped = self._count_skipped(stored, started)
        self.tally.skipped += skipped
        self.tally.imported += len(stored) - skipped

    def _write(self, records: Sequence[NewRecord]) -> list[Record]:
        return [add_record(self._view, records[0])] if len(records) == 1 else self._view.add_many(records)

    def _count_skipped(self, stored: Sequence[Record], started: datetime) -> int:
        """Count the records that were there before, or came twice: of these the first one is returned again."""
        if self._on_duplicate != "skip":
            return 0
        return len(stored) - len({record.id for record in stored if record.updated_at >= started})

    def _settle_taken(self, line: Line) -> None:
        if self._on_duplicate == "skip":
            self.tally.skipped += 1
        else:
            self._fail(line.number, f"the id {line.record.id!r} is taken (see --on-duplicate)")

    def _fail(self, number: int, reason: str) -> None:
        self.tally.failed += 1
        if len(self.tally.failures) < KEPT_FAILURES:
            self.tally.failures.append((number, reason))
        self._progress.tell(f"line {number}: {reason}")


@click.command("import")
@click.argument("file")
@click.option("--scope", metavar="PATH", default="", help="Put everything below this scope.")
@click.option("--extra-to-metadata", is_flag=True, help="Keep unknown keys as metadata; else they are ignored.")
@redact_option
@duplicates_option
@click.option(
    "--batch",
    metavar="N",
    type=click.IntRange(1, MAX_BATCH),
    default=MAX_BATCH,
    show_default=True,
    help="Lines in one transaction.",
)
@db_option
@model_option
@json_option
def import_lines(
    file: str,
    scope: str,
    extra_to_metadata: bool,
    redact: bool,
    on_duplicate: str,
    batch: int,
    db: str | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Store the texts of a JSONL file.

    FILE has an object with "text" on each line; - is stdin.
    Other keys: id, scope, session, turn, role, time (or created_at), expires_at, tags, metadata, payload, kind, source,
    importance. A line that can't be stored is reported with its number, the rest goes in, and the exit code is 1.
    """
    with (
        open_source(file) as source,
        open_for_writing(db, model) as memory,
        show_progress(find_size(source)) as progress,
    ):
        importer = Importer(
            memory.scoped(scope),
            progress,
            on_duplicate=cast(OnDuplicate, on_duplicate),
            keeps_extra=extra_to_metadata,
            redacts=redact,
        )
        try:
            importer.run(source, batch)
        except BaseException:
            progress.tell(f"stopped early: {importer.tally}")
            raise
    report(importer.tally, as_json)


@contextmanager
def open_source(file: str) -> Iterator[BinaryIO]:
    """Open the file to import, or stdin. Raises InvalidInputError if it can't be read."""
    if file == STDIN:
        yield sys.stdin.buffer
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115
    except OSError as error:
        raise InvalidInputError(f"{file} can't be read: {error.strerror or error}") from None
    with source:
        yield source


def find_size(source: BinaryIO) -> int | None:
    """Return the size of a file in bytes, None for a pipe or a terminal."""
    try:
        status = os.fstat(source.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def report(tally: Tally, as_json: bool) -> None:
    """Print the summary, and end with exit code 1 if a line failed."""
    if tally.ignored:
        tell(f"ignored the keys {', '.join(tally.ignored)}; --extra-to-metadata keeps them")
    if as_json:
        write_json(
            {
                "imported": tally.imported,
                "skipped": tally.skipped,
                "failed": tally.failed,
                "failures": [{"line": line, "reason": reason} for line, reason in tally.failures],
                "ignored": list(tally.ignored),
            }
        )
    else:
        write(str(tally))
    if tally.failed:
        click.get_current_context().exit(NOTHING)
