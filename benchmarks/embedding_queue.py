"""How fast chunks get their vectors through the queue, beside calling the model itself on the same texts.

    python benchmarks/embedding_queue.py [--chunks 2000]

The texts are the paragraphs of this project's own documentation, in parts of different lengths. Both ways take turns,
and the best round of each counts: what else the machine does must not decide. Exit code 1: the queue reaches less than
90 % of the model's rate.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recall_core import Memory, Settings
from recall_core.embedding.choice import load_bundled
from recall_core.embedding.onnx import OnnxEmbedder
from recall_core.models import Embedder

if TYPE_CHECKING:
    from recall_core.models import Vectors

ROOT = Path(__file__).parent.parent
ROUNDS = 3
WANTED = 0.9


def main() -> int:
    """Print both rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=2_000, help="how many chunks are embedded (default: 2000)")
    count = parser.parse_args().chunks
    embedder = load_bundled()
    texts = list(read_texts(count))
    embedder.embed_passages(texts[:8])  # loads the model
    direct, queued = [], []
    inside = total = 0.0
    for _ in range(ROUNDS):
        timed = Timed(embedder)
        with tempfile.TemporaryDirectory() as folder:
            chunks, seconds = embed_queued(Path(folder) / "memory.db", texts, timed)
        queued.append(len(chunks) / seconds)
        inside, total = inside + timed.seconds, total + seconds
        started = time.perf_counter()
        embedder.embed_passages(chunks)
        direct.append(len(chunks) / (time.perf_counter() - started))
    share = max(queued) / max(direct)
    print(f"{len(chunks)} chunks, {sum(map(len, chunks)) / len(chunks):.0f} characters on average")
    print(f"the model itself  {max(direct):8.1f} chunks/s   rounds {describe(direct)}")
    print(f"through the queue {max(queued):8.1f} chunks/s   rounds {describe(queued)}")
    print(f"share             {share:8.1%}   (wanted: {WANTED:.0%})")
    print(f"own work          {1 - inside / total:8.1%}   of the queue's time; the rest is the model's")
    return 0 if share >= WANTED else 1


def read_texts(count: int) -> Iterator[str]:
    """Return so many different texts, from pieces of a line to whole paragraphs."""
    pages = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])
    paragraphs = [
        part.strip() for page in pages for part in re.split(r"\n\s*\n", page.read_text("utf-8")) if len(part) > 40
    ]
    for number in range(count):
        paragraph = paragraphs[number % len(paragraphs)]
        size = (60, 150, 300, 600)[number % 4]
        begin = (number // len(paragraphs)) * 37 % max(1, len(paragraph) - size)
        yield f"{number}: {paragraph[begin : begin + size]}"


class Timed:
    """The model, and how long it was busy with passages."""

    def __init__(self, embedder: OnnxEmbedder) -> None:
        self.model_id, self.dimensions = embedder.model_id, embedder.dimensions
        self.embed_queries = embedder.embed_queries
        self.call_size = embedder.call_size
        self.seconds = 0.0
        self._embedder = embedder

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        started = time.perf_counter()
        vectors = self._embedder.embed_passages(texts)
        self.seconds += time.perf_counter() - started
        return vectors


def embed_queued(path: Path, texts: list[str], embedder: Embedder) -> tuple[list[str], float]:
    """Embed texts that wait in a file; return the chunks that they became, and the seconds."""
    with Memory.open(path, embedder=None) as memory:
        memory.add_many({"text": text} for text in texts)
    with Memory.open(path, embedder=embedder, settings=Settings(backfill_interval=math.inf)) as memory:
        started = time.perf_counter()
        left = memory.flush()
        seconds = time.perf_counter() - started
        assert left == 0
        with memory._engine.store.database.read() as connection:
            rows = connection.execute(
                "SELECT substr(text, start + 1, stop - start) FROM chunk JOIN record ON record.key = record_key"
            ).fetchall()
    return [text for (text,) in rows], seconds


def describe(rates: list[float]) -> str:
    return " ".join(f"{rate:.0f}" for rate in rates)


if __name__ == "__main__":
    sys.exit(main())
