"""The four tools that an agent gets, and what they answer: JSON, errors included."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

from recall_core import View, derive_name
from recall_core.errors import InvalidInputError, RecallError

from .mirror import KIND as MIRRORED
from .transcript import Transcript

SEARCH, REMEMBER, FORGET, STATUS = "recall_search", "recall_remember", "recall_forget", "recall_status"
NOTHING = "Nothing relevant is remembered."
MOST_FOUND = 20
MAX_CHARS = 4000


def _schema(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "parameters": parameters}


SCHEMAS = [
    _schema(
        SEARCH,
        "Search the long-term memory of all earlier conversations with this user, by meaning and by words. What is "
        "relevant to a message is recalled anyhow; search for more, or in other words.",
        {
            "query": {"type": "string", "description": "A question or keywords, in the user's language."},
            "limit": {"type": "integer", "description": f"How many memories, 1 to {MOST_FOUND}. Default 5."},
        },
        ["query"],
    ),
    _schema(
        REMEMBER,
        "Keep a fact, preference or decision in the long-term memory. Conversations are remembered anyhow; this is for "
        "what has to be found later in exactly these words.",
        {"text": {"type": "string", "description": "One fact, as a sentence that can be understood alone."}},
        ["text"],
    ),
    _schema(
        FORGET,
        "Delete a memory, since the user wants it or since it is wrong. It can be restored for 30 days.",
        {
            "id": {"type": "string", "description": "The id that recall_search shows in brackets."},
            "permanently": {"type": "boolean", "description": "Leave no trace that could be restored. Default false."},
        },
        ["id"],
    ),
    _schema(STATUS, "Tell the state of the long-term memory: how much it holds and what failed.", {}, []),
]


class Tools:
    """Answers the calls of one agent, in its scope."""

    def __init__(
        self, view: View, transcript: Transcript, *, writes: bool, redact: bool, status: Callable[[], dict[str, Any]]
    ) -> None:
        self._view = view
        self._transcript = transcript
        self._writes = writes
        self._redact = redact
        self._status = status

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the answer to a call, as JSON."""
        known = {SEARCH: self._search, REMEMBER: self._remember, FORGET: self._forget, STATUS: self._tell}
        if name not in known:
            return fail(f"there is no tool {name!r}; there are {', '.join(known)}")
        try:
            return json.dumps(known[name](arguments), ensure_ascii=False)
        except RecallError as error:
            return fail(str(error))

    def _search(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        query, limit = _text(arguments, "query"), _number(arguments, "limit", default=5, most=MOST_FOUND)
        return {"memories": self._view.context(query, nothing=NOTHING, limit=limit, max_chars=MAX_CHARS)}

    def _remember(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self._check_writes()
        session = self._transcript.session
        record = self._view.add(
            _text(arguments, "text"),
            session=derive_name(session) if session else None,
            source="agent",
            importance=0.7,
            redact=self._redact,
            on_duplicate="touch",
        )
        return {"remembered": record.id, "text": record.text}

    def _forget(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self._check_writes()
        id, permanently = _text(arguments, "id").strip("[] "), _choice(arguments, "permanently")
        found = self._view.get(id)
        if found and found[0].kind == MIRRORED:
            raise InvalidInputError(
                f"{id} is an entry of {found[0].source}, which would bring it back; remove it with the memory tool"
            )
        if not self._view.delete(id, hard=permanently):
            raise InvalidInputError(f"nothing with the id {id} is remembered; {SEARCH} shows the ids")
        for record in found:
            self._transcript.forget(record)
        return {"forgotten": id, "restorable": not permanently}

    def _tell(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self._status()

    def _check_writes(self) -> None:
        if not self._writes:
            raise InvalidInputError("this agent works in the background, where memories can be read but not changed")


def fail(why: str) -> str:
    """Return an error as a tool's answer."""
    return json.dumps({"error": why}, ensure_ascii=False)


# Models write numbers and choices in words, and texts as numbers: what can mean but one thing is taken for that.


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError(f"{name} is {value!r}; give a text")
    return text.strip()


def _number(arguments: Mapping[str, Any], name: str, *, default: int, most: int) -> int:
    value = arguments.get(name)
    if value is None or value == "":
        return default
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number.is_integer() or not 1 <= number <= most:
        raise InvalidInputError(f"{name} is {value!r}; it must be a whole number from 1 to {most}")
    return int(number)


def _choice(arguments: Mapping[str, Any], name: str) -> bool:
    value = arguments.get(name)
    word = value.strip().lower() if isinstance(value, str) else value
    known = {None: False, "": False, "false": False, "true": True, True: True, False: False}
    if not isinstance(word, str | bool | NoneType) or word not in known:
        raise InvalidInputError(f"{name} is {value!r}; it must be true or false")
    return known[word]
