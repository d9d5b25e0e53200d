"""Finds and opens the memory file that a command works on."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

from recall_core.errors import InvalidInputError, StoreUnavailableError

from .output import tell

if TYPE_CHECKING:
    from recall_core.memory import Memory
    from recall_core.models import Embedder


def open_existing(db: str | None) -> Memory:
    """Open a memory file for a command that needs no vectors: no model is loaded."""
    from recall_core.memory import Memory

    return Memory.open(find_existing(db), embedder=None)


def open_for_search(db: str | None, model: str | None, mode: str, reranker: str | None = None) -> Memory:
    """Open a memory file for a search in `mode`, with the model of a folder or the built-in one if vectors count, and
    with the cross-encoder of the folder `reranker`.
    """
    from recall_core.embedding import CrossEncoder
    from recall_core.memory import Memory
    from recall_core.settings import Settings

    settings = Settings(reranker=CrossEncoder(reranker) if reranker else None)
    embedder = None if mode == "keyword" else resolve_model(model)
    return Memory.open(find_existing(db), embedder=embedder, settings=settings)


def open_for_writing(db: str | None, model: str | None) -> Memory:
    """Open a memory file, made if missing, to add to it."""
    from recall_core.memory import Memory

    path = locate(db)
    if str(path) == ":memory:":
        tell(":memory: is gone when this command ends, with all that is stored in it; give a file to keep it")
    return Memory.open(path, embedder=resolve_model(model))


def open_server_memory(db: str | None, model: str | None, *, redact: bool) -> Memory:
    """Open a memory file, made if missing, for a server."""
    from recall_core.memory import Memory
    from recall_core.settings import Settings

    return Memory.open(locate(db), embedder=resolve_model(model), settings=Settings(redact=redact))


def open_hook_memory(db: str | None, busy_timeout: float) -> Memory:
    """Open a memory file for a hook: no model is loaded; what is stored is redacted, and waits for its vectors."""
    from recall_core.memory import Memory
    from recall_core.settings import Settings

    settings = Settings(redact=True, busy_timeout=busy_timeout)
    return Memory.open(locate(db), embedder=None, settings=settings)


def open_for_embedding(db: str | None, model: str | None) -> Memory:
    """Open a memory file to embed what waits there, in the command's own thread alone."""
    from recall_core.memory import Memory
    from recall_core.settings import Settings

    return Memory.open(find_existing(db), embedder=resolve_model(model), settings=Settings(backfill_interval=math.inf))


def resolve_model(model: str | None) -> Embedder:
    """Return the embedder that a `--model` means: the built-in one for none, a folder, a name of `recall models list`,
    PROVIDER:MODEL for a provider of `HttpEmbedder` (its key comes from the environment), or URL#MODEL for another
    server, whose key is RECALL_API_KEY. Nothing is loaded or asked yet.
    """
    from recall_core.embedding import DEFAULT, HttpEmbedder, resolve_embedder
    from recall_core.embedding.providers import PROVIDERS

    if model is None:
        return cast("Embedder", resolve_embedder(DEFAULT))
    if model.startswith(("http://", "https://")):
        url, _, name = model.partition("#")
        return HttpEmbedder(name or None, base_url=url, api_key=os.environ.get("RECALL_API_KEY"))
    prefix, colon, name = model.partition(":")
    for provider in PROVIDERS:
        if colon and prefix == provider and not Path(model).exists():
            return HttpEmbedder(name or None, provider=provider)
    return cast("Embedder", resolve_embedder(model))  # None is for None alone


def locate(db: str | None) -> Path:
    """Return the path of the memory file: the one given, or the default one. Raises InvalidInputError for an empty one,
    which comes of a variable that is not set: the default one is not meant then.
    """
    if db == "":
        raise InvalidInputError("--db is empty; give the path of a file, or leave it out for the default one")
    if db is not None:
        return Path(db).expanduser()
    from platformdirs import user_data_path

    return user_data_path("dualrecall", appauthor=False) / "memory.db"


def find_existing(db: str | None) -> Path:
    """Return the path of the memory file. Raises StoreUnavailableError if there is none."""
    path = locate(db)
    if not path.exists() and str(path) != ":memory:":
        raise StoreUnavailableError(f"there is no memory at {path} yet; store something with recall add, or give --db")
    return path
