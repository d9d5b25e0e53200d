"""LangChain's messages as records, and back without a loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)
from langchain_core.messages.ai import add_ai_message_chunks

from recall_core import Record, derive_name
from recall_core.drafting import MAX_TEXT

KIND = "message"
PAYLOAD = "langchain"  # the key of the message in the payload
ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "function": "tool"}


def role_of(message: BaseMessage) -> str:
    """Return the role of a message's record."""
    role = message.role if isinstance(message, ChatMessage) else ""
    return role if role and derive_name(role) == role else ROLES.get(message.type, message.type)


def text_of(message: BaseMessage) -> str:
    """Return what a message is found by: what it says, as far as a record can have it. Its payload has all of it."""
    return str(message.text)[:MAX_TEXT]


def to_payload(message: BaseMessage) -> dict[str, Any]:
    """Return a message as JSON that `to_message` makes the same message of.

    What JSON can't hold, such as an object that a tool left as its artifact, is replaced by a note of its type.
    """
    return {PAYLOAD: _as_json(message_to_dict(message))}


def to_message(record: Record) -> BaseMessage:
    """Return the message that a record was made of; of another's record, one with its text."""
    stored = record.payload.get(PAYLOAD) if isinstance(record.payload, Mapping) else None
    if isinstance(stored, Mapping):
        return messages_from_dict([dict(stored)])[0]
    match record.role:
        case "user" | None:
            return HumanMessage(record.text, id=record.id)
        case "assistant":
            return AIMessage(record.text, id=record.id)
        case "system":
            return SystemMessage(record.text, id=record.id)
        case "tool":
            return ToolMessage(record.text, id=record.id, tool_call_id=record.id)
    return ChatMessage(content=record.text, role=record.role, id=record.id)


def join_chunks(before: BaseMessage, message: BaseMessage) -> AIMessageChunk | None:
    """Return both as one if the second is the next part of the first, streamed one, else None."""
    if not (isinstance(before, AIMessageChunk) and isinstance(message, AIMessageChunk)):
        return None
    return add_ai_message_chunks(before, message) if message.id is not None and before.id == message.id else None


def _as_json(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(key): _as_json(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_as_json(item) for item in value]
    return {"not_stored": f"{type(value).__module__}.{type(value).__qualname__}"}
