"""Chat messages as records, and back."""

from __future__ import annotations

import json
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock

from recall_core import NewRecord, Record, derive_name
from recall_core.drafting import MAX_TEXT

MESSAGE, ARCHIVED = "message", "archived_message"  # the kinds of these records
KEY = "session_key"  # where the payload has the key of a conversation whose session can't be called so


def to_record(message: ChatMessage, session: str, *, kind: str = MESSAGE, redact: bool | None = None) -> NewRecord:
    """Return the record of a message: its text is the record's, all else the payload; so is all of it where the text is
    longer than that of a record may be.
    """
    content: dict[str, Any] = message.model_dump(mode="json")
    text, name = text_of(message), derive_name(session)
    if _is_plain(message) and len(text) <= MAX_TEXT:
        content["blocks"][0]["text"] = ""
    if name != session:
        content[KEY] = json.dumps(session)  # escaped, since it may be anything
    return NewRecord(
        text=text[:MAX_TEXT], session=name, role=role_of(message), kind=kind, payload=content, redact=redact
    )


def to_message(record: Record) -> ChatMessage:
    """Return the message of a record; one that was stored by other means has its text and its role."""
    if not isinstance(record.payload, dict) or "blocks" not in record.payload:
        roles = {role.value for role in MessageRole}
        role = record.role if record.role in roles else MessageRole.USER.value
        return ChatMessage(role=role, content=record.text)
    message: ChatMessage = ChatMessage.model_validate(record.payload)
    if _is_plain(message) and not text_of(message):
        message.blocks = [message.blocks[0].model_copy(update={"text": record.text})]
    return message


def key_of(record: Record) -> str:
    """Return the key of the conversation that a record belongs to."""
    own = isinstance(record.payload, dict) and KEY in record.payload
    return str(json.loads(record.payload[KEY]) if own else record.session)


def text_of(message: ChatMessage) -> str:
    """Return what a message says, without pictures and calls of tools."""
    return message.content or ""


def role_of(message: ChatMessage) -> str:
    """Return the name of the speaker's role."""
    return str(message.role.value)


def _is_plain(message: ChatMessage) -> bool:
    """Tell whether a message is one text and nothing else: only then can its text stand elsewhere."""
    return len(message.blocks) == 1 and isinstance(message.blocks[0], TextBlock)
