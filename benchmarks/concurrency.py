"""Measures what happens when many processes write into one memory file, and when one is killed while it writes.

    python benchmarks/concurrency.py [WRITERS [RECORDS [KILLS]]]        8 writers, 500 records each, 20 kills by default

Prints transactions per second and the longest wait of a single call: with records alone, then with vectors (a second
transaction for each record), then for durability="full". Two more processes search all the while. Each run begins with
a fresh file that all processes create at once. Last, a process is killed again and again during a bulk add, and the
file is looked at each time.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

from recall_core import Memory, Settings

READERS = 2
DIMENSIONS = 384


class RandomEmbedder:
    """Gives each text a vector of its own, in no time, so that only the store is measured."""

    model_id = "random"
    dimensions = DIMENSIONS

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        seeds = [zlib.crc32(text.encode()) for text in texts]
        return np.stack([np.random.default_rng(seed).normal(size=DIMENSIONS) for seed in seeds]).astype(np.float32)

    embed_queries = embed_passages


def write(path: str, number: int, records: int, vectors: bool, durability: str, go: Event, sink: Connection) -> None:
    embedder = RandomEmbedder() if vectors else None
    go.wait()
    started = time.perf_counter()
    waits = []
    with Memory.open(path, embedder=embedder, settings=Settings(durability=durability)) as memory:
        for place in range(records):
            before = time.perf_counter()
            memory.add(f"writer {number} says {place}: 数据库配置 {place * 7919}", scope=f"user/{number}")
            waits.append(time.perf_counter() - before)
    sink.send((time.perf_counter() - started, waits))


def read(path: str, go: Event, stop: Event, sink: Connection) -> None:
    go.wait()
    waits = []
    with Memory.open(path, embedder=None) as memory:
        while not stop.is_set():
            before = time.perf_counter()
            memory.search("数据库配置 says", limit=5)
            waits.append(time.perf_counter() - before)
    sink.send(waits)


def measure(path: str, writers: int, records: int, vectors: bool, durability: str) -> str:
    context = get_context("spawn")
    go, stop = context.Event(), context.Event()
    pipes = [context.Pipe(duplex=False) for _ in range(writers + READERS)]
    jobs = [
        context.Process(target=write, args=(path, number, records, vectors, durability, go, pipes[number][1]))
        for number in range(writers)
    ]
    jobs += [context.Process(target=read, args=(path, go, stop, pipe[1])) for pipe in pipes[writers:]]
    for job in jobs:
        job.start()
    time.sleep(3)  # until all have started, so that they open the file together
    go.set()
    written = [source.recv() for source, _ in pipes[:writers]]
    stop.set()
    searched = [wait for source, _ in pipes[writers:] for wait in source.recv()]
    for job in jobs:
        job.join()
    first = max(part[0] for _, part in written)  # loads the segmenter
    waits = sorted(wait for _, part in written for wait in part[1:])
    rate = writers * records * (2 if vectors else 1) / max(seconds for seconds, _ in written)
    with Memory.open(path, embedder=RandomEmbedder() if vectors else None) as memory:
        sound = memory.count() == writers * records and memory.flush() == 0
    return (
        f"{rate:6.0f} txn/s, waits: median {waits[len(waits) // 2] * 1000:.1f} ms, "
        f"99 % {waits[len(waits) * 99 // 100] * 1000:.0f} ms, worst {waits[-1]:.2f} s (first call {first:.2f} s); "
        f"{len(searched)} searches, worst {max(searched):.2f} s; {look(path) if sound else 'RECORDS ARE MISSING'}"
    )


def write_bulk(path: str, number: int) -> None:
    with Memory.open(path, embedder=RandomEmbedder()) as memory:
        while True:
            memory.add_many({"text": f"bulk {number} {place} 批量写入 {place * 31}"} for place in range(256))


def kill(path: str, times: int) -> str:
    context = get_context("spawn")
    rng = random.Random(0)
    counts = []
    for number in range(times):
        job = context.Process(target=write_bulk, args=(path, number))
        job.start()
        log = Path(path + "-wal")
        while not (log.exists() and log.stat().st_size):
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.5))
        job.kill()
        job.join()
        found = look(path)
        with Memory.open(path, embedder=RandomEmbedder()) as memory:
            left = memory.stats().pending
            if found != "sound" or memory.flush() != 0:
                return f"after kill {number + 1}: {found}, {left} chunks without a vector"
            counts.append(memory.count())
    return f"{times} kills, {counts[-1]} records: sound each time"


def look(path: str) -> str:
    """Return "sound", or what the stock sqlite3 finds wrong with the file."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        try:
            ((answer,),) = connection.execute("PRAGMA integrity_check")
            connection.execute("INSERT INTO chunk_fts(chunk_fts, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            return str(error)
    return "sound" if answer == "ok" else answer


def main() -> None:
    given = [int(argument) for argument in sys.argv[1:]]
    writers, records, kills = (*given, *(8, 500, 20)[len(given) :])
    with tempfile.TemporaryDirectory() as folder:
        for name, vectors, durability in (
            ("records", False, "normal"),
            ("records and vectors", True, "normal"),
            ("records, full durability", False, "full"),
        ):
            path = str(Path(folder) / f"{vectors}-{durability}.db")
            print(f"{name:25} {measure(path, writers, records, vectors, durability)}", flush=True)
        print(kill(str(Path(folder) / "killed.db"), kills))


if __name__ == "__main__":
    main()
