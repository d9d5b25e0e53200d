"""Finds and opens the memory file that a command works on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from recall_core.errors import StoreUnavailableError

if TYPE_CHECKING:
    from recall_core.memory import Memory
    from recall_core.models import Embedder


def open_existing(db: str | None) -> Memory:
    """Open a memory file for a command that needs no vectors: no model is loaded."""
    from recall_core.memory import Memory

    return Memory.open(_find(db), embedder=None)


def open_for_search(db: str | None, model: str | None, mode: str, reranker: str | None = None) -> Memory:
    """Open a memory file for a search in `mode`, with the model of a folder or the built-in one if vectors count, and
    with the cross-encoder of the folder `reranker`.
    """
    from recall_core.embedding import DEFAULT, CrossEncoder
    from recall_core.memory import Memory
    from recall_core.settings import Settings

    settings = Settings(reranker=CrossEncoder(reranker) if reranker else None)
    return Memory.open(_find(db), embedder=None if mode == "keyword" else model or DEFAULT, settings=settings)


def open_for_writing(db: str | None, model: str | None) -> Memory:
    """Open a memory file, made if missing, to add to it."""
    from recall_core.embedding import DEFAULT
    from recall_core.memory import Memory

    path = locate(db)
    if not db:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailableError(f"the folder {path.parent} can't be made ({error}); give --db") from error
    return Memory.open(path, embedder=model or DEFAULT)


def open_for_embedding(db: str | None, model: str | None) -> Memory:
    """Open a memory file to embed what waits there, in the command's own thread alone."""
    from recall_core.embedding import DEFAULT
    from recall_core.memory import Memory
    from recall_core.settings import Settings

    return Memory.open(_find(db), embedder=model or DEFAULT, settings=Settings(backfill_interval=math.inf))


def resolve_model(model: str | None) -> Embedder | None:
    """Return the embedder of a folder, or the built-in one; nothing is loaded yet."""
    from recall_core.embedding import DEFAULT, resolve_embedder

    return resolve_embedder(model or DEFAULT)


def locate(db: str | None) -> Path:
    """Return the path of the memory file: the one given, or the default one."""
    if db:
        return Path(db).expanduser()
    from platformdirs import user_data_path

    return user_data_path("dualrecall", appauthor=False) / "memory.db"


def _find(db: str | None) -> Path:
    path = locate(db)
    if not path.exists() and str(path) != ":memory:":
        raise StoreUnavailableError(f"there is no memory at {path} yet; store something with recall add, or give --db")
    return path
