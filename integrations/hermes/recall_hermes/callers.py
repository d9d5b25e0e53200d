"""Who speaks with an agent, hence whose memory it is and whether anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recall_core import escape_segment

PRIMARY = "primary"
KINDS = ("profile", "user", "chat")  # of scopes; the name of the profile follows
GROUPLESS = ("", "dm", "private", "direct")  # chats of one user


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose memory it is, as a scope; the scope of the profile; and whether this agent may write at all."""

    scope: str
    profile: str
    writes: bool


def find_caller(given: Mapping[str, Any]) -> Caller:
    """Return the caller that the arguments of `initialize` describe.

    A user of the gateway has a memory of their own on each platform. Where several users share one session, its memory
    is that of the chat, so that nobody's own memories are shown to the others. All else is the profile's.
    """
    identity = _text(given, "agent_identity") or "default"
    profile = _join("profile", identity)
    writes = (_text(given, "agent_context") or PRIMARY) == PRIMARY and _text(given, "platform") != "cron"
    return Caller(_find_scope(given, identity) or profile, profile, writes)


def rename_scope(scope: str, old: str, new: str) -> str:
    """Return the scope that one of the profile `old` has under its new name."""
    kind, *rest = scope.split("/")
    if kind not in KINDS or not rest or rest[0] != escape_segment(old):
        return scope
    return "/".join([kind, escape_segment(new), *rest[1:]])


def _find_scope(given: Mapping[str, Any], identity: str) -> str | None:
    platform = _text(given, "platform") or "unknown"
    user = _text(given, "user_id_alt") or _text(given, "user_id")
    chat = _text(given, "chat_id")
    if _is_shared(given) and chat:
        thread = [part for part in (_text(given, "thread_id"),) if part]
        return _join("chat", identity, platform, chat, *thread)
    if user:
        return _join("user", identity, platform, user)
    return _join("chat", identity, platform, chat) if chat else None


def _is_shared(given: Mapping[str, Any]) -> bool:
    """Tell whether users share the session: then its key, which Hermes made, does not end with the user."""
    if _text(given, "chat_type") in GROUPLESS:
        return False
    ids = {_text(given, "user_id_alt"), _text(given, "user_id")} - {""}
    return not any(_text(given, "gateway_session_key").endswith(f":{one}") for one in ids)


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    return "" if value is None else str(value).strip()


def _join(*labels: str) -> str:
    return "/".join(map(escape_segment, labels))
