"""The state of the memory of a Hermes home, for users and agents."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recall_core import Memory, View

from .config import Config
from .files import OpenFile
from .health import Failure, read_failure
from .mirror import make_filter
from .names import memory_file
from .waiting import count_waiting


def describe_home(home: Path, memory: Memory) -> dict[str, Any]:
    """Return what is stored in a home, what waits and what failed last, in whichever process."""
    stats = memory.stats()
    newest = memory.records(newest_first=True, limit=1)
    return {
        "file": str(memory_file(home)),
        "memories": stats.records,
        "sessions": stats.sessions,
        "mirrored entries": memory.count(where=make_filter()),
        "last change": newest[0].updated_at.isoformat(timespec="seconds") if newest else None,
        "not stored yet": count_waiting(home),
        "waiting for a vector": stats.pending,
        "not embeddable": stats.resting,
        "megabytes": round(stats.file_bytes / 1e6, 1),
        "notes": list(stats.notes),
        "last failure": describe_failure(read_failure(home)),
    }


def describe_agent(
    file: OpenFile, view: View, config: Config, *, waiting: int, last_stored: float | None, last_recall: str
) -> dict[str, Any]:
    """Return the state that one agent sees."""
    return {
        "memories": view.count(),
        "scope": view.scope,
        "search": "by meaning and words" if file.warm else "by words until the model is loaded",
        "model error": file.model_error,
        "captures": config.capture,
        "not stored yet": waiting,
        "last turn stored": None if last_stored is None else format_time(last_stored),
        "last recall": last_recall,
        "waiting for a vector": file.memory.stats().pending,
    }


def describe_failure(failure: Failure | None) -> str | None:
    """Return a failure in words."""
    if failure is None:
        return None
    return f"{format_time(failure.at)} in {failure.where}: {failure.error} ({failure.count} in all)"


def format_time(seconds: float) -> str:
    """Return a time as it is shown."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
