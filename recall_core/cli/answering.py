"""Answers an event of Claude Code. Nothing here needs click, which takes as long to load as a search."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

from recall_core.hooks.running import EVENTS, run_hook, write_log

from .opening import locate, open_hook_memory
from .output import prepare_streams

LONGEST_BUDGET = 600.0  # seconds; Claude Code waits no longer


def answer_call(arguments: list[str]) -> bool:
    """Answer if these are the arguments of a hook, as `recall install` writes them, and tell whether they are."""
    match arguments:
        case ["hook", event] if event in EVENTS:
            db = os.environ.get("RECALL_DB")
        case ["hook", event, "--db", db] if event in EVENTS:
            pass
        case _:
            return False
    prepare_streams()
    answer(event, db)
    return True


def answer(event: str, db: str | None) -> None:
    """Answer an event whose JSON is read from standard input. Whatever goes wrong is in the log and nowhere else."""
    gc.disable()  # the process is gone before there would be anything to collect
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that are never used
    folder = _find_folder()
    try:
        output = run_hook(
            event,
            sys.stdin.buffer.read(),
            lambda wait: open_hook_memory(db, wait),
            exists=locate(db).exists(),
            folder=folder,
            project=os.environ.get("CLAUDE_PROJECT_DIR"),
            budget=_read_budget(),
        )
        if output:
            sys.stdout.write(output + "\n")
            sys.stdout.flush()
    except Exception as error:
        write_log(folder, f"{event}: {type(error).__name__}: {error}")


def note_misuse(message: str) -> None:
    """Note in the log that the command was called in a way that it does not know."""
    write_log(_find_folder(), message)


def _read_budget() -> float | None:
    """Return how many seconds RECALL_HOOK_BUDGET gives, None if it gives none."""
    try:
        seconds = float(os.environ.get("RECALL_HOOK_BUDGET", "")) / 1000
    except ValueError:
        return None
    return seconds if 0 < seconds <= LONGEST_BUDGET else None


def _find_folder() -> Path:
    if given := os.environ.get("RECALL_HOOK_DIR"):
        return Path(given)
    from platformdirs import user_state_path

    try:
        return user_state_path("dualrecall", appauthor=False) / "hooks"
    except RuntimeError:  # nobody has a home: there is no log then
        return Path(os.devnull) / "hooks"
