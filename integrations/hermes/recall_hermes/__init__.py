"""Long-term memory for the Hermes Agent: a memory provider that translates between it and recall_core.

Hermes looks for the word MemoryProvider in a provider's source and imports all providers to list them: nothing heavy is
imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .provider import RecallMemoryProvider

__version__ = "0.5.0"

__all__ = ["RecallMemoryProvider", "register"]


def register(ctx: Any) -> None:
    """Give Hermes a new provider: it asks for one for each agent that it makes."""
    from .provider import RecallMemoryProvider

    ctx.register_memory_provider(RecallMemoryProvider())


def __getattr__(name: str) -> object:
    if name != "RecallMemoryProvider":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .provider import RecallMemoryProvider

    return RecallMemoryProvider
