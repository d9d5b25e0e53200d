"""`recall embed`: give vectors to what still waits for one; interrupted, the next run goes on where it ended."""

from __future__ import annotations

import click

from .opening import open_for_embedding
from .options import db_option, json_option, model_option
from .output import NOTHING, write, write_json
from .progress import show_count
from .stopping import stopping


@click.command()
@click.option("--retry-failed", is_flag=True, help="Try those again, too, that rest after too many failures.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="Embed at most so many chunks.")
@db_option
@model_option
@json_option
def embed(retry_failed: bool, limit: int | None, db: str | None, model: str | None, as_json: bool) -> None:
    """Embed the texts that still wait for a vector.

    Each batch is stored at once, so an interrupted run loses nothing, and several may share the work. Exit code 1: some
    chunks could not be embedded; recall doctor says why.
    """
    done = 0
    with open_for_embedding(db, model) as memory, show_count("embedding", quiet=as_json) as show:
        before = memory.stats()
        total = before.pending - (0 if retry_failed else before.resting)
        total = total if limit is None else min(total, limit)

        def note(now_done: int) -> None:
            nonlocal done
            done = now_done
            show(done, max(total, done))

        with stopping(lambda: f"{done} of {total} chunks are embedded; the same command goes on"):
            memory.flush(retry_failed=retry_failed, limit=limit, progress=note)
        after = memory.stats()
    found = {"embedded": done, "pending": after.pending, "failed": after.failed, "resting": after.resting}
    if as_json:
        write_json(found)
    else:
        write(f"embedded {done} chunks; {after.pending} wait, {after.failed} failed, {after.resting} of them rest")
    if after.failed or (after.pending and limit is None):
        click.get_current_context().exit(NOTHING)
