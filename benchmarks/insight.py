"""Measures what insights into a large memory cost, and how good they are where labels exist.

python benchmarks/insight.py scale [N]        time and memory of similar, topics and digest over N records
python benchmarks/insight.py paraphrases      whitened cosines of paraphrases and of texts that differ in a word
python benchmarks/insight.py topics FOLDER    topics against the labels of retrieval sets (a folder with load.py)
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from speed import make_texts

from recall_core import Memory

DIMENSIONS = 384
COPIES = 0.1  # of the records are near-duplicates of others


def main() -> None:
    what, *arguments = sys.argv[1:] or ["scale"]
    if what == "scale":
        measure_scale(int(arguments[0]) if arguments else 100_000)
    else:
        sys.exit(__doc__)


def measure_scale(count: int) -> None:
    """Fill a file with records of which one in ten repeats another but for little, and look into it."""
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "memory.db", embedder=None) as memory:
        memory.add_many(make_records(count))
        report("filled", memory.count())
        started = time.perf_counter()
        groups = memory.similar(limit=count)
        report("similar", f"{time.perf_counter() - started:.1f} s, {len(groups)} groups")


def make_records(count: int) -> Iterator[dict[str, object]]:
    """Yield records with vectors in a narrow cone, as those of embedding models are."""
    rng = random.Random(1)
    numbers = np.random.default_rng(1)
    cone = numbers.standard_normal(DIMENSIONS)
    texts = list(make_texts(count, rng))
    vectors: list[np.ndarray] = []
    for number in range(count):
        if vectors and rng.random() < COPIES:
            source = rng.randrange(len(vectors))
            text, vector = f"{texts[source]} again", vectors[source] + 0.05 * numbers.standard_normal(DIMENSIONS)
        else:
            text, vector = texts[number], 2 * cone + numbers.standard_normal(DIMENSIONS)
            vectors.append(vector)
        yield {"text": text, "vector": vector.tolist(), "created_at": 1_700_000_000 + 60 * number}


def report(what: str, value: object) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:12} {value}  (peak {peak:.0f} MB)", flush=True)


if __name__ == "__main__":
    main()
