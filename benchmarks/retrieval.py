"""How much a memory finds: recall on retrieval sets, through the public API, beside plain legs on the same chunks.

    python benchmarks/retrieval.py DATA [--set NAME] [--mode MODE]

DATA is a folder with a `load.py` whose `load(name)` yields (case, docs, queries): docs with id, session, time, role and
text, queries with text, relevant (ids) and category. Each case is a scope of its own in one file per set.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recall_core import Memory, NewRecord, Settings

SETS = ("locomo", "memdaily", "cmrc2018", "notes")
Search = Callable[[Memory, str, str], list[str]]

# The product's modes, and beside them what a plain engine would answer from the same chunks.
MODES: dict[str, dict[str, Any]] = {
    "hybrid": {"mode": "hybrid"},
    "keyword": {"mode": "keyword"},
    "semantic": {"mode": "semantic"},
    "bm25": {"mode": "keyword", "fusion": "plain"},
    "vectors": {"mode": "semantic", "fusion": "plain"},
    "rrf60": {"mode": "hybrid", "fusion": "rrf"},
}


HEAD = "mode                        R@1    R@5   R@10  hit@5  all@5 NDCG@10  empty queries"


@dataclass(slots=True)
class Score:
    """Sums over queries; divided by `queries` they are the figures."""

    queries: int = 0
    empty: int = 0
    recall: dict[int, float] = field(default_factory=lambda: dict.fromkeys((1, 5, 10), 0.0))
    hit5: float = 0.0
    all5: float = 0.0
    ndcg10: float = 0.0

    def add(self, found: Sequence[str], relevant: set[str]) -> None:
        self.queries += 1
        self.empty += not found
        for k in self.recall:
            self.recall[k] += len(relevant & set(found[:k])) / len(relevant)
        self.hit5 += bool(relevant & set(found[:5]))
        self.all5 += relevant <= set(found[:5])
        gains = sum(1 / math.log2(rank + 2) for rank, id in enumerate(found[:10]) if id in relevant)
        self.ndcg10 += gains / sum(1 / math.log2(rank + 2) for rank in range(min(10, len(relevant))))

    def row(self) -> str:
        n = max(self.queries, 1)
        recalls = " ".join(f"{value / n:6.3f}" for value in self.recall.values())
        rest = f"{self.hit5 / n:6.3f} {self.all5 / n:6.3f} {self.ndcg10 / n:7.3f} {self.empty:6} {self.queries:7}"
        return f"{recalls} {rest}"


def load_cases(data: Path, name: str) -> Iterator[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]]:
    """Yield the cases of a set through the folder's own loader."""
    spec = importlib.util.spec_from_file_location("retrieval_sets", data / "load.py")
    if spec is None or spec.loader is None:
        sys.exit(f"{data} has no load.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield from module.load(name)


def make_records(case: str, docs: Sequence[dict[str, Any]], name: str) -> Iterator[NewRecord]:
    """Yield the records of a case. Only the sessions of conversations are sessions; elsewhere they are groups."""
    for turn, doc in enumerate(docs):
        yield NewRecord(
            text=doc["text"],
            id=f"{case}:{doc['id']}",
            scope=case,
            session=doc["session"] if name == "locomo" else None,
            turn=turn if name == "locomo" else None,
            role=doc["role"],
            created_at=doc["time"] or None,
        )


def measure(data: Path, name: str, modes: Sequence[str], limit: int | None) -> None:
    """Load a set into one file and print a row for each mode, and for each category of the hybrid mode."""
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "set.db", settings=Settings()) as memory:
        started = time.perf_counter()
        questions: list[tuple[str, dict[str, Any]]] = []
        for number, (case, docs, queries) in enumerate(load_cases(data, name)):
            if limit is not None and number >= limit:
                break
            scope = case.replace("/", "-")
            memory.add_many(make_records(scope, docs, name))
            questions += [(scope, query) for query in queries]
        seconds = time.perf_counter() - started
        print(f"{name}: {memory.count()} records, {len(questions)} questions, loaded in {seconds:.0f} s", flush=True)
        print(HEAD)
        for mode in modes:
            print_mode(memory, mode, questions)


def print_mode(memory: Memory, mode: str, questions: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Ask all questions in a mode and print its figures."""
    total, categories = Score(), dict[str, Score]()
    started = time.perf_counter()
    for scope, query in questions:
        hits = memory.search(query["text"], scope=scope, limit=10, **MODES[mode])
        found = [hit.record.id for hit in hits]
        relevant = {f"{scope}:{id}" for id in query["relevant"]}
        total.add(found, relevant)
        categories.setdefault(str(query.get("category", "")), Score()).add(found, relevant)
    milliseconds = (time.perf_counter() - started) / max(len(questions), 1) * 1000
    print(f"{mode:24} {total.row()}  {milliseconds:.1f} ms", flush=True)
    if mode == "hybrid":
        for category, score in sorted(categories.items()):
            print(f"  {category:22} {score.row()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--set", choices=SETS, action="append", dest="sets")
    parser.add_argument("--mode", choices=list(MODES), action="append", dest="modes")
    parser.add_argument("--cases", type=int, help="only the first so many cases")
    arguments = parser.parse_args()
    for name in arguments.sets or SETS:
        measure(arguments.data, name, arguments.modes or list(MODES), arguments.cases)


if __name__ == "__main__":
    main()
