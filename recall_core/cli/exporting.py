"""`recall export`: memories as JSON lines, to a file or to stdout."""

from __future__ import annotations

import sys
from typing import BinaryIO, cast

import click

from recall_core.errors import InvalidInputError

from .opening import open_existing
from .options import db_option, json_option, parse_object, scope_option, session_option, where_option
from .output import write, write_json
from .progress import show_records
from .shapes import export_shape

STDOUT = "-"


@click.command("export")
@click.argument("file", default=STDOUT)
@scope_option
@session_option
@where_option
@click.option("--vectors", is_flag=True, help="Write the vectors, too, so that none has to be made again.")
@db_option
@json_option
def export(
    file: str, scope: str, session: str | None, where: str | None, vectors: bool, db: str | None, as_json: bool
) -> None:
    """Write memories as JSON lines, which recall import reads.

    FILE is compressed if its name ends in .gz; without one, or with -, they go to stdout. The file has the records with
    their ids and times, session titles, links and the dictionary; docs/transfer.md describes it line by line. The same
    memories always give the same file.
    """
    if as_json and file == STDOUT:
        raise InvalidInputError("--json says what was written to a file; give a FILE, or leave --json out")
    condition = parse_object(where, "--where")
    with open_existing(db) as memory, show_records("exporting", quiet=file == STDOUT) as (progress, _):
        target = cast(BinaryIO, sys.stdout.buffer) if file == STDOUT else file
        exported = memory.export(
            target, scope=scope, where=condition, session=session, vectors=vectors, progress=progress
        )
    if as_json:
        write_json(export_shape(exported))
    elif file != STDOUT:
        write(f"exported {exported.records}")
