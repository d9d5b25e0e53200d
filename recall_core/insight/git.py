"""The commits of a git repository, read by the git program: no shell, and nothing of the repository's own settings that
would run a program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ..errors import InvalidInputError
from ..times import from_micros

FIELD, END = "\x1f", "\x1e"
FORMAT = f"%H{FIELD}%cI{FIELD}%an{FIELD}%s{END}"
SAFE = ("--no-pager", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-c", "core.hooksPath=/dev/null")
TIMEOUT = 60.0  # seconds
SHORT = 10  # hex digits of a commit that are shown


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its hash, when it was made, by whom, and the first line of its message."""

    id: str
    made_at: datetime
    author: str
    subject: str

    @property
    def short_id(self) -> str:
        """The first digits of its hash."""
        return self.id[:SHORT]


def read_commits(repository: str | Path, since: int, until: int) -> list[Commit]:
    """Return the commits of the checked-out branch that were made in [since, until) (microseconds), oldest first.

    Raises InvalidInputError if there is no git program, or no repository at the path.
    """
    path = _find_folder(repository)
    if _run(path, "rev-parse", "--verify", "--quiet", "HEAD", allow_failure=True) == "":
        return []  # nothing was committed yet
    # git compares whole seconds, so a little more is read than is wanted.
    period = (f"--since={from_micros(since).isoformat()}", f"--until={from_micros(until).isoformat()}")
    output = _run(path, "log", "--no-color", "--no-ext-diff", f"--format={FORMAT}", *period)
    commits = [_read_commit(entry.strip("\n")) for entry in output.split(END) if entry.strip()]
    start, end = from_micros(since), from_micros(until)
    return sorted((one for one in commits if start <= one.made_at < end), key=lambda one: (one.made_at, one.id))


def _find_folder(repository: str | Path) -> Path:
    if not isinstance(repository, str | Path) or "\0" in str(repository) or not str(repository):
        raise InvalidInputError(f"git is the path of a repository, not {repository!r}")
    path = Path(repository).expanduser().absolute()
    if not path.is_dir():
        raise InvalidInputError(f"there is no folder {path} to read commits from")
    _run(path, "rev-parse", "--git-dir")
    return path


def _run(path: Path, *arguments: str, allow_failure: bool = False) -> str:
    """Return what git prints. It finds its repository by the path alone, and asks nobody."""
    program = shutil.which("git")
    if program is None:
        raise InvalidInputError("there is no git program on the PATH; install git, or leave out the repository")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            [program, "-C", str(path), *SAFE, *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, env=kept, timeout=TIMEOUT, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise InvalidInputError(f"git could not be run in {path}: {error}") from error
    if done.returncode and not allow_failure:
        raise InvalidInputError(f"git can't read a repository at {path}: {_first_line(done.stderr)}")
    return done.stdout.decode("utf-8", "replace").rstrip("\n") if not done.returncode else ""


def _first_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[0] if lines else "it gave no reason"


def _read_commit(entry: str) -> Commit:
    fields: Sequence[str] = entry.split(FIELD)
    return Commit(fields[0], datetime.fromisoformat(fields[1]), fields[2], FIELD.join(fields[3:]))
