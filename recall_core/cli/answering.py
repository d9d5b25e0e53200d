"""Answers an event of Claude Code. Nothing here needs click, which takes as long to load as a search."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

from recall_core.hooks import EVENTS
from recall_core.hooks.asking import ask_resident, find_socket

from .opening import locate, open_hook_memory
from .output import prepare_streams

RECALLING = ("session-start", "user-prompt-submit")
ASK_SECONDS = 0.2  # of the time for a prompt
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
        raw, project = sys.stdin.buffer.read(), os.environ.get("CLAUDE_PROJECT_DIR")
        place = find_socket(folder, locate(db)) if event in RECALLING else None
        output = ask_resident(place, raw, project, ASK_SECONDS) if place and event == "user-prompt-submit" else None
        if output is not None:
            _print(output)
        else:
            _answer_here(event, db, raw, project, folder, place)
    except Exception as error:
        note_fault(f"{event}: {type(error).__name__}: {error}")


def note_fault(message: str) -> None:
    """Note in the hooks' log what went wrong."""
    from recall_core.hooks.running import write_log

    write_log(_find_folder(), message)


def _answer_here(event: str, db: str | None, raw: bytes, project: str | None, folder: Path, place: Path | None) -> None:
    """Answer in this process, and leave one behind that answers the next prompts."""
    from recall_core.hooks.running import run_hook

    path = locate(db).absolute()
    exists = path.exists()

    def leave() -> None:
        if place and exists:
            from recall_core.hooks.resident import start_resident

            start_resident(place, path, folder)

    output = run_hook(
        event,
        raw,
        lambda wait: open_hook_memory(db, wait),
        exists=exists,
        folder=folder,
        project=project,
        budget=_read_budget(),
        at_end=leave,
    )
    _print(output)
    leave()


def _print(output: str) -> None:
    if output:
        sys.stdout.write(output + "\n")
        sys.stdout.flush()


def _read_budget() -> float | None:
    """Return how many seconds RECALL_HOOK_BUDGET gives, None if it gives none."""
    try:
        seconds = float(os.environ.get("RECALL_HOOK_BUDGET", "")) / 1000
    except ValueError:
        return None
    return seconds if 0 < seconds <= LONGEST_BUDGET else None


def _find_folder() -> Path:
    if given := os.environ.get("RECALL_HOOK_DIR"):
        return Path(given).absolute()
    from platformdirs import user_state_path

    try:
        return user_state_path("dualrecall", appauthor=False) / "hooks"
    except RuntimeError:  # nobody has a home: there is no log then
        return Path(os.devnull) / "hooks"
