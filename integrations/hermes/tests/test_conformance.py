"""The conformance drive: the real discovery, manager and hooks, with nothing of the host replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from recall_hermes.installing import install

DRIVE = Path(__file__).parent / "hermes_drive.py"
# The drive's own budgets are 200 and 500 ms, which a busy machine exceeds; benchmarks measure, tests only tell what
# hangs. What is found must not depend on time either, neither on the provider's budget nor on the host's.
BUDGETS = [
    *("--sync-budget-ms", "240000", "--prefetch-budget-ms", "120000"),
    *("--set", "recall_hermes.recalling:BUDGET=60", "--set", "agent.memory_manager:_SYNC_DRAIN_TIMEOUT_S=60"),
]


def test_the_provider_passes_the_strict_drive(home):
    install(home)
    done = subprocess.run(
        [sys.executable, str(DRIVE), "--provider", "recall", "--home", str(home), "--strict", *BUDGETS],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "required failures: 0; warnings: 0" in done.stdout
