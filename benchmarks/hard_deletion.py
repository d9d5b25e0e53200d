"""What deletion costs, and how much more it costs to leave no word of what was deleted in the file.

    python benchmarks/hard_deletion.py [--sizes 1000 10000 100000]

Texts are of 60 English words and 40 Chinese characters, one chunk each, with word frequencies like those of a language,
and a vector of 384 dimensions each. Times are the best of `--repeats` calls, "its CPU" is the time that a hard deletion
takes the processor; "longest wait" is how long a writer in another process waited at most for its turn meanwhile.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from recall_core import Memory, NewRecord

SEED = 20_260_101
DIMENSIONS = 384
SYLLABLES = ("ra", "ne", "mi", "to", "lu", "sa", "ve", "ki", "po", "du")
WORDS = [f"{a}{b}{number}" for a in SYLLABLES for b in SYLLABLES for number in range(200)]
HAN = [chr(0x4E00 + number) for number in range(3000)]

OTHER_WRITER = """
import sys, time
from recall_core import Memory
with Memory.open(sys.argv[1], embedder=None) as memory:
    longest = 0.0
    print("ready", flush=True)
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        begun = time.monotonic()
        memory.touch("0")
        longest = max(longest, time.monotonic() - begun)
        time.sleep(0.01)
    print(longest)
"""


def make_records(size: int, rng: random.Random) -> Iterator[NewRecord]:
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    vectors = np.random.default_rng(SEED).normal(size=(size, DIMENSIONS)).astype(np.float32)
    for number in range(size):
        text = " ".join(rng.choices(WORDS, weights, k=60)) + "".join(rng.choices(HAN, k=40))
        yield NewRecord(text=text, id=str(number), vector=vectors[number])


def take(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    begun = clock()
    call()
    return clock() - begun


def measure(size: int, repeats: int, folder: Path) -> dict[str, float]:
    path = folder / f"{size}.db"
    rng = random.Random(SEED)
    with Memory.open(path, embedder=None) as memory:
        memory.add_many(make_records(size, rng))
        memory.delete("1", hard=True)  # what adding has left to merge is not counted
        ids = iter(rng.sample(range(2, size), 8 * repeats + 200))
        found = {
            "soft": min(take(lambda: memory.delete(str(next(ids)))) for _ in range(repeats)),
            "hard": min(take(lambda: memory.delete(str(next(ids)), hard=True)) for _ in range(repeats)),
        }
        found["hard, CPU"] = min(
            take(lambda: memory.delete(str(next(ids)), hard=True), time.process_time) for _ in range(repeats)
        )
        hundred = [str(next(ids)) for _ in range(100)]
        found["hard, 100 at once"] = take(lambda: memory.delete(hundred, hard=True))
        memory.update(str(next(ids)), text="changed")
        found["close after a change"] = take(memory.close)
    with Memory.open(path, embedder=None) as memory:
        writer = subprocess.Popen(
            [sys.executable, "-c", OTHER_WRITER, str(path), str(2 + 4 * found["hard"])],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        memory.delete(str(next(ids)), hard=True)
        found["longest wait"] = float(writer.communicate()[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    names = ("chunks", "soft", "hard", "its CPU", "100 at once", "close", "longest wait")
    print("".join(f"{name:>13}" for name in names), "  (ms)")
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(size, arguments.repeats, Path(folder))
        times = "".join(f"{1000 * value:>13.1f}" for value in found.values())
        print(f"{size:>13,}{times}", flush=True)


if __name__ == "__main__":
    main()
