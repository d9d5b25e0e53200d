"""How well a relevance tells questions that a memory answers from those that it does not.

    python benchmarks/relevance.py DATA [--set NAME] [--mode MODE]

Each case of a set is a scope. Its own questions have an answer there, those of the next case have none. A set of one
case is cut into two scopes by the order of its texts: a question has an answer in one of them. Printed are the AUC, how
often a question with an answer has a higher first relevance than one without, and what the gate of 0.3 lets through.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from retrieval import MODES, load_cases, make_records

from recall_core import Memory

GATE = 0.3
SETS = ("locomo", "memdaily", "cmrc2018", "notes")
MOST_QUESTIONS = 1000  # of a set, evenly taken

Case = tuple[str, list[dict[str, Any]], list[dict[str, Any]]]


def cut_cases(cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the cases of a set; a single one as two, each with the questions that only it answers."""
    if len(cases) > 1:
        yield from cases
        return
    ((case, docs, queries),) = cases
    for half in (0, 1):
        kept = docs[half::2]
        ids = {doc["id"] for doc in kept}
        yield f"{case}-{half}", kept, [query for query in queries if set(query["relevant"]) <= ids]


def ask(memory: Memory, questions: Sequence[tuple[str, str]], mode: str) -> np.ndarray:
    """Return the relevance of the first hit for each question, given with its scope; 0 where nothing is found."""
    found = [memory.search(text, scope=scope, limit=1, mode=mode) for scope, text in questions]  # type: ignore[arg-type]
    return np.array([hits[0].relevance if hits else 0.0 for hits in found])


def measure_auc(own: np.ndarray, foreign: np.ndarray) -> float:
    """Return the share of pairs in which the question with an answer is above the other; half for equal ones."""
    higher = own[:, None] > foreign[None, :]
    equal = own[:, None] == foreign[None, :]
    return float((higher + 0.5 * equal).mean())


def measure(data: Path, name: str, modes: Sequence[str]) -> None:
    """Store a set and print a row for each mode."""
    cases = list(cut_cases(list(load_cases(data, name))))
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "set.db") as memory:
        scopes = [case.replace("/", "-") for case, _, _ in cases]
        own, foreign = [], []
        for place, (_, docs, queries) in enumerate(cases):
            memory.add_many(make_records(scopes[place], docs, name))
            beside = scopes[place - 1]
            own += [(scopes[place], query["text"]) for query in queries if query["text"].strip()]
            foreign += [(beside, query["text"]) for query in queries if query["text"].strip()]
        step = -(-len(own) // MOST_QUESTIONS)
        for mode in modes:
            has, lacks = ask(memory, own[::step], mode), ask(memory, foreign[::step], mode)
            rates = f"answerable through {np.mean(has >= GATE):.2f}, foreign kept out {np.mean(lacks < GATE):.2f}"
            print(f"{name:10} {mode:9} AUC {measure_auc(has, lacks):.3f}, {rates}, {len(has)} questions", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--set", choices=SETS, action="append", dest="sets")
    parser.add_argument("--mode", choices=MODES, action="append", dest="modes")
    arguments = parser.parse_args()
    for name in arguments.sets or SETS:
        measure(arguments.data, name, arguments.modes or MODES)


if __name__ == "__main__":
    main()
