"""A conversation: records of one session, in the order of their turns."""

from __future__ import annotations

from datetime import datetime
from typing import Unpack

from .deletion import delete_session
from .drafting import check_limit
from .engine import Engine, write_record
from .errors import InvalidInputError, RecordNotFoundError
from .models import AddArguments, NewRecord, Record
from .store import SessionInfo
from .times import from_micros


class Session:
    """One conversation of a memory, in one scope. Nothing is stored until something is said."""

    def __init__(self, engine: Engine, scope: str, id: str) -> None:
        self._engine = engine
        self._scope = scope
        self._id = id

    def __repr__(self) -> str:
        return f"Session({self._id!r}, scope={self._scope!r})"

    @property
    def id(self) -> str:
        """The session's id, unique within its scope."""
        return self._id

    @property
    def scope(self) -> str:
        """The scope that the session's records lie in, as a full path."""
        return self._scope

    @property
    def title(self) -> str | None:
        """The title it was given."""
        info = self._info()
        return None if info is None else info.title

    @property
    def created_at(self) -> datetime | None:
        """When its first message was made (or it was given a title), None if there is nothing yet."""
        info = self._info()
        return None if info is None else from_micros(info.created_at)

    @property
    def updated_at(self) -> datetime | None:
        """When its last message was made (or it was given a title), None if there is nothing yet."""
        info = self._info()
        return None if info is None else from_micros(info.updated_at)

    def append(self, role: str, text: str, *, turn: int | None = None, **arguments: Unpack[AddArguments]) -> Record:
        """Add a message and return it. With a `turn` that this role has already spoken in, nothing is changed and the
        message stored then is returned; without a turn the message is always kept.
        """
        foreign = sorted(arguments.keys() - AddArguments.__annotations__.keys())
        if foreign:
            raise InvalidInputError(f"append takes no {foreign[0]!r}; a message lies in the scope of its session")
        arguments.setdefault("kind", "message")
        new = NewRecord(text=text, role=role, turn=turn, session=self._id, **arguments)
        return write_record(self._engine, self._scope, new, once_per_turn=True)

    def messages(self, limit: int = 50, before: str | Record | None = None) -> list[Record]:
        """Return the last `limit` messages in turn order, or the last ones before the message `before`.

        Messages without a turn follow those with one, in the order of their time. Raises RecordNotFoundError if
        `before` is no message of this session.
        """
        check_limit(limit)
        mark = before.id if isinstance(before, Record) else before
        sessions = self._engine.store.sessions
        if mark is not None and not sessions.holds(self._scope, self._id, mark):
            raise RecordNotFoundError(f"{mark!r} is no message of the session {self._id!r}; it may have been deleted")
        return sessions.messages(self._scope, self._id, limit, mark, self._engine.now())

    def delete(self, *, hard: bool = False) -> int:
        """Delete the session with all of its messages; return how many there were.

        `Memory.restore` brings messages back for `Settings.trash_days`, and with them the title. `hard` deletes them
        for good, from the trash too.
        """
        return delete_session(self._engine, self._scope, self._id, hard=hard)

    def _info(self) -> SessionInfo | None:
        return self._engine.store.sessions.find(self._scope, self._id, self._engine.now())
