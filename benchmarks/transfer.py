"""How long export and import take, and how much memory: `python benchmarks/transfer.py [RECORDS]`.

Each step is a process of its own, so that its peak of memory is its own. No model: vectors are random ones.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from recall_core import Memory, NewRecord

RECORDS = 100_000
WORDS = [
    "部署",
    "服务",
    "数据库",
    "索引",
    "慢查询",
    "回滚",
    "the",
    "build",
    "cache",
    "staging",
    "server",
    "runs",
    "Debian",
]
MIB = 1 << 20


def make_records(count: int) -> Iterator[NewRecord]:
    chance = random.Random(7)
    for number in range(count):
        text = " ".join(chance.choices(WORDS, k=30))
        vector = [chance.gauss(0, 1) for _ in range(128)]
        yield NewRecord(text=f"{number} {text}", scope=f"user/{number % 50}", vector=vector, space="host")


def fill(folder: Path, count: int) -> None:
    with Memory.open(folder / "from.db", embedder=None) as memory:
        memory.add_many(make_records(count))


def write_lines(folder: Path, count: int) -> None:
    chance = random.Random(7)
    with (folder / "lines.jsonl").open("w", encoding="utf-8") as file:
        for number in range(count):
            text = " ".join(chance.choices(WORDS, k=2000))  # 12 KB: the file is much larger than what may be held
            file.write(json.dumps({"text": f"{number} {text}"}, ensure_ascii=False) + "\n")


def export(folder: Path, vectors: bool) -> None:
    with Memory.open(folder / "from.db", embedder=None) as memory:
        memory.export(folder / "export.jsonl", vectors=vectors)


def load(folder: Path, source: str, name: str, **options: object) -> None:
    with Memory.open(folder / name, embedder=None) as memory:
        print(memory.import_(folder / source, **options).added, end=" added, ")


STEPS = {
    "fill": lambda folder, count: fill(folder, count),
    "export": lambda folder, _: export(folder, vectors=False),
    "export --vectors": lambda folder, _: export(folder, vectors=True),
    "import": lambda folder, _: load(folder, "export.jsonl", "to.db"),
    "import again": lambda folder, _: load(folder, "export.jsonl", "to.db"),
    "write lines": lambda folder, count: write_lines(folder, count),
    "import lines --dry-run": lambda folder, _: load(folder, "lines.jsonl", "dry.db", dry_run=True),
}


def run_step(name: str, folder: Path, count: int) -> None:
    started = time.perf_counter()
    STEPS[name](folder, count)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sizes = {path.name: path.stat().st_size / MIB for path in folder.glob("*.jsonl")}
    shown = ", ".join(f"{file} {size:.0f} MiB" for file, size in sizes.items())
    print(f"{name}: {seconds:.1f} s, {count / seconds:,.0f} records/s, peak {peak:.0f} MiB ({shown})", flush=True)


def main() -> None:
    if len(sys.argv) == 4:
        run_step(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    with tempfile.TemporaryDirectory() as folder:
        for name in STEPS:
            size = count // 10 if "lines" in name else count
            subprocess.run([sys.executable, __file__, name, folder, str(size)], check=True)


if __name__ == "__main__":
    main()
