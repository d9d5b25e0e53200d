"""What a forked process does and returns, for the tests of the core and of the adapters."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

LIMIT = 120  # seconds, after which a child hangs

forks = [
    pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="forks are not safe there"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def in_child(work: Callable[[], Any]) -> Any:
    """Return what a function returns in a forked process, as JSON knows it."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send_bytes(json.dumps(work()).encode()))
    child.start()
    assert ours.poll(LIMIT), "the child hangs"
    answer = json.loads(ours.recv_bytes())
    child.join(LIMIT)
    return answer
