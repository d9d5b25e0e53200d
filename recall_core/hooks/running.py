"""Runs one hook: within its time, and whatever happens with exit code 0 and nothing but the hook's JSON on stdout."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .payload import Payload, read_payload

if TYPE_CHECKING:
    from ..memory import Memory

BUDGETS = {  # seconds, the start of the process included; somewhat less than the client waits
    "session-start": 4.0,
    "user-prompt-submit": 0.28,
    "post-tool-use": 50.0,  # in the background
    "pre-compact": 8.0,
    "session-end": 8.0,
}
WRITERS_WAIT = 4.0  # seconds that a hook waits for others who write
LOG_BYTES = 1_000_000
LONGEST_START = 30.0  # seconds; a longer one is a clock of another kind

_NAMES = {"session-start": "SessionStart", "user-prompt-submit": "UserPromptSubmit"}

OpenMemory = Callable[[float], AbstractContextManager["Memory"]]  # given the seconds to wait for other writers


def run_hook(
    event: str,
    raw: bytes,
    open_memory: OpenMemory,
    *,
    exists: bool,
    folder: Path,
    project: str | None,
    budget: float | None = None,
    at_end: Callable[[], object] = lambda: None,
) -> str:
    """Return what the hook prints, "" for nothing and for what fails, which is in the log. If the time is over, the
    process ends there and then. `at_end` is called before, as it is otherwise.
    """
    limit = budget if budget is not None else BUDGETS[event]
    with _within(limit, event, folder, at_end):
        try:
            return answer_event(event, raw, open_memory, exists=exists, folder=folder, project=project)
        except Exception as error:
            write_log(folder, f"{event}: {type(error).__name__}: {error}")
            return ""


def answer_event(
    event: str,
    raw: bytes,
    open_memory: OpenMemory,
    *,
    exists: bool,
    folder: Path,
    project: str | None,
    here: str | None = None,
) -> str:
    """Return what the hook prints, "" for nothing. `folder` is where the log lies, and what sessions were shown;
    `exists` says whether there is a memory to read, `here` where the hook was called. Raises whatever goes wrong.
    """
    payload = read_payload(raw, project, here)
    if event not in _NAMES:
        _capture(event, payload, open_memory)
        return ""
    block = _recall(event, payload, open_memory, folder) if exists else ""
    if not block:
        return ""
    output = {"hookEventName": _NAMES[event], "additionalContext": block}
    return json.dumps({"suppressOutput": True, "hookSpecificOutput": output}, ensure_ascii=False)


def write_log(folder: Path, message: str) -> None:
    """Add a line to the log; if that is not possible either, nobody is told."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / "hooks.log"
        if file.exists() and file.stat().st_size > LOG_BYTES:
            file.replace(file.with_suffix(".log.1"))
        with file.open("a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {' '.join(message.split())[:500]}\n")


def _recall(event: str, payload: Payload, open_memory: OpenMemory, folder: Path) -> str:
    from .recalling import recall_for_prompt, recall_for_session

    recall = recall_for_session if event == "session-start" else recall_for_prompt
    with open_memory(0.1) as memory:
        return recall(memory, payload, folder)


def _capture(event: str, payload: Payload, open_memory: OpenMemory) -> None:
    if event == "post-tool-use" and payload.tool == "Bash" and "commit" not in str(payload.tool_input.get("command")):
        return  # as most commands: nothing is loaded for them
    from .capturing import WRITING_TOOLS, capture_session, capture_tool

    if event == "post-tool-use" and payload.tool not in (*WRITING_TOOLS, "Bash"):
        return
    capture = capture_tool if event == "post-tool-use" else capture_session
    with open_memory(WRITERS_WAIT) as memory:
        capture(memory, payload)


@contextlib.contextmanager
def _within(seconds: float, event: str, folder: Path, at_end: Callable[[], object]) -> Iterator[None]:
    """End the process, well, if the block takes longer, the time since the process was started included."""
    over = threading.Lock()

    def end() -> NoReturn:
        over.acquire()
        write_log(folder, f"{event}: gave up after {seconds:g} s")
        at_end()
        os._exit(0)

    timer = threading.Timer(max(seconds - _find_age(), 0.01), end)
    timer.daemon = True
    timer.start()
    logging.getLogger("recall_core").setLevel(logging.CRITICAL)  # a hook's stderr is shown to the user
    try:
        yield
    finally:
        timer.cancel()
        if not over.acquire(blocking=False):  # it is about to end
            time.sleep(60)


def _find_age() -> float:
    """Return how many seconds ago this process was started; where the system does not say, what the processor has spent
    on it, which is less.
    """
    spent = time.process_time()
    with contextlib.suppress(OSError, ValueError, IndexError, AttributeError):
        started = int(Path("/proc/self/stat").read_text("ascii", "replace").rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
        return age if spent <= age <= LONGEST_START else spent
    return spent
