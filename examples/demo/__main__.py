"""Stores some forty memories, asks the same questions in three ways, and shows what a prompt would get.

    python examples/demo [--db FILE]

Without --db the memories go into a temporary file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from recall_core import Hits, Memory
from recall_core.models import Mode
from recall_core.text import analyse_query, term_spans

MEMORIES = Path(__file__).parent / "memories.jsonl"
QUESTIONS = [
    "Docker",
    "怎么部署服务",
    "硬盘不够了",
    "Error 503",
    "服务不可用怎么办",
    "数据库配置",
    "How do we get back to the previous version?",
    "users keep getting logged out",
]
CONTEXT_QUESTION = "订单表为什么全表扫描，索引怎么建的？"
MODES: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")
WIDTH = 100
SHOWN = 2  # hits in each cell
SHOWN_WIDTH = 72  # columns of a hit's text, on about three lines


@dataclass(frozen=True, slots=True)
class Answer:
    """What one mode found for a question, and in how many milliseconds."""

    question: str
    mode: Mode
    hits: Hits
    milliseconds: float


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog="demo", description="Store some memories and ask for them in three ways.")
    parser.add_argument("--db", help="the file to store them in; by default a temporary one")
    path = parser.parse_args().db
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    console = Console(width=WIDTH, highlight=False)
    with tempfile.TemporaryDirectory() as folder, Memory.open(path or Path(folder) / "demo.db") as memory:
        store(memory, console)
        answers = list(ask(memory))
        for question in QUESTIONS:
            show_question(question, [answer for answer in answers if answer.question == question], console)
        show_context(memory, console)
        show_times(answers, console)


def store(memory: Memory, console: Console) -> None:
    """Store the memories of the demo, unless the file has them already."""
    lines = MEMORIES.read_text("utf-8").splitlines()
    started = time.perf_counter()
    memory.add_many({**json.loads(line), "on_duplicate": "skip"} for line in lines)
    seconds = time.perf_counter() - started
    console.print(f"Stored {len(lines)} memories in {seconds:.1f} s: cut, indexed and embedded on this machine.\n")


def ask(memory: Memory) -> Iterator[Answer]:
    """Ask each question in each mode."""
    for question in QUESTIONS:
        for mode in MODES:
            started = time.perf_counter()
            hits = memory.search(question, mode=mode, limit=SHOWN)
            yield Answer(question, mode, hits, 1000 * (time.perf_counter() - started))


def show_question(question: str, answers: list[Answer], console: Console) -> None:
    """Show what the three modes found, side by side."""
    table = Table(title=f"[bold]{escape(question)}", title_justify="left", box=box.SIMPLE_HEAD, expand=True)
    for answer in answers:
        table.add_column(answer.mode, ratio=1, header_style="dim")
    table.add_row(*(render_hits(answer) for answer in answers))
    console.print(table)


def render_hits(answer: Answer) -> RenderableType:
    """Return the best hits of an answer, with the terms of the question highlighted."""
    if not answer.hits:
        return Text("nothing", style="dim")
    query = analyse_query(answer.question)
    grid = Table.grid(padding=(0, 1))
    grid.add_column()
    grid.add_column(overflow="fold")
    for hit in answer.hits:
        text = Text(hit.chunk.text)
        for start, end in term_spans(hit.chunk.text, query):
            text.stylize("bold yellow", start, end)
        text.truncate(SHOWN_WIDTH, overflow="ellipsis")
        grid.add_row(Text(f"{hit.relevance:.2f}", style="green"), text)
    return grid


def show_context(memory: Memory, console: Console) -> None:
    """Show the block that an agent would put into its prompt."""
    console.print(f"\n[bold]What a prompt gets for {CONTEXT_QUESTION}[/]\n")
    block = memory.context(CONTEXT_QUESTION, limit=4, max_chars=800)
    console.print(Text(block))


def show_times(answers: list[Answer], console: Console) -> None:
    """Show how long each search took."""
    table = Table(title="[bold]Milliseconds that each search took", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("question")
    for mode in MODES:
        table.add_column(mode, justify="right")
    for question in QUESTIONS:
        times = (answer.milliseconds for answer in answers if answer.question == question)
        table.add_row(escape(question), *(f"{milliseconds:.1f}" for milliseconds in times))
    console.print()
    console.print(table)


if __name__ == "__main__":
    main()
