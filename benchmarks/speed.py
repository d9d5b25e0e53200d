"""How fast a memory is with vectors given, beside a scan over the same vectors in numpy, in one run.

    python benchmarks/speed.py [--sizes 1000 10000 100000 1000000] [--dimensions 384] [--queries 100]

Texts are short, Chinese and English by turns, made from a seed, with word frequencies like those of a language; vectors
lie in clusters, as embeddings do. A search is hybrid: it asks for four words of a stored text, its vector lies near
that text's. The time to embed a query is not in. A cold start is a new process that opens the file and searches once.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recall_core import Memory, NewRecord

Vectors = NDArray[np.float32]

SEED = 20_260_101
CLUSTERS = 300
SCOPE_SHARE = 100  # one record in so many lies in the small scope
FILTER_SHARE = 20  # one record in so many passes the filter
ASKED_WORDS = 4
COLD = """
import time
started = time.perf_counter()
from recall_core import Memory
imported = time.perf_counter()
memory = Memory.open({path!r}, embedder=None)
opened = time.perf_counter()
memory.search({text!r}, scope={scope!r}, vector={vector!r})
print(imported - started, opened - imported, time.perf_counter() - opened)
"""
SYLLABLES = "部署服务数据库配置磁盘日志网关重启备份监控告警用户咖啡会议项目版本发布回滚缓存队列索引权限密码端口"
STEMS = [
    "deploy",
    "serv",
    "data",
    "conf",
    "disk",
    "log",
    "gate",
    "start",
    "back",
    "monit",
    "alert",
    "user",
    "coff",
    "meet",
    "proj",
    "vers",
    "rele",
    "roll",
    "cache",
    "queue",
]
ENDINGS = ["", "s", "er", "ing", "ed", "ment", "able", "ion"]


def make_texts(count: int, rng: random.Random) -> Iterator[str]:
    """Yield short texts of words whose frequencies fall like those of a language (Zipf)."""
    chinese = ["".join(rng.choices(SYLLABLES, k=2)) for _ in range(3_000)]
    english = [rng.choice(STEMS) + rng.choice(ENDINGS) + rng.choice(STEMS) for _ in range(3_000)]
    weights = [1 / (rank + 5) for rank in range(3_000)]
    cumulated = np.cumsum(weights).tolist()
    for number in range(count):
        if number % 2:
            yield "".join(rng.choices(chinese, cum_weights=cumulated, k=10)) + f" {number}"
        else:
            yield " ".join(rng.choices(english, cum_weights=cumulated, k=8)) + f" {number}"


def make_vectors(count: int, dimensions: int) -> Vectors:
    """Return unit vectors, shape (count, dimensions), around common centres."""
    rng = np.random.default_rng(SEED)
    centres = rng.normal(size=(CLUSTERS, dimensions)).astype(np.float32)
    vectors = np.empty((count, dimensions), dtype=np.float32)
    for start in range(0, count, 50_000):
        stop = min(start + 50_000, count)
        noise = rng.normal(size=(stop - start, dimensions)).astype(np.float32)
        block = centres[rng.integers(CLUSTERS, size=stop - start)] + noise
        vectors[start:stop] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return vectors


def make_records(texts: Sequence[str], vectors: Vectors) -> Iterator[NewRecord]:
    """Yield the records with their vectors; some in a small scope, some that pass the filter."""
    for number, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
        yield NewRecord(
            text=text,
            scope="small" if number % SCOPE_SHARE == 7 else "large",
            metadata={"kind": number % FILTER_SHARE},
            vector=vector,  # type: ignore[arg-type]
        )


def make_queries(texts: Sequence[str], rng: random.Random) -> list[str]:
    """Return questions of a few words of each text."""
    queries = []
    for text in texts:
        words = text.split()
        if len(words) > ASKED_WORDS:
            queries.append(" ".join(rng.sample(words[:-1], ASKED_WORDS)))
        else:  # Chinese: words of two characters, not set apart
            pairs = [words[0][start : start + 2] for start in range(0, len(words[0]), 2)]
            queries.append("".join(rng.sample(pairs, ASKED_WORDS)))
    return queries


def report(name: str, run: Callable[[int], object], count: int) -> float:
    """Print and return the median time of `run` in milliseconds."""
    times = []
    for number in range(count):
        started = time.perf_counter()
        run(number)
        times.append((time.perf_counter() - started) * 1000)
    p50, p95 = np.percentile(times, [50, 95])
    print(f"  {name:34} p50 {p50:8.2f} ms   p95 {p95:8.2f} ms", flush=True)
    return float(p50)


def megabytes() -> float:
    """Return the peak resident memory of this process; its parent's is not in it, as it is in getrusage on Linux."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)


def measure(size: int, dimensions: int, queries: int, folder: Path) -> None:
    """Fill a file of `size` records and print what it takes and how fast it answers."""
    rng = random.Random(SEED)
    texts = list(make_texts(size, rng))
    vectors = make_vectors(size, dimensions)
    chosen = [rng.randrange(size) for _ in range(queries)]
    asked = make_queries([texts[number] for number in chosen], rng)
    noise = np.random.default_rng(SEED + 1).normal(size=(queries, dimensions)).astype(np.float32)
    near = vectors[chosen] + 0.3 * noise / np.sqrt(dimensions)
    print(f"{size:,} records", flush=True)
    base = report("numpy float32 scan, top 10", lambda n: scan(vectors, near[n]), queries)
    path = folder / f"{size}.db"
    payload = sum(len(text.encode()) for text in texts) + vectors.nbytes
    with Memory.open(path, embedder=None) as memory:
        started = time.perf_counter()
        memory.add_many(make_records(texts, vectors))
        seconds = time.perf_counter() - started
        file_bytes = memory.stats().file_bytes
        print(f"  bulk add {size / seconds:,.0f} records/s; {file_bytes / size:,.0f} bytes a record on disk, ", end="")
        print(f"{file_bytes / payload:.2f} x text and vectors; peak memory {megabytes():,.0f} MB", flush=True)
        measure_searches(memory, asked, near, base)
        count = min(queries, size)
        report("single add", lambda n: memory.add(f"{texts[n]} again", vector=vectors[n]), count)  # type: ignore[arg-type]
        report("search right after an add", lambda n: add_and_search(memory, asked[n], near[n]), queries // 4)
        print(
            f"  peak memory {megabytes():,.0f} MB, of which {vectors.nbytes / 1e6:,.0f} MB numpy's vectors", flush=True
        )
    for scope in ("", "small"):
        print_cold_start(path, asked[0], near[0], scope)


def scan(vectors: Vectors, query: Vectors) -> NDArray[np.intp]:
    """Return the ten nearest, in order."""
    products = vectors @ query
    best = np.argpartition(-products, min(10, len(products) - 1))[:10]
    return best[np.argsort(-products[best])]


def measure_searches(memory: Memory, asked: Sequence[str], near: Vectors, base: float) -> None:
    """Print the times of searches with and without a scope and a filter."""
    kinds: dict[str, dict[str, object]] = {
        "hybrid search, everything": {},
        "hybrid search, a scope of 1 %": {"scope": "small"},
        "hybrid search, a filter of 5 %": {"where": {"kind": 3}},
        "keyword search, everything": {"mode": "keyword"},
        "semantic search, everything": {"mode": "semantic"},
    }
    for name, arguments in kinds.items():
        memory.search(asked[0], vector=near[0], **arguments)  # type: ignore[arg-type]
        p50 = report(name, lambda n, a=arguments: memory.search(asked[n], vector=near[n], **a), len(asked))  # type: ignore[misc]
        if name == "hybrid search, everything":
            print(f"    {p50 / base:.2f} x the scan", flush=True)


def add_and_search(memory: Memory, text: str, vector: Vectors) -> None:
    memory.add(text + " new", vector=vector)  # type: ignore[arg-type]
    memory.search(text, vector=vector)  # type: ignore[arg-type]


def print_cold_start(path: Path, text: str, vector: Vectors, scope: str) -> None:
    """Print how long a new process takes to import, to open the file and to search it once."""
    script = COLD.format(path=str(path), text=text, scope=scope, vector=vector.tolist())
    runs = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        runs.append([1000 * float(part) for part in done.stdout.split()])
    imported, opened, searched = np.median(runs, axis=0)
    where = f"the scope {scope!r}" if scope else "everything"
    print(
        f"  cold: import {imported:.0f} ms, open {opened:.0f} ms, first search of {where} {searched:.0f} ms", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--queries", type=int, default=100)
    arguments = parser.parse_args()
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as folder:
            measure(size, arguments.dimensions, arguments.queries, Path(folder))


if __name__ == "__main__":
    main()
