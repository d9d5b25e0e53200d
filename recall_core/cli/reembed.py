"""`recall reembed`: the whole file goes over to another model; interrupted, it goes on where it ended."""

from __future__ import annotations

import dataclasses

import click

from recall_core.errors import InvalidInputError

from .opening import open_existing, resolve_model
from .options import db_option, json_option
from .output import NOTHING, tell, write, write_json
from .progress import show_count
from .stopping import stopping

BUILT_IN = "default"


@click.command()
@click.option(
    "--model",
    metavar="MODEL",
    help='What to move to: as in the other commands, or "default", the built-in one.',
)
@click.option("--abort", is_flag=True, help="Drop what an unfinished move has done, and stay with the old model.")
@db_option
@json_option
def reembed(model: str | None, abort: bool, db: str | None, as_json: bool) -> None:
    """Move the file to another model: all texts are embedded anew.

    Searches go on with the old vectors until the new ones are complete. Interrupted at whatever moment, the file works
    as before, and the same command goes on where it ended. Meanwhile the file holds both sets of vectors; the room of
    the old ones is used again afterwards. Programs that have the file open with the old model find by keywords until
    they open it with the new one. Exit code 1: the model refused some texts.
    """
    if (model is None) != abort:
        raise InvalidInputError("give either --model, what to move to, or --abort")
    if model is None:
        drop(db, as_json)
    else:
        move(db, model, as_json)


def move(db: str | None, model: str, as_json: bool) -> None:
    """Move the file to a model, and tell what was done."""
    done, chunks = 0, 0

    def note(now_done: int, now_chunks: int) -> None:
        nonlocal done, chunks
        done, chunks = now_done, now_chunks
        show(now_done, now_chunks)

    def explain() -> str:
        return f"{done} of {chunks} chunks are embedded, the file works as before; the same command goes on"

    with open_existing(db) as memory, show_count("embedding", quiet=as_json) as show, stopping(explain):
        try:
            found = memory.reembed(resolve_model(None if model == BUILT_IN else model), progress=note)
        except Exception:
            if chunks:
                tell(f"stopped; {explain()}")
            raise
    if as_json:
        write_json(dataclasses.asdict(found))
    elif not found.chunks:
        write(f"the file has the model {found.model} already")
    else:
        write(
            f"moved to {found.model}: {found.chunks} chunks, {found.embedded} texts embedded, "
            f"{found.recut} records cut anew, {found.refused} chunks refused"
        )
    if found.refused:
        tell(f"{found.refused} chunks are found by keywords only; recall embed tries them again")
        click.get_current_context().exit(NOTHING)


def drop(db: str | None, as_json: bool) -> None:
    """Drop an unfinished move."""
    with open_existing(db) as memory:
        model = memory.abort_reembed()
    if as_json:
        write_json({"dropped": model})
    elif model is None:
        write("there is no unfinished move")
    else:
        write(f"dropped the unfinished move to {model}; the file keeps the vectors that it has")
