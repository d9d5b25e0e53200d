"""Ways to call the `recall` command: in this process, which is quick, or in one of its own, as users do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from support import LIMIT

from recall_core import Memory, NewRecord
from recall_core.cli.app import app

DEPLOY = "项目部署统一使用 Docker Compose，不再使用虚拟机"
COFFEE = "She takes her coffee without sugar"
DISK = "磁盘满了就清理 /var/log 下的旧日志"

# A command that waits, once a quarter of its work is done, to be interrupted: it can't be over before.
WAITING = """
import sys, threading
from recall_core import Memory
from recall_core.cli import main

name = sys.argv.pop(1)
work = getattr(Memory, name)

def work_and_wait(memory, *arguments, progress, **named):
    def tell(done, total):
        progress(done, total)
        if 4 * done >= total:
            threading.Event().wait()
    return work(memory, *arguments, progress=tell, **named)

setattr(Memory, name, work_and_wait)
main()
"""


def run(db: Path, *arguments: str, given: str | bytes | None = None, **environment: str | None) -> Result:
    """Run a command in this process."""
    clean = {"RECALL_DB": str(db), "RECALL_MODEL": None, "FORCE_COLOR": None, "NO_COLOR": None, "COLUMNS": "100"}
    return CliRunner().invoke(app, list(arguments), input=given, env={**clean, **environment})


def run_json(db: Path, *arguments: str, given: str | bytes | None = None) -> Any:
    """Run a command in this process with --json and return what it prints."""
    result = run(db, *arguments, "--json", given=given)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def run_process(
    db: Path, *arguments: str | bytes, given: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in its own process, without the caller's locale and colours."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT", "TEMP") if name in os.environ}
    command = [sys.executable, "-c", "from recall_core.cli import main; main()", *arguments]
    return subprocess.run(
        command,
        input=given,
        capture_output=True,
        env={**kept, "RECALL_DB": str(db), "RECALL_HOOK_RESIDENT": "0", **environment},
        timeout=LIMIT,
    )


def start_waiting(db: Path, work: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a command that calls the method `work` of a memory, and waits in it until it is interrupted."""
    command = [sys.executable, "-c", WAITING, work, *arguments, "--db", str(db)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")


def store(db: Path, *records: NewRecord | str) -> list[str]:
    """Store records without a model and return their ids."""
    with Memory.open(db, embedder=None) as memory:
        news = [NewRecord(text=record) if isinstance(record, str) else record for record in records]
        return [record.id for record in memory.add_many(news)]


def texts(records: Sequence[dict[str, Any]]) -> list[str]:
    """Return the texts of records in their JSON shape."""
    return [record["text"] for record in records]
