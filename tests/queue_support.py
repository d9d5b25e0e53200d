"""What the tests of the embedding queue share: embedders that note what they embed, and processes that share the work.

Run as a script it is such a process: `python queue_support.py WORK PATH NOTES`.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from store_support import run_python
from support import NOW, HashedEmbedder, wait_until

from recall_core import Memory, Settings
from recall_core.errors import EmbedderUnavailableError, PartlyEmbeddedError

CHUNKS = 5_000
KILLED_AT = 500  # from so many texts on, who is to be killed embeds no more
DIMENSIONS = 16


class NotingEmbedder(HashedEmbedder):
    """Appends each text that it embeds to a file. With `before` it calls that then, with the texts noted so far."""

    call_size = 50

    def __init__(self, notes: Path, before: Callable[[int], object] = lambda noted: None) -> None:
        super().__init__(DIMENSIONS)
        self.notes = notes
        self.before = before

    def embed_passages(self, texts):
        with self.notes.open("a", encoding="utf-8") as file:
            file.write("".join(f"{text}\n" for text in texts))
        self.before(count_notes(self.notes).total())
        return super().embed_passages(texts)


class RemoteEmbedder(HashedEmbedder):
    """Fails as a remote embedder does: `refused` texts, the rest after `most` of a call, or everything by `outage`."""

    def __init__(self) -> None:
        super().__init__(DIMENSIONS)
        self.refused: set[str] = set()
        self.most: int | None = None
        self.outage: EmbedderUnavailableError | None = None
        self.calls = 0

    def embed_passages(self, texts):
        self.calls += 1
        if self.outage is not None:
            raise self.outage
        vectors, refused = {}, {}
        for place, text in enumerate(texts[: self.most]):
            if text in self.refused:
                refused[place] = "the content filter"
            else:
                vectors[place] = super().embed_passages([text])[0]
        if len(vectors) == len(texts):
            return np.stack(list(vectors.values()))
        failure = None
        if len(vectors) + len(refused) < len(texts):
            failure = EmbedderUnavailableError("the quota is used up")
        raise PartlyEmbeddedError("not all", vectors=vectors, refused=refused, failure=failure)


def start(work: str, path: Path, notes: Path):
    """Start a process on a file."""
    return run_python([__file__, work, str(path), str(notes)])


def count_notes(*files: Path) -> Counter[str]:
    """Count how often each text was embedded; the last line of a killed process may be cut off."""
    return Counter(
        line for file in files if file.exists() for line in file.read_text("utf-8").splitlines(keepends=True)
        if line.endswith("\n")
    )  # fmt: skip


def fill(path: Path, chunks: int) -> None:
    """Store texts that wait for a vector."""
    with Memory.open(path, embedder=None) as memory:
        memory.add_many({"text": f"text {number}"} for number in range(chunks))


def _work(work: str, path: str, notes: str) -> None:
    """Embed until killed, or together with others. By a clock that stands still, so that no lease runs out."""
    if work == "share":
        others = Path(notes).parent
        embedder = NotingEmbedder(Path(notes), lambda _: wait_until(lambda: len(list(others.iterdir())) > 1))
        with Memory.open(path, embedder=embedder, clock=NOW.timestamp) as memory:
            sys.stdout.write(str(memory.flush()))
        return
    settings = Settings(embedding="background")
    embedder = NotingEmbedder(Path(notes), lambda noted: noted < KILLED_AT or threading.Event().wait())
    with Memory.open(path, embedder=embedder, settings=settings, clock=NOW.timestamp) as memory:
        if work == "add":
            memory.add_many({"text": f"text {number}"} for number in range(CHUNKS))
        memory.flush()


if __name__ == "__main__":
    _work(*sys.argv[1:])
