"""How long it takes to look over a file and to repair it, how much memory that takes, and how long writers wait.

python benchmarks/doctor.py [RECORDS]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from recall_core import Memory
from recall_core.store import SqliteStore

ROOT = Path(__file__).parent.parent
BATCH = 5_000


def fill(path: str, records: int) -> None:
    """Store records of some forty words with vectors of their own."""
    rng = np.random.default_rng(1)
    words = [word for word in (ROOT / "README.md").read_text("utf-8").split() if word.isalpha()]
    with Memory.open(path, embedder=None) as memory:
        for start in range(0, records, BATCH):
            vectors = rng.normal(size=(BATCH, 384)).astype("f4").tolist()
            memory.add_many(
                {"text": f"{' '.join(rng.choice(words, 40))} 数据库配置 {start + place}", "vector": vectors[place]}
                for place in range(min(BATCH, records - start))
            )


def measure(name: str, memory: Memory, work: Callable[[], object]) -> None:
    """Do work while another thread writes, and print how long it took, and the longest wait of the writer."""
    over, waits = threading.Event(), [0.0]

    def write() -> None:
        while not over.wait(0.02):
            started = time.perf_counter()
            memory.add("written meanwhile")
            waits.append(time.perf_counter() - started)

    writer = threading.Thread(target=write)
    writer.start()
    started = time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    over.set()
    writer.join()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:40}{seconds:8.1f} s   writer waited {max(waits):5.2f} s   peak {peak:5.0f} MB")


def damage(store: SqliteStore, sql: str) -> None:
    """Run SQL that the library never would."""
    with store.database.write() as connection:
        connection.execute(sql)


def main(records: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "memory.db"))
        fill(path, records)
        print(f"{records:,} records, {Path(path).stat().st_size / 1e6:,.0f} MB")
        with Memory.open(path, embedder=None) as memory:
            store = memory._engine.store
            measure("check(quick=True)", memory, lambda: memory.check(quick=True))
            measure("check()", memory, memory.check)
            damage(store, "DELETE FROM chunk_fts_docsize WHERE id % 10 = 0")
            measure("repair(): keyword index", memory, memory.repair)
            damage(store, "UPDATE chunk SET latin = '' WHERE key % 10 = 0")
            measure("repair(): a tenth of the chunks", memory, memory.repair)
            damage(store, "UPDATE code_page SET codes = x''")
            measure("repair(): codes", memory, memory.repair)
            assert not memory.check().damages


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
