"""`recall hook`: what Claude Code calls at the events of a session."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import click

from recall_core.hooks.running import EVENTS, run_hook, write_log

from .opening import locate, open_hook_memory
from .options import db_option


@click.command()
@click.argument("event", type=click.Choice(EVENTS))
@db_option
def hook(event: str, db: str | None) -> None:
    """Answer an event of Claude Code, whose JSON is read from standard input.

    Whatever happens the exit code is 0; what went wrong is in the log.
    """
    gc.disable()  # the process is gone before there would be anything to collect
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that are never used
    folder = _find_folder()
    try:
        milliseconds = os.environ.get("RECALL_HOOK_BUDGET")
        output = run_hook(
            event,
            sys.stdin.buffer.read(),
            lambda wait: open_hook_memory(db, wait),
            exists=locate(db).exists(),
            folder=folder,
            project=os.environ.get("CLAUDE_PROJECT_DIR"),
            budget=float(milliseconds) / 1000 if milliseconds else None,
        )
        if output:
            sys.stdout.write(output + "\n")
            sys.stdout.flush()
    except Exception as error:
        write_log(folder, f"{event}: {type(error).__name__}: {error}")


def _find_folder() -> Path:
    if given := os.environ.get("RECALL_HOOK_DIR"):
        return Path(given)
    from platformdirs import user_state_path

    return user_state_path("dualrecall", appauthor=False) / "hooks"
