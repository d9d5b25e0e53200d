"""Who speaks: part of what both indexes hold of a text, if it is somebody's name."""

from __future__ import annotations

SPEAKER_LENGTH = 64  # characters of a role that are part of the text; the rest would push it out of a model's window

# Names that say what kind of party speaks, not who: they are no words of the text.
GENERIC_ROLES = frozenset(
    {"user", "assistant", "system", "tool", "human", "ai", "bot", "function"}
    | {"developer", "model", "document", "agent", "data"}
)


def describe_speaker(role: str | None) -> str:
    """Return what precedes a text in both indexes, so that it is found by who said it; "" for generic roles."""
    name = "" if role is None else role.strip()[:SPEAKER_LENGTH]
    return "" if not name or name.casefold() in GENERIC_ROLES else f"{name}: "
