"""A large file after much was deleted: how much smaller it gets, how long that takes, and that nothing else changes.

    python benchmarks/maintenance.py [--size 100000] [--dimensions 384] [--queries 100]

A file of short texts with vectors given (see speed.py) loses 30 % of its records, for good or into the trash, whose
time then passes; then it is cleaned up and vacuumed. Searches are compared with those before the deletion in a scope
that loses nothing, and with those right after it in the other scopes and in the whole file. The exit code is 1 unless
the file got smaller by a quarter, is sound, and finds the same records with the same relevance.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from speed import SEED, Vectors, make_queries, make_texts, make_vectors

from recall_core import Memory, NewRecord

MADE, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
SCOPES = 10  # the first one loses nothing
SHARE, LEAST = 0.3, 0.25
MEGABYTE = 1e6

Found = list[list[tuple[str, float]]]


class Clock:
    """Shows a time that can be moved on."""

    def __init__(self) -> None:
        self.seconds = NOW.timestamp()

    def __call__(self) -> float:
        return self.seconds


def make_records(texts: Sequence[str], vectors: Vectors, doomed: set[int]) -> Iterator[NewRecord]:
    """Yield the records with their vectors; those that are to be deleted say so."""
    for number, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
        yield NewRecord(
            text=text,
            id=f"{number:08}",
            scope=f"scope/{number % SCOPES}",
            metadata={"doomed": number in doomed},
            created_at=MADE,
            vector=vector,  # type: ignore[arg-type]
        )


def search(path: Path, clock: Clock, asked: Sequence[str], near: Vectors, scopes: Sequence[str]) -> Found:
    """Return what each query finds in each scope, by a memory opened for it."""
    with Memory.open(path, embedder=None, clock=clock) as memory:
        return [
            [
                (hit.record.id, round(hit.relevance, 9))
                for hit in memory.search(text, scope=scope, vector=vector, now=NOW)  # type: ignore[arg-type]
            ]
            for scope in scopes
            for text, vector in zip(asked, near, strict=True)
        ]


def say_same(name: str, before: Found, after: Found) -> bool:
    """Print and tell whether searches found the same as before."""
    ids = sum([id for id, _ in one] == [id for id, _ in two] for one, two in zip(before, after, strict=True))
    same = sum(one == two for one, two in zip(before, after, strict=True))
    print(f"  {name:44} {same} of {len(before)} the same, {ids} the same records", flush=True)
    return same == len(before)


def timed(name: str, path: Path, work: Callable[[], object]) -> object:
    """Do some work, print how long it took and how large the file is then."""
    started = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - started
    size = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    print(f"  {name:44} {seconds:6.1f} s   {size / MEGABYTE:7.1f} MB   {found}", flush=True)
    return found


def faults(path: Path) -> list[str]:
    """Return what SQLite finds wrong with a file, and the keyword index with its texts."""
    with closing(sqlite3.connect(path)) as connection:
        found = [line for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
        connection.execute("INSERT INTO chunk_fts(chunk_fts, rank) VALUES ('integrity-check', 1)")
    return found


def measure(source: Path, hard: bool, asked: Sequence[str], near: Vectors) -> bool:
    """Delete, clean up and vacuum a copy of a file; tell whether all is as it should be."""
    path = source.with_name("hard.db" if hard else "soft.db")
    shutil.copy(source, path)
    print("deleted for good" if hard else "deleted into the trash", flush=True)
    clock, full = Clock(), path.stat().st_size
    spared, others = ["scope/0"], [f"scope/{number}" for number in range(1, SCOPES)]
    before = search(path, clock, asked, near, spared)
    with Memory.open(path, embedder=None, clock=clock) as memory:
        timed("forget 30 %", path, lambda: memory.forget(where={"doomed": True}, hard=hard).count)
    inside, whole = search(path, clock, asked, near, others), search(path, clock, asked, near, [""])
    clock.seconds += 31 * 86_400
    with Memory.open(path, embedder=None, clock=clock) as memory:
        timed("cleanup", path, lambda: f"{memory.cleanup().purged} purged")
        timed("vacuum", path, lambda: "settled" if memory.vacuum().settled else "not settled")
        problems = memory.check().problems
    shrunk = 1 - path.stat().st_size / full
    wrong = [*faults(path), *problems]
    print(
        f"  {full / MEGABYTE:,.1f} MB became {path.stat().st_size / MEGABYTE:,.1f}: {shrunk:.1%} less; faults: {wrong}"
    )
    same = [
        say_same("in a scope that lost nothing, as before", before, search(path, clock, asked, near, spared)),
        say_same("in the other scopes, as after the deletion", inside, search(path, clock, asked, near, others)),
        say_same("in the whole file, as after the deletion", whole, search(path, clock, asked, near, [""])),
    ]
    path.unlink()
    return all(same) and shrunk >= LEAST and not wrong


def main() -> int:
    """Make the file and measure both ways to delete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--queries", type=int, default=100)
    arguments = parser.parse_args()
    rng = random.Random(SEED)
    texts, vectors = list(make_texts(arguments.size, rng)), make_vectors(arguments.size, arguments.dimensions)
    candidates = [number for number in range(arguments.size) if number % SCOPES]
    doomed = set(rng.sample(candidates, int(SHARE * arguments.size)))
    survivors = [number for number in range(arguments.size) if number not in doomed]
    chosen = rng.sample(survivors, arguments.queries)
    asked, near = make_queries([texts[number] for number in chosen], rng), vectors[chosen]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "full.db"
        with Memory.open(path, embedder=None) as memory:
            timed(
                f"{arguments.size:,} records added", path,
                lambda: len(memory.add_many(make_records(texts, vectors, doomed))),
            )  # fmt: skip
        results = [measure(path, hard, asked, near) for hard in (True, False)]  # both, whatever the first one says
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
