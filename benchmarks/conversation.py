"""The main job on real input, through the command line: import a conversation, then ask it questions.

    python benchmarks/conversation.py DATA

Takes the first conversation of the set `locomo` and the first trajectories of `memdaily` among their noise (the same
folder as for retrieval.py), writes them as JSONL, runs `recall import` and ten times `recall search`, and shows for
each question the first hits, marked `*` where they are among the answers, and the rank of the first answer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from retrieval import load_cases

QUESTIONS = 10
SHOWN = 3


def recall(*arguments: str) -> str:
    """Run a `recall` command and return what it printed."""
    command = [sys.executable, "-c", "from recall_core.cli import main; main()", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout


def write_lines(path: Path, docs: Sequence[dict[str, Any]], scope: str) -> None:
    """Write docs as JSONL that `recall import` reads."""
    with path.open("w", encoding="utf-8") as file:
        for doc in docs:
            line = {**doc, "id": f"{scope}:{doc['id']}", "scope": scope}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def ask(scope: str, query: dict[str, Any]) -> int | None:
    """Ask a question, print what came back, and return the rank of the first answer."""
    found = json.loads(recall("search", query["text"], "--scope", scope, "--limit", "10", "--json"))["hits"]
    answers = {f"{scope}:{id}" for id in query["relevant"]}
    rank = next((rank for rank, hit in enumerate(found, start=1) if hit["record"]["id"] in answers), None)
    print(f"\n{query['text']}   -> answer at {rank or 'none of ten'}")
    for hit in found[:SHOWN]:
        mark = "*" if hit["record"]["id"] in answers else " "
        text = " ".join(hit["record"]["text"].split())
        print(f"  {mark} {hit['relevance']:.2f} {hit['record']['role']}: {text[:110]}")
    return rank


def show(data: Path, folder: Path, name: str, cases: int) -> None:
    """Import cases of a set and ask ten of their questions."""
    os.environ["RECALL_DB"] = str(folder / f"{name}.db")
    questions: list[tuple[str, dict[str, Any]]] = []
    for case, docs, queries in islice(load_cases(data, name), cases):
        scope = case.replace("/", "-")
        write_lines(folder / "lines.jsonl", docs, scope)
        print(f"recall import {name} {case}: {recall('import', str(folder / 'lines.jsonl')).strip()}")
        questions += [(scope, query) for query in queries]
    step = max(1, len(questions) // QUESTIONS)
    ranks = [ask(scope, query) for scope, query in questions[::step][:QUESTIONS]]
    first = sum(rank == 1 for rank in ranks)
    print(f"\n{name}: {first} of {len(ranks)} answered first, {sum(rank is not None for rank in ranks)} within ten\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        show(arguments.data, Path(folder), "locomo", 1)
        show(arguments.data, Path(folder), "memdaily", 10)


if __name__ == "__main__":
    main()
