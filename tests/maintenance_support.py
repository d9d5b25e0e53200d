"""What the tests of maintenance share: a look at terms and changes, and commands that are killed.

Run as a script it is the worker whose children are killed: `python maintenance_support.py WORK`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Self

import apsw
import pytest
from damage_support import CHUNKED
from store_support import embedder, run_python, use_small_index
from support import LIMIT

from recall_core import Memory


def find_term(path: Path, term: str) -> list[str]:
    """Return the ids of the records that the keyword index of a closed file has as holding a term, as it is."""
    sql = """
    SELECT record.id FROM chunk_fts JOIN chunk ON chunk.key = chunk_fts.rowid JOIN record ON record.key = record_key
    WHERE chunk_fts MATCH ? ORDER BY record.id
    """
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [id for (id,) in connection.execute(sql, (f'"{term}"',))]


def last_change(memory: Memory) -> int:
    """Return the number of the last change that the file has noted."""
    return memory._engine.store.blocks.last_change()


def changed_ids(memory: Memory, since: int) -> set[str]:
    """Return the ids of the records whose chunks were written since a change."""
    keys = memory._engine.store.blocks.changed_since(since)[1]
    with memory._engine.store.database.read() as connection:
        rows = connection.execute("SELECT key, id FROM record").fetchall()
    return {id for key, id in rows if key in keys}


def fill(path: Path, count: int = 300) -> None:
    """Store records with vectors, Chinese and English; every tenth says 灰度发布平台."""
    with Memory.open(path, embedder=embedder()) as memory:
        memory.add_many(make_record(number) for number in range(count))


def found(memory: Memory, **arguments: object) -> list[list[tuple[str, object]]]:
    """Return what a few searches find, and how relevant."""
    queries = ("灰度发布平台", "note 17", "项目部署", "76032")
    return [
        [(hit.record.id, pytest.approx(hit.relevance)) for hit in memory.search(query, limit=20, **arguments)]
        for query in queries
    ]


def make_record(number: int) -> dict[str, object]:
    """Return the record of this number."""
    middle = "灰度发布平台上线了" if number % 10 == 0 else "项目部署"
    return {"id": f"{number:05}", "text": f"note {number}: {middle} {number * 7919 % 104729}", "tags": ["note"]}


class Killer:
    """Runs a command on files, in a process of its own each time, which kills itself (-9) at a chosen moment.

    Moments are counted while the command works: every few hundred steps of SQLite's machine, before each commit, and
    with each progress that is told. The processes are forked from a worker that has loaded everything beforehand.
    """

    def __init__(self, work: str) -> None:
        self.work = work
        self._worker = run_python([__file__, work], stdin=subprocess.PIPE)

    def run(self, path: Path, moment: int = 0) -> tuple[bool, int]:
        """Run the command on a file; tell whether it was killed at this moment (0: never), and how many there were."""
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.write(f"{moment} {path}\n")
        self._worker.stdin.flush()
        status, moments = map(int, self._worker.stdout.readline().split())
        assert status in (0, -signal.SIGKILL), self._worker.communicate()[1]
        return status != 0, moments

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the worker; it must not have complained."""
        _, err = self._worker.communicate(timeout=LIMIT)
        assert (self._worker.returncode, err) == (0, "")


WORKS = {
    "cleanup": lambda memory, path, tell: memory.cleanup(older_than=timedelta(days=30), progress=tell),
    "cleanup for good": lambda memory, path, tell: memory.cleanup(
        older_than=timedelta(days=30), hard=True, progress=tell
    ),
    "vacuum": lambda memory, path, tell: memory.vacuum(progress=tell),
    "reindex": lambda memory, path, tell: memory.reindex(progress=tell),
    "backup": lambda memory, path, tell: memory.backup(f"{path}.copy", force=True, progress=tell),
    "dict add": lambda memory, path, tell: memory.add_words("灰度发布平台", progress=tell),
}
REPAIR = {"repair": lambda memory, path, tell: memory.repair(progress=tell)}


def _serve(work: str) -> None:
    patch = pytest.MonkeyPatch()
    use_small_index(patch)
    for name, size in {"reindexing.BATCH": 16, "cleaning.BATCH": 16, "store.upkeep.COPIED_PAGES": 8}.items():
        patch.setattr(f"recall_core.{name}", size)
    with Memory.open(":memory:", embedder=embedder()) as memory:  # loads what is loaded late
        memory.add("热身 warm up")
        memory.search("热身")
    for line in sys.stdin:
        moment, path = line.rstrip("\n").split(" ", 1)
        heard, told = os.pipe()
        child = os.fork()
        if child == 0:
            _run(work, path, int(moment), told)
        os.close(told)
        _, status = os.waitpid(child, 0)
        moments = os.read(heard, 64).decode() or "0"
        os.close(heard)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)} {moments}\n")
        sys.stdout.flush()


def _run(work: str, path: str, moment: int, told: int) -> None:
    """Do the work, and end this process."""
    count, code, begun = 0, 1, False

    def tick(*_: object) -> bool:
        nonlocal count
        count += begun
        if begun and count == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    def watch(connection: apsw.Connection) -> None:
        connection.set_progress_handler(tick, 500)
        connection.set_commit_hook(tick)

    try:
        apsw.connection_hooks.append(watch)
        with Memory.open(path, embedder=embedder(), settings=CHUNKED if work in REPAIR else None) as memory:
            begun = True
            {**WORKS, **REPAIR}[work](memory, path, tick)
        os.write(told, str(count).encode())
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
