"""`recall import`: the texts of a file, batch by batch; a broken line costs no other."""

from __future__ import annotations

import sys
from typing import BinaryIO, cast, get_args

import click

from recall_core.models import OnDuplicate
from recall_core.transfer.entries import Damaged
from recall_core.transfer.formats import AUTO, FORMATS
from recall_core.transfer.importing import MAX_BATCH, OnTaken
from recall_core.transfer.input import Input, open_input
from recall_core.transfer.report import Imported

from .opening import open_for_writing
from .options import db_option, json_option, model_option, redact_option
from .output import NOTHING, tell, write, write_json
from .progress import show_records
from .shapes import import_shape
from .stopping import stopping

STDIN = "-"


@click.command("import")
@click.argument("file")
@click.option(
    "--format",
    type=click.Choice((AUTO, *FORMATS)),
    default=AUTO,
    show_default=True,
    help="What the file is; by default that is found out.",
)
@click.option("--scope", metavar="PATH", default="", help="Put everything below this scope.")
@click.option("--since", metavar="TIME", help="Leave out what was made before, such as 2026-01-31.")
@click.option("--dry-run", is_flag=True, help="Say what would be stored, and store nothing.")
@click.option("--extra-to-metadata", is_flag=True, help="Keep unknown keys as metadata; else they are ignored.")
@redact_option
@click.option(
    "--on-duplicate",
    type=click.Choice((*get_args(OnDuplicate), "error")),
    default="keep",
    show_default=True,
    help="What to do with a text that its scope holds already; replace also takes a taken id.",
)
@click.option(
    "--batch",
    metavar="N",
    type=click.IntRange(1, MAX_BATCH),
    default=MAX_BATCH,
    show_default=True,
    help="Records in one transaction.",
)
@db_option
@model_option
@json_option
def import_file(
    file: str,
    format: str,
    scope: str,
    since: str | None,
    dry_run: bool,
    extra_to_metadata: bool,
    redact: bool,
    on_duplicate: str,
    batch: int,
    db: str | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Store the texts of a file: JSON lines, or what another program has kept.

    FILE may be compressed with gzip; - is stdin. Lines of JSON are objects with "text", and may have id, scope,
    session, turn, role, time (or created_at), expires_at, tags, metadata, payload, kind, source, importance. What can't
    be stored is reported with its line, the rest goes in, and the exit code is 1. What is there already is not stored
    again.
    """
    with (
        open_source(file) as source,
        open_for_writing(db, model) as memory,
        show_records("importing") as (progress, say),
        stopping(lambda: "the same command goes on"),
    ):
        imported = memory.import_(
            source,
            format=format,
            scope=scope,
            since=since,
            dry_run=dry_run,
            extra_to_metadata=extra_to_metadata,
            redact=redact or None,
            on_duplicate=cast(OnTaken, on_duplicate),
            batch=batch,
            progress=progress,
            notice=lambda damage: say(explain(damage)),
            stopped=lambda early: say(f"stopped early: {summarise(early)}"),
        )
    report(imported, as_json)


def open_source(file: str) -> Input:
    """Open the file to import, or stdin. Raises InvalidInputError if it can't be read."""
    return Input("stdin", None, cast(BinaryIO, sys.stdin.buffer)) if file == STDIN else open_input(file)


def explain(damage: Damaged) -> str:
    """Return what went wrong, and where."""
    return damage.reason if damage.line is None else f"line {damage.line}: {damage.reason}"


def summarise(imported: Imported) -> str:
    """Return the counts in one line."""
    stored = imported.added + imported.replaced
    skipped = imported.present + sum(imported.skipped.values())
    verb = "would import" if imported.dry_run else "imported"
    return f"{verb} {stored}, skipped {skipped}, failed {imported.failed}"


def report(imported: Imported, as_json: bool) -> None:
    """Print the summary, and end with exit code 1 if something failed."""
    if imported.ignored:
        tell(f"ignored the keys {', '.join(imported.ignored)}; --extra-to-metadata keeps them")
    if as_json:
        write_json(import_shape(imported))
    else:
        for reason, count in imported.skipped.items():
            tell(f"left out {count}: {reason}")
        write(summarise(imported))
    if imported.failed:
        click.get_current_context().exit(NOTHING)
