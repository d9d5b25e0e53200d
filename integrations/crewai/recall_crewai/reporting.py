"""Failures that CrewAI tells nobody of but listeners to its events: they are written to Python's log."""

from __future__ import annotations

import logging
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
        if _concerns_us(source):
            logger.error("a memory was NOT stored (%s): %s", event.value, event.error)

    @crewai_event_bus.on(MemoryQueryFailedEvent)
    def report_query(source: Any, event: MemoryQueryFailedEvent) -> None:
        if _concerns_us(source):
            logger.error("the memory could not be asked: %s", event.error)


def _concerns_us(source: Any) -> bool:
    """Tell whether a memory has a storage of ours, and does not report itself."""
    return isinstance(getattr(source, "_storage", None), Listing) and not getattr(source, "reports_itself", False)
