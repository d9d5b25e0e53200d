"""Failures that CrewAI tells nobody of but listeners to its events, if they live that long: written to Python's log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from crewai.events.event_bus import crewai_event_bus
from crewai.events.types.memory_events import MemoryQueryFailedEvent, MemorySaveFailedEvent

from .listing import Listing

logger = logging.getLogger("recall_crewai")


@cache
def report_failures() -> None:
    """From now on report what a `Memory` of CrewAI fails to save in a storage of ours, or to find there."""

    @crewai_event_bus.on(MemorySaveFailedEvent)
    def report_save(source: Any, event: MemorySaveFailedEvent) -> None:
        if _concerns_us(source) and event.error != str(source._storage.reported):
            logger.error("a memory was NOT stored (%s): %s", event.value, event.error)

    @crewai_event_bus.on(MemoryQueryFailedEvent)
    def report_query(source: Any, event: MemoryQueryFailedEvent) -> None:
        if _concerns_us(source):
            logger.error("the memory could not be asked: %s", event.error)


@contextmanager
def reporting(storage: Any, count: int) -> Iterator[None]:
    """Log at once what keeps `count` memories from being stored; a process may end before an event is handled."""
    try:
        yield
    except Exception as error:
        report(storage, count, error)
        raise


def report(storage: Any, count: int, error: Exception) -> None:
    """Log what kept `count` memories from being stored, unless it was logged already."""
    if storage.reported is not error:
        logger.error("%d memories were NOT stored in %r: %s", count, storage, error)
    storage.reported = error


def _concerns_us(source: Any) -> bool:
    """Tell whether a memory has a storage of ours, and does not report itself."""
    return isinstance(getattr(source, "_storage", None), Listing) and not getattr(source, "reports_itself", False)
