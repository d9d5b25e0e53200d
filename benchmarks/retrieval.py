"""How much a memory finds: recall on retrieval sets, through the public API, beside plain legs on the same chunks.

    python benchmarks/retrieval.py DATA [--set NAME] [--mode MODE]

DATA is a folder with a `load.py` whose `load(name)` yields (case, docs, queries): docs with id, session, time, role and
text, queries with text, relevant (ids) and category. Each case is a scope of its own, in one file for all of a set;
`locomo-files` gives each conversation a file, and `locomo-sessions` looks for the sessions that hold an answer.
Nothing is random: the figures are the same on every run.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from recall_core import Memory, NewRecord
from recall_core.text import analyse_query, match_expression

LIMIT = 10
SESSION_POOL = 200  # turns from which the order of the sessions is read
CHUNKS = 5  # looked at for each record that is wanted
RRF_POOL, RRF_K = 100, 60

# The product's modes, then what a plain engine would answer from the same chunks.
MODES = ("hybrid", "keyword", "semantic")
PLAIN = ("fts5-bm25", "vectors", "rrf60")

HEAD = "mode                        R@1    R@5   R@10  hit@5  all@5 NDCG@10  empty queries"
FTS5 = """
SELECT record.id FROM chunk_fts JOIN chunk ON chunk.key = chunk_fts.rowid JOIN record ON record.key = chunk.record_key
WHERE chunk_fts MATCH ? AND record.scope = ? ORDER BY bm25(chunk_fts) LIMIT ?
"""


class Set(NamedTuple):
    """A set of questions: whose data, a file for each case or one for all, and what is looked for."""

    data: str
    own_files: bool = False
    unit: str = "turn"


SETS = {
    "locomo": Set("locomo"),
    "locomo-files": Set("locomo", own_files=True),
    "locomo-sessions": Set("locomo", unit="session"),
    "memdaily": Set("memdaily"),
    "cmrc2018": Set("cmrc2018"),
    "notes": Set("notes"),
}


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


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the memory of a file, and what answers it."""

    file: apsw.Connection  # for a plain engine on the same chunks
    memory: Memory
    scope: str
    text: str
    relevant: set[str]
    category: str


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
    """Store a set and print a row for each mode, and for each category of the hybrid mode."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        questions: list[Question] = []
        memories: dict[Path, Memory] = {}
        files: dict[Path, apsw.Connection] = {}
        sessions: dict[str, str] = {}
        for number, (case, docs, queries) in enumerate(load_cases(data, SETS[name].data)):
            if limit is not None and number >= limit:
                break
            scope = case.replace("/", "-")
            file = Path(folder) / (f"{number}.db" if SETS[name].own_files else "set.db")
            if file not in memories:
                memories[file] = opened.enter_context(Memory.open(file))
                files[file] = apsw.Connection(str(file))
                opened.callback(files[file].close)
            memories[file].add_many(make_records(scope, docs, SETS[name].data))
            sessions.update({f"{scope}:{doc['id']}": f"{scope}:{doc['session']}" for doc in docs})
            for query in queries:
                relevant = {f"{scope}:{id}" for id in query["relevant"]}
                if SETS[name].unit == "session":
                    relevant = {sessions[id] for id in relevant}
                category = str(query.get("category", ""))
                questions.append(Question(files[file], memories[file], scope, query["text"], relevant, category))
        records = sum(memory.count() for memory in memories.values())
        seconds = time.perf_counter() - started
        print(f"{name}: {records} records, {len(questions)} questions, stored in {seconds:.0f} s", flush=True)
        print(HEAD)
        for mode in modes:
            print_mode(mode, questions, sessions if SETS[name].unit == "session" else None)


def print_mode(mode: str, questions: Sequence[Question], sessions: dict[str, str] | None) -> None:
    """Ask all questions in a mode and print its figures."""
    total, categories = Score(), dict[str, Score]()
    started = time.perf_counter()
    for question in questions:
        found = ask(question, mode, LIMIT if sessions is None else SESSION_POOL)
        if sessions is not None:  # a session stands where its best turn does
            found = list(dict.fromkeys(sessions[id] for id in found))
        total.add(found, question.relevant)
        categories.setdefault(question.category, Score()).add(found, question.relevant)
    milliseconds = (time.perf_counter() - started) / max(len(questions), 1) * 1000
    print(f"{mode:24} {total.row()}  {milliseconds:.1f} ms", flush=True)
    if mode == "hybrid":
        for category, score in sorted(categories.items()):
            print(f"  {category:22} {score.row()}", flush=True)


def ask(question: Question, mode: str, limit: int) -> list[str]:
    """Return the ids that a mode finds, best first."""
    if mode == "fts5-bm25":
        return ask_fts5(question, limit)
    if mode == "rrf60":
        legs = [ask_fts5(question, RRF_POOL), ask(question, "vectors", RRF_POOL)]
        scores: dict[str, float] = {}
        for leg in legs:
            for rank, id in enumerate(leg, start=1):
                scores[id] = scores.get(id, 0.0) + 1 / (RRF_K + rank)
        return sorted(scores, key=lambda id: -scores[id])[:limit]
    arguments: dict[str, Any] = {"mode": mode}
    if mode == "vectors":
        arguments = {"mode": "semantic", "fusion": "plain"}
    hits = question.memory.search(question.text, scope=question.scope, limit=limit, **arguments)
    return [hit.record.id for hit in hits]


def ask_fts5(question: Question, limit: int) -> list[str]:
    """Return what FTS5's own bm25() puts first, by all words of the question."""
    query = analyse_query(question.text)
    expression = match_expression([*query.terms, *query.weak])
    if expression is None:
        return []
    rows = question.file.execute(FTS5, (expression, question.scope, CHUNKS * limit))
    return list(dict.fromkeys(id for (id,) in rows))[:limit]  # the best chunk of each record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--set", choices=list(SETS), action="append", dest="sets")
    parser.add_argument("--mode", choices=[*MODES, *PLAIN], action="append", dest="modes")
    parser.add_argument("--cases", type=int, help="only the first so many cases")
    arguments = parser.parse_args()
    for name in arguments.sets or SETS:
        measure(arguments.data, name, arguments.modes or [*MODES, *PLAIN], arguments.cases)


if __name__ == "__main__":
    main()
