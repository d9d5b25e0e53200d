"""Forks a process that has files open, as a server with workers does, and says whether the workers can use them.

A program of its own: a process that has used a model must not fork.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from cases import CASES

warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads


def in_worker(work: Callable[[], object]) -> None:
    """Do something in a forked process, and end as that does if it fails."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            sys.stdout.flush()
            os._exit(1 if sys.exc_info()[0] else 0)
    if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(code)


def say(name: str, found: str) -> None:
    sys.stdout.write(f"{name}: {found!r}\n")


originals = {name: case.make(Path(f"{name}.db")) for name, case in CASES.items()}
for name, case in CASES.items():
    in_worker(lambda name=name, case=case: case.fill(originals[name]))
    in_worker(lambda name=name, case=case: say(name, case.find(originals[name])))
for name, case in CASES.items():
    say(f"{name} in the parent", case.find(originals[name]))
