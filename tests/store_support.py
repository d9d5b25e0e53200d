"""What the tests of the store share: worker processes that write, read or are killed, and a look at the whole file.

Run as a script it is such a worker: `python store_support.py WORK PATH NUMBER`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support import LIMIT, HashedEmbedder, wait_until

from recall_core import Memory
from recall_core.scope_cache import ScopeCache
from recall_core.store.nearest import CodeIndex
from recall_core.store.vectors import stack_vectors
from recall_core.vectors import normalize

HERE = Path(__file__).parent
DIMENSIONS = 16
WRITES = 300  # records that a worker writes


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker said at its end."""

    count: int
    worst: float  # seconds that one call took at most
    seconds: float  # that all calls took


def start(work: str, path: Path, number: int = 0) -> subprocess.Popen[str]:
    """Start a worker on the file at `path`; it says "ready", and begins with `release`."""
    return run_python([str(HERE / "store_support.py"), work, str(path), str(number)])


def run_python(arguments: list[str], stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Start this Python with the tests' folder on its path."""
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"},
    )


def beside(path: Path, *statements: str) -> None:
    """Run SQL on a file through the stock sqlite3 of another process, as one transaction.

    Not in this process: while a memory has the file open here, two copies of SQLite would not see each other's locks.
    """
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.close()"
    out, err = run_python(["-c", code, str(path), "; ".join(["BEGIN", *statements, "COMMIT"])]).communicate()
    assert (out, err) == ("", "")


def release(path: Path, *workers: subprocess.Popen[str]) -> None:
    """Let the workers on this file begin, once these of them are ready."""
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n", worker.communicate()[1]
    path.with_name("go").touch()


def finish(worker: subprocess.Popen[str]) -> Report:
    """Wait for a worker and return its report; it must not have said anything else."""
    out, err = worker.communicate(timeout=LIMIT)
    assert (worker.returncode, err) == (0, ""), err
    count, worst, seconds = out.split()[-3:]
    return Report(int(count), float(worst), float(seconds))


def embedder() -> HashedEmbedder:
    """Return the embedder of these tests' files."""
    return HashedEmbedder(DIMENSIONS)


def use_small_index(patch: pytest.MonkeyPatch, index_from: int = 50, most_chunks: int = 20) -> None:
    """Let codes serve from a few dozen vectors on, not from thousands, and be asked in scopes of a few dozen chunks."""
    patch.setitem(CodeIndex.__init__.__kwdefaults__, "index_from", index_from)
    patch.setitem(ScopeCache.__init__.__kwdefaults__, "most_chunks", most_chunks)


def faults(path: Path | str) -> list[str]:
    """Look at a whole memory file through the stock sqlite3 and say what is wrong with it; [] is what we want."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        found = [f"integrity_check: {line}" for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
        found += [f"foreign key: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
        try:
            connection.execute("INSERT INTO chunk_fts(chunk_fts, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            found.append(f"full-text index: {error}")
        connection.rollback()
        ((version,),) = connection.execute("PRAGMA user_version")
        for name, sql in (ORPHANS | (SINCE_VERSION_4 if version > 3 else {})).items():
            sql = sql.format(embeds="embeds" if version > 2 else "1")
            found += [f"{name}: {row[0]}" for row in connection.execute(sql)]
    return found


ORPHANS = {
    "chunk without record": "SELECT key FROM chunk WHERE record_key NOT IN (SELECT key FROM record)",
    "vector without chunk": "SELECT key FROM embedding WHERE chunk_key NOT IN (SELECT key FROM chunk)",
    "pending without chunk": "SELECT chunk_key FROM pending WHERE chunk_key NOT IN (SELECT key FROM chunk)",
    "change in a space that is gone": "SELECT space_id FROM vector_change WHERE space_id NOT IN (SELECT id FROM space)",
    "record without chunk": """
        SELECT id FROM record WHERE indexed > 0 AND key NOT IN (SELECT record_key FROM chunk)""",
    "chunk missing in the full-text index": "SELECT key FROM chunk EXCEPT SELECT id FROM chunk_fts_docsize",
    "chunk left in the full-text index": "SELECT id FROM chunk_fts_docsize EXCEPT SELECT key FROM chunk",
    "chunk with neither vector nor turn": """
        SELECT key FROM chunk WHERE {embeds}
        AND key NOT IN (SELECT chunk_key FROM embedding UNION SELECT chunk_key FROM pending)""",
}
SINCE_VERSION_4 = {
    "vector without trash": "SELECT trash_key FROM trash_vector WHERE trash_key NOT IN (SELECT key FROM trash)",
    "link without record": """
        SELECT from_key, to_key FROM link
        WHERE from_key NOT IN (SELECT key FROM record UNION SELECT record_key FROM trash)
        OR to_key NOT IN (SELECT key FROM record UNION SELECT record_key FROM trash)""",
}


def vector_faults(memory: Memory) -> list[str]:
    """Say where the vectors, the chunks and the codes of an open memory with no pending chunks disagree."""
    found = []
    with memory._engine.store.database.read() as connection:
        chunks = {key for (key,) in connection.execute("SELECT key FROM chunk WHERE embeds")}
        for space, name, dimensions in connection.execute("SELECT id, name, dimensions FROM space").fetchall():
            rows = connection.execute("SELECT chunk_key, vector FROM embedding WHERE space_id = ?", (space,)).fetchall()
            if name == "memory" and chunks != (with_vector := {key for key, _ in rows}):
                found.append(f"{name}: chunks {chunks ^ with_vector} have no vector, or it no chunk")
            changes = {
                key for (key,) in connection.execute("SELECT chunk_key FROM vector_change WHERE space_id=?", (space,))
            }
            keys, vectors = stack_vectors(rows, dimensions)
            centres = connection.execute("SELECT centre FROM code_index WHERE space_id = ?", (space,)).fetchall()
            if centres:
                above = normalize(vectors) > np.frombuffer(centres[0][0], "<f4")
                expected = {key: tuple(bits) for key, bits in zip(keys, above.tolist(), strict=True)}
                codes = read_codes(connection, space, dimensions)
                wrong = {key for key in expected.keys() | codes.keys() if expected.get(key) != codes.get(key)}
                if wrong - changes:
                    found.append(f"{name}: codes differ in {wrong - changes}")
            elif set(keys) - changes:
                found.append(f"{name}: {set(keys) - changes} were taken up without codes")
    return found


def read_codes(connection: sqlite3.Connection, space: int, dimensions: int) -> dict[int, tuple[bool, ...]]:
    """Return the bits of all codes of a space by chunk key, read as docs/storage-format.md describes them."""
    size = (dimensions + 63) // 64 * 8
    found = {}
    sql = "SELECT number, present, codes FROM code_page WHERE space_id = ?"
    for number, present, codes in connection.execute(sql, (space,)).fetchall():
        places = [place for place in range(1024) if present[place // 8] >> place % 8 & 1]
        assert (len(present), len(codes)) == (128, len(places) * size)
        for turn, place in enumerate(places):
            code = codes[turn * size : (turn + 1) * size]
            found[1024 * number + place] = tuple(bool(code[bit // 8] >> bit % 8 & 1) for bit in range(dimensions))
    return found


def _work(work: str, path: str, number: int) -> None:
    if work == "bulk":
        use_small_index(pytest.MonkeyPatch())
    with Memory.open(":memory:", embedder=embedder()) as memory:  # loads the segmenter
        memory.add("热身 warm up")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    wait_until(Path(path).with_name("go").exists)
    waits = []
    with Memory.open(path, embedder=None if work == "read" else embedder()) as memory:
        steps = {"write": _write, "read": _read, "bulk": _write_bulk}[work](memory, number)
        started = before = time.perf_counter()
        for _ in steps:
            now = time.perf_counter()
            waits.append(now - before)
            before = now
    sys.stdout.write(f"{len(waits)} {max(waits)} {before - started}")


def _write(memory: Memory, number: int) -> Iterator[object]:
    for place in range(WRITES):
        yield memory.add(f"writer {number} says {place}: 部署 {place * 7919}", scope=f"user/{number}")


def _read(memory: Memory, number: int) -> Iterator[object]:
    stop = Path(memory.stats().path).with_name("stop")
    while True:
        yield memory.search("部署 says", limit=5)
        if stop.exists():
            return


def _write_bulk(memory: Memory, number: int) -> Iterator[object]:
    while True:
        yield memory.add_many({"text": f"bulk {number} {place} 批量写入 {place * 31}"} for place in range(64))
        yield memory.delete([record.id for record in memory.records(limit=8)])


if __name__ == "__main__":
    _work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
