"""What goes to stdout and stderr: UTF-8 whatever the locale, plain in a pipe, no control characters."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from recall_core.patterns import compile_late

if TYPE_CHECKING:
    from rich.console import Console

    from recall_core.models import Json

NOTHING = 1  # exit codes
UNUSABLE_INPUT = 2
UNUSABLE_FILE = 3
INTERRUPTED = 130

DEFAULT_WIDTH = 100

_CONTROLS = compile_late("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ESCAPED_IN_JSON = compile_late("[\x7f-\x9f\u2028\u2029]")


def prepare_streams() -> None:
    """Let stdout and stderr take any text: in UTF-8 unless PYTHONIOENCODING says otherwise."""
    # A stream that the caller has closed is None; what is written to it goes nowhere, what is read from it is empty.
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")
    encoding = None if os.environ.get("PYTHONIOENCODING") else "utf-8"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def write(text: str) -> None:
    """Write text and a line end to stdout, at once: a reader that went away is noticed here and not while exiting."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write_json(document: Json) -> None:
    """Write one JSON document to stdout."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    write(_ESCAPED_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def tell(message: str) -> None:
    """Write a line to stderr, the name of the program before it."""
    sys.stderr.write(f"recall: {one_line(message)}\n")
    sys.stderr.flush()


def one_line(text: str) -> str:
    """Return a text as one line that is safe to show."""
    return visible(" ".join(text.split()))


def visible(text: str) -> str:
    """Return a text in which control characters, with which it could steer a terminal, are replaced by U+FFFD."""
    return _CONTROLS.sub("\ufffd", text)


def terminal_width() -> int:
    """Return how many columns there are, 100 where nobody says."""
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns


def is_styled() -> bool:
    """Tell whether stdout gets colours and tables: it is a terminal, or FORCE_COLOR says so."""
    return bool(os.environ.get("FORCE_COLOR")) or is_terminal(sys.stdout)


def is_terminal(stream: IO[str]) -> bool:
    """Tell whether a stream is a terminal that can draw."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def open_console() -> Console:
    """Return the terminal to draw on."""
    from rich.console import Console

    return Console(force_terminal=True, highlight=False, markup=False, emoji=False, width=terminal_width())
