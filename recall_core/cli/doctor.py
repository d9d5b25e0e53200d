"""`recall doctor`: tells the state of a memory file, what is wrong with it, and what to do; repairs what it can."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from recall_core.errors import EmbedderMismatchError, InvalidInputError, StoreError
from recall_core.models import Json
from recall_core.times import MICROS_PER_SECOND

from .opening import find_existing, open_existing, resolve_model
from .options import db_option, json_option, model_option
from .output import NOTHING, one_line, tell, write, write_json
from .shapes import stats_shape

if TYPE_CHECKING:
    from recall_core.damage import Damage, Repaired
    from recall_core.doctor import Checkup
    from recall_core.memory import Memory

BUSY_TIMEOUT = 30.0


@click.command()
@db_option
@model_option
@json_option
@click.option("--quick", is_flag=True, help="Leave out what reads the whole file.")
@click.option("--repair", is_flag=True, help="Make again what is damaged and can be made from the records.")
@click.option("--dry-run", is_flag=True, help="With --repair: only say what would be done.")
def doctor(db: str | None, model: str | None, as_json: bool, quick: bool, repair: bool, dry_run: bool) -> None:
    """Tell what state the file is in, and what to do about what is wrong.

    Every part of the file is compared with what it was made from, without writing to it; a file that can't be opened
    is examined as far as possible. The model is tried on a word.

    With --repair the indexes, chunks and codes are made again where they are damaged. Records, links and vectors that
    were brought are never changed: their damage is named. Interrupted, the same command goes on.

    Exit code 1: something wants attention, or is left after a repair.
    """
    if dry_run and not repair:
        raise InvalidInputError("--dry-run is for --repair; without it nothing is written anyway")
    if quick and repair:
        raise InvalidInputError("--repair looks at the whole file; leave --quick out")
    path = str(find_existing(db))
    well = _repair(path, model, dry_run, as_json) if repair else _examine(path, model, quick, as_json)
    if not well:
        click.get_current_context().exit(NOTHING)


def _examine(path: str, model: str | None, quick: bool, as_json: bool) -> bool:
    """Tell the state of a file; return whether all is well."""
    from recall_core.doctor import add_damages
    from recall_core.integrity import examine_file

    damages, complete = examine_file(path, BUSY_TIMEOUT, _now, quick=quick)
    try:
        with open_existing(path) as memory:
            found = memory.check(resolve_model(model), quick=quick or complete)
    except StoreError as error:
        if not damages:
            raise
        return _tell_unopened(damages, error, as_json)
    if complete:
        known = {damage.kind for damage in found.damages}
        found = add_damages(found, [damage for damage in damages if damage.kind not in known])
    if as_json:
        write_json(checkup_shape(found))
    else:
        write("\n".join(describe(found)))
    return not found.problems


def _tell_unopened(damages: Sequence[Damage], error: StoreError, as_json: bool) -> bool:
    from recall_core.doctor import describe_damage

    if as_json:
        shapes: list[Json] = [damage_shape(damage) for damage in damages]
        problems: list[Json] = [asdict(describe_damage(damage)) for damage in damages]
        write_json({"stats": None, "error": str(error), "damages": shapes, "problems": problems})
    else:
        write(f"the file can't be opened: {one_line(str(error))}")
        write("\n".join(describe_damages(damages)))
    return False


def _repair(path: str, model: str | None, dry_run: bool, as_json: bool) -> bool:
    """Repair a file, or say what would be done; return whether nothing is left to do."""
    from recall_core.integrity import examine_file, plan_repair, repair_file

    note = None if as_json else write
    if dry_run:
        damages, _ = examine_file(path, BUSY_TIMEOUT, _now)
        return _tell_repaired(plan_repair(damages), as_json)
    done: tuple[str, ...] = ()
    damages, _ = examine_file(path, BUSY_TIMEOUT, _now, quick=True)
    if any(damage.repair for damage in damages):
        done = repair_file(path, BUSY_TIMEOUT, _now, note).done
    try:
        memory = _open(path, model)
    except StoreError as error:
        first = repair_file(path, BUSY_TIMEOUT, _now, note)
        done += first.done
        if first.left:
            tell(str(error))
            return _tell_repaired(replace(first, done=done), as_json)
        memory = _open(path, model)
    with memory:
        found = memory.repair(progress=note)
    return _tell_repaired(replace(found, done=done + found.done), as_json)


def _open(path: str, model: str | None) -> Memory:
    """Open a file with the model that it was cut for; without one if it is another's."""
    from recall_core.memory import Memory
    from recall_core.settings import Settings

    settings = Settings(backfill_interval=math.inf)
    try:
        return Memory.open(path, embedder=resolve_model(model), settings=settings)
    except EmbedderMismatchError as error:
        tell(f"{error}; what has to be cut anew is cut without it")
        return Memory.open(path, embedder=None, settings=settings)


def _tell_repaired(found: Repaired, as_json: bool) -> bool:
    if as_json:
        left: list[Json] = [damage_shape(damage) for damage in found.left]
        done: list[Json] = list(found.done)
        write_json({"dry_run": found.dry_run, "done": done, "left": left, "pending": found.pending})
    else:
        if found.dry_run:
            write("\n".join(f"would repair: {one_line(line)}" for line in found.done) or "there is nothing to repair")
        elif not found.done:
            write("there was nothing to repair")
        if found.left:
            write("\n".join(describe_damages(found.left)))
        if found.pending > 0:
            write(f"{found.pending:,} chunks wait for a vector: run recall embed")
    return not found.left and not (found.dry_run and found.done)


def checkup_shape(found: Checkup) -> dict[str, Json]:
    """Return what `recall doctor` tells."""
    shape: dict[str, Json] = {
        name: value for name, value in asdict(found).items() if name not in ("stats", "errors", "problems", "damages")
    }
    shape["errors"] = [{"error": error, "chunks": chunks} for error, chunks in found.errors]
    shape["damages"] = [damage_shape(damage) for damage in found.damages]
    shape["problems"] = [asdict(problem) for problem in found.problems]
    shape["stats"] = stats_shape(found.stats)
    return shape


def damage_shape(damage: Damage) -> dict[str, Json]:
    """Return damage as JSON."""
    return {**asdict(damage), "records": list(damage.records)}


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


def describe_damages(damages: Sequence[Damage]) -> Iterator[str]:
    """Return the lines that tell of damage."""
    from recall_core.doctor import describe_damage

    for damage in damages:
        told = describe_damage(damage)
        label = "problem" if damage.repair else "damaged"
        yield f"\n{label}   {one_line(told.problem)}\n  do      {one_line(told.advice)}"


def _now() -> int:
    return int(time.time() * MICROS_PER_SECOND)


def _model(model: str | None, dimensions: int | None, nothing: str) -> str:
    return nothing if model is None else f"{model} ({dimensions} dimensions)"
