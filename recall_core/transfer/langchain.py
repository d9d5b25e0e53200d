"""LangChain's `SQLChatMessageHistory`: a table of messages as JSON, by session."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping

from ..errors import InvalidInputError
from ..models import Json, NewRecord
from .columns import read_name, read_role
from .content import find_text, tame
from .entries import Damaged, Entry, Item, Skipped
from .foreign import ForeignDatabase
from .input import Input

TABLE = "message_store"  # what it is called by default
COLUMNS = ("id", "session_id", "message")
LEFT_OUT = {"system": "system messages", "tool": "results of tools", "function": "results of tools"}
NO_TEXT = "messages without text"


class LangChainSource:
    """Reads an SQLite file of `SQLChatMessageHistory`: each message becomes a record of its session."""

    name = "langchain"

    def detect(self, file: Input) -> bool:
        """Look for the table."""
        if not file.is_sqlite:
            return False
        with file.database() as database:
            return database.has(TABLE, *COLUMNS)

    def read(self, file: Input) -> Iterator[Item]:
        """Yield the messages in the order of their rows."""
        with file.database() as database:
            if not database.has(TABLE, *COLUMNS):
                raise InvalidInputError(f"{file.name} has no table {TABLE} with {', '.join(COLUMNS)}")
            yield from self._read(database)

    def _read(self, database: ForeignDatabase) -> Iterator[Item]:
        turns: Counter[str] = Counter()
        for row, session, message in database.rows(TABLE, COLUMNS, order=["id"]):
            try:
                kind, data = _parse(message)
            except InvalidInputError as error:
                yield Damaged(str(error), row)
                continue
            text = find_text(data.get("content"))
            if kind in LEFT_OUT or not text.strip():
                yield Skipped(LEFT_OUT.get(kind, NO_TEXT), row)
                continue
            name = read_name(session)
            turns[str(session)] += 1
            record = NewRecord(
                text=text,
                session=name,
                turn=turns[str(session)] if name else None,
                role=read_role(data.get("role") or kind),
                kind="message",
                metadata=_find_metadata(data),
                source=self.name,
            )
            yield Entry(record=record, key=f"{session}/{row}", line=row)


def _parse(message: object) -> tuple[str, Mapping[str, Json]]:
    """Return the type and the fields of a message."""
    try:
        value = json.loads(message) if isinstance(message, str) else message
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"the message is no JSON: {error}") from None
    data = value.get("data", value) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(data, dict):
        raise InvalidInputError(f"the message is no object with type and data, but {type(value).__name__}")
    return str(value.get("type") or data.get("type") or "message"), data


def _find_metadata(data: Mapping[str, Json]) -> dict[str, Json]:
    """Return what a message says of itself: its name, its own id, and what its model was told to add."""
    extra = data.get("additional_kwargs")
    found = dict(extra) if isinstance(extra, dict) else {}
    found.update({name: data[name] for name in ("id", "name", "tool_call_id") if data.get(name)})
    return tame(found)
