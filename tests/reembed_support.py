"""What the tests of moving a file to another model share: embedders, a look at who is where, and worker processes.

Run as a script it is such a worker: `python reembed_support.py WORK PATH NUMBER`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
from indexer_support import WindowEmbedder
from store_support import faults, run_python, vector_faults
from support import LIMIT, HashedEmbedder

from recall_core import Memory

HERE = Path(__file__).parent
OLD, NEW = 16, 24
TOLERANCE = 1e-3


def old() -> HashedEmbedder:
    return HashedEmbedder(OLD)


def new() -> HashedEmbedder:
    return HashedEmbedder(NEW)


class StoppingEmbedder(HashedEmbedder):
    """Raises `error` in its nth call from now, once."""

    def __init__(self, dimensions: int, calls: int, error: BaseException) -> None:
        super().__init__(dimensions)
        self.calls, self.error = calls, error

    def embed_passages(self, texts):
        self.calls -= 1
        if self.calls == 0:
            raise self.error
        return super().embed_passages(texts)


class CallingEmbedder(HashedEmbedder):
    """Calls a function before each batch of passages."""

    def __init__(self, dimensions: int, before) -> None:
        super().__init__(dimensions)
        self.before = before

    def embed_passages(self, texts):
        self.before()
        return super().embed_passages(texts)


class NarrowEmbedder(WindowEmbedder):
    """Has a small window, and refuses to be given more than that."""

    def __init__(self, window: int, dimensions: int = NEW) -> None:
        super().__init__(window)
        self.dimensions, self.model_id = dimensions, f"narrow-{window}-{dimensions}"

    def embed_passages(self, texts):
        assert all(len(text.encode()) <= self.window for text in texts)
        return super().embed_passages(texts)


def fill(path, count=300, embedder=None, first=0):
    with Memory.open(path, embedder=embedder or old()) as memory:
        memory.add_many({"text": make_text(number), "id": f"{number:05}"} for number in range(first, first + count))


def make_text(number: int) -> str:
    return f"note {number} about {number * 7919 % 104729} 记录"


def models(memory) -> dict[str, tuple[str, int]]:
    """Return model and number of vectors by space."""
    return {space.name: (space.model, space.vectors) for space in memory.stats().spaces}


def assert_moved(path, count, embedder=None):
    """Open a file with its new model: everything has a vector of it, and nothing of the old one is left."""
    with Memory.open(path, embedder=embedder or new()) as memory:
        assert memory.flush() == 0
        assert models(memory) == {"memory": ((embedder or new()).model_id, count)}
        assert vector_faults(memory) == []
        assert memory.stats().notes == ()
    assert faults(path) == []


def assert_works(path, count=300):
    """Open a file with its old model: it is as if nothing had been tried."""
    with Memory.open(path, embedder=old()) as memory:
        assert memory.flush() == 0
        assert models(memory)["memory"] == (f"hashed-{OLD}", count)
        assert vector_faults(memory) == []
        hits = memory.search(make_text(1), mode="semantic", limit=1)
        assert (hits[0].record.id, hits.degraded) == ("00001", None)
    assert faults(path) == []


class Judge:
    """Tells which model the hits of a search come from, by their similarities."""

    def __init__(self, *embedders) -> None:
        self._embedders = embedders

    def find(self, query: str, hits) -> set[str]:
        """Return the ids of the models that all of these hits may come from."""
        compared = [hit for hit in hits if hit.why.similarity is not None]
        told = np.array([hit.why.similarity for hit in compared])
        found = set()
        for embedder in self._embedders:
            expected = (
                embedder.embed_passages([hit.chunk.text for hit in compared]) @ embedder.embed_queries([query])[0]
            )
            if np.abs(expected - told).max(initial=0) < TOLERANCE:
                found.add(embedder.model_id)
        return found


def start(work: str, path: Path, number: int = 0):
    return run_python([str(HERE / "reembed_support.py"), work, str(path), str(number)])


def finish(worker) -> str:
    out, err = worker.communicate(timeout=LIMIT)
    assert worker.returncode == 0, err
    return out.strip()


def die(*_) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _work(work: str, path: str, number: int) -> None:
    if work.startswith("die "):
        _die(work, path, number)
    elif work == "move":
        with Memory.open(path, embedder=None) as memory:
            found = memory.reembed(new(), batch=16)
        sys.stdout.write(f"{found.chunks} {found.embedded}")
    elif work == "write":  # in the way of the old model, whatever happens to the file
        with Memory.open(path, embedder=old()) as memory:
            Path(path).with_name("writing").touch()
            while not Path(path).with_name("stop").exists():
                record = memory.add(make_text(number))
                memory.add(make_text(number + 1), id=f"{number:05}")
                memory.update(f"{number:05}", text=f"changed {number}")
                memory.delete(record.id)
                number += 1
        sys.stdout.write(str(number))
    elif work == "search":
        _search(path)


def _die(work: str, path: str, number: int) -> None:
    """Die in the nth batch, when the nth progress is told, or when old vectors are to be cleared for the nth time."""
    calls = iter(range(1, 1 << 30))
    at = lambda *_: die() if next(calls) == number else None  # noqa: E731
    with Memory.open(path, embedder=None) as memory:
        moves = memory._engine.store.moves
        clear = moves.clear
        if work == "die clearing":
            moves.clear = lambda: (at(), clear())
            memory.reembed(new(), batch=16)
        elif work == "die embedding":
            memory.reembed(CallingEmbedder(NEW, at), batch=16)
        else:
            memory.reembed(new(), batch=16, progress=at)


def _search(path: str) -> None:
    """Search with the old model until the file is moved; tell how often, and what was said in the end."""
    judge, count = Judge(old(), new()), 0
    with Memory.open(path, embedder=old()) as memory:
        while True:
            query = make_text(count % 50)
            hits = memory.search(query, mode="hybrid", limit=5)
            if hits.degraded is not None:
                break
            assert len(hits) == 5
            assert judge.find(query, hits) == {f"hashed-{OLD}"}
            count += 1
            Path(path).with_name("searching").touch()
        assert hits.mode == "keyword"
        assert all(hit.why.similarity is None for hit in hits)
    sys.stdout.write(f"{count}|{hits.degraded}")


if __name__ == "__main__":
    _work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
