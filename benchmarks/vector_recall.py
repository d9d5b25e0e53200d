"""How many of the ten nearest the vector leg of a large scope finds: codes and candidates against an exact scan.

    python benchmarks/vector_recall.py DATA [--questions 300]

All texts of `locomo` and `memdaily`, with their noise, lie in one file without scopes, embedded by the bundled model;
the questions are those of both sets. The exact scan compares every vector by the same score, the whitened cosine with
the same statistics. A text that scores as much as the tenth counts as found.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from retrieval import load_cases, make_records

from recall_core import Memory
from recall_core.filters import Selection
from recall_core.large import LargeScopes
from recall_core.store import OWN_SPACE, Space, SqliteStore
from recall_core.vectors import normalize
from recall_core.whitening import Statistics, compare, direct, lean_on, measure_lengths

Vectors = NDArray[np.float32]

TOP = 10
CANDIDATES = 200  # as Settings.candidates
TIE = 5e-7
SETS = ("locomo", "memdaily")


def store_texts(memory: Memory, data: Path, name: str, *, stores: bool) -> list[str]:
    """Store all texts of a set, if they are to be stored, and return its questions."""
    questions = []
    for number, (_, docs, queries) in enumerate(load_cases(data, name)):
        if stores:
            memory.add_many(
                {"text": record.text, "role": record.role, "id": f"{name}:{number}:{record.id}"}
                for record in make_records("case", docs, name)
            )
        questions += [query["text"] for query in queries]
    return questions


def read_vectors(store: SqliteStore, space: Space) -> tuple[NDArray[np.int64], Vectors]:
    """Return the keys and the unit vectors of all chunks."""
    keys, vectors = store.blocks.vectors_of_scope(space, "")
    return np.array(keys), normalize(vectors)


def find_share(exact: NDArray[np.float32], keys: NDArray[np.int64], found: set[int]) -> float:
    """Return the share of the ten best that were found."""
    least = np.partition(exact, len(exact) - TOP)[len(exact) - TOP]
    seen = np.isin(keys, list(found))
    return min(int(np.count_nonzero(exact[seen] >= least - TIE)), TOP) / TOP


def measure_set(
    memory: Memory, questions: list[str], statistics: Statistics, keys: NDArray[np.int64], vectors: Vectors
) -> tuple[float, float]:
    """Return the mean share of the ten nearest that the vector leg brings, and its median time in milliseconds."""
    store = memory._engine.store
    space = store.vectors.find_space(OWN_SPACE)
    embedder = memory._engine.embedder
    if space is None or embedder is None:
        sys.exit("nothing was embedded")
    lengths = measure_lengths(statistics, vectors)
    large, shares, times = LargeScopes(store), [], []
    for question in questions:
        query = normalize(embedder.embed_queries([question]))
        exact = compare(direct(statistics, query), vectors, lengths)[0]
        started = time.perf_counter()
        found = large.find_nearest(space, query, statistics, Selection(now=0), CANDIDATES)
        times.append(1000 * (time.perf_counter() - started))
        shares.append(find_share(exact, keys, found))
    return float(np.mean(shares)), float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--keep", type=Path, help="a file to store in, taken as it is if it exists")
    parser.add_argument("--questions", type=int, default=300, help="of each set")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Memory.open(arguments.keep or Path(folder) / "all.db") as memory:
        stores = memory.count() == 0
        asked = {name: store_texts(memory, arguments.data, name, stores=stores) for name in SETS}
        store = memory._engine.store
        space = store.vectors.find_space(OWN_SPACE)
        if space is None:
            sys.exit("nothing was embedded")
        keys, vectors = read_vectors(store, space)
        print(f"{len(keys):,} vectors, index: {memory.stats().vector_index}", flush=True)
        statistics = LargeScopes(store).measure(space, "")
        for name, questions in asked.items():
            step = max(1, len(questions) // arguments.questions)
            some = list(islice(questions, 0, None, step))[: arguments.questions]
            share, milliseconds = measure_set(memory, some, lean_on(None, statistics), keys, vectors)
            print(f"{name:10} {len(some)} questions: recall@{TOP} {share:.4f}, {milliseconds:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
