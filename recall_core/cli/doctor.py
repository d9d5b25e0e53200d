"""`recall doctor`: tells the state of a memory file, what is wrong with it, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from recall_core.models import Json

from .opening import open_existing, resolve_model
from .options import db_option, json_option, model_option
from .output import NOTHING, one_line, write, write_json
from .shapes import stats_shape

if TYPE_CHECKING:
    from recall_core.doctor import Checkup


@click.command()
@db_option
@model_option
@json_option
def doctor(db: str | None, model: str | None, as_json: bool) -> None:
    """Tell what state the file is in, and what to do about what is wrong.

    The model is tried on a word. Exit code 1: something wants attention.
    """
    with open_existing(db) as memory:
        found = memory.check(resolve_model(model))
    if as_json:
        write_json(checkup_shape(found))
    else:
        write("\n".join(describe(found)))
    if found.problems:
        click.get_current_context().exit(NOTHING)


def checkup_shape(found: Checkup) -> dict[str, Json]:
    """Return what `recall doctor` tells."""
    shape: dict[str, Json] = {
        name: value for name, value in asdict(found).items() if name not in ("stats", "errors", "problems")
    }
    shape["errors"] = [{"error": error, "chunks": chunks} for error, chunks in found.errors]
    shape["problems"] = [asdict(problem) for problem in found.problems]
    shape["stats"] = stats_shape(found.stats)
    return shape


def describe(found: Checkup) -> Iterator[str]:
    """Return the lines of the report."""
    stats = found.stats
    rows = [
        ("file", f"{stats.path} ({stats.file_bytes:,} bytes, schema {stats.schema_version}, journal {found.journal})"),
        ("disk", f"network file system ({found.network})" if found.network else "local, as far as can be told"),
        ("records", f"{stats.records:,} in {stats.chunks:,} chunks, {stats.sessions:,} sessions"),
        ("model", _model(found.model, found.dimensions, "no vectors yet")),
        ("embedder", _model(found.embedder, found.embedder_dimensions, "none")),
        *(("space", f"{s.name!r}: {s.vectors:,} vectors of {s.dimensions} by {s.model}") for s in stats.spaces),
        (
            "queue",
            f"{stats.pending:,} chunks wait, {stats.leased:,} being embedded, {stats.failed:,} failed, "
            f"{stats.resting:,} of them rest",
        ),
        *(("error", f"{chunks:,} chunks: {error}") for error, chunks in found.errors),
        ("index", f"{stats.vector_index}, {found.unindexed_changes:,} changes not taken up"),
        ("words", f"by {stats.segmenter}; {found.words:,} in the dictionary"),
        *(("note", note) for note in stats.notes),
    ]
    for name, value in rows:
        yield f"{name:<10}{one_line(value)}"
    for problem in found.problems:
        yield f"\nproblem   {one_line(problem.problem)}\n  do      {one_line(problem.advice)}"
    if not found.problems:
        yield "\nall is well"


def _model(model: str | None, dimensions: int | None, nothing: str) -> str:
    return nothing if model is None else f"{model} ({dimensions} dimensions)"
