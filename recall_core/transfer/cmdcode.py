"""CmdCode's database, and others of its kind: sessions, and messages with roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ..errors import InvalidInputError
from ..models import NewRecord
from .columns import (
    DELETED,
    Row,
    find_scope,
    has_any,
    is_deleted,
    read_metadata,
    read_name,
    read_role,
    read_rows,
    read_tags,
    read_text,
    read_time,
    read_whole,
)
from .entries import Entry, Item, Skipped, TitleEntry
from .foreign import ForeignDatabase
from .input import Input

ID = ("id", "message_id", "uuid", "session_id")
SESSION = ("session_id", "conversation_id", "session", "chat_id", "thread_id")
ROLE = ("role", "sender", "author", "type")
TEXT = ("content", "text", "message", "body")
TURN = ("turn", "turn_index", "turn_number", "sequence", "seq", "message_index", "position", "idx")
TIME = ("created_at", "timestamp", "time", "created", "ts", "date", "started_at")
UPDATED = ("updated_at", "modified_at", "updated", "last_active_at", "ended_at")
TITLE = ("title", "name", "summary")
TAGS = ("tags", "labels")
METADATA = ("metadata", "meta", "metadata_json", "extra")
USER = ("user_id", "user", "username")
NO_TEXT = "messages without text"
LONGEST_FACT = 200  # characters of what is told of a session


class CmdCodeSource:
    """Reads an SQLite file with the tables `sessions` and `messages`: each message becomes a record of its session."""

    name = "cmdcode"

    def detect(self, file: Input) -> bool:
        """Look for the tables."""
        if not file.is_sqlite:
            return False
        with file.database() as database:
            return _is_known(database)

    def read(self, file: Input) -> Iterator[Item]:
        """Yield the messages in the order of their rows, then the titles of sessions without any."""
        with file.database() as database:
            if not _is_known(database):
                raise InvalidInputError(
                    f"{file.name} has no tables sessions and messages, the latter with session_id, role and content"
                )
            yield from self._read(database)

    def _read(self, database: ForeignDatabase) -> Iterator[Item]:
        sessions = {session.id: session for session in map(_Session, read_rows(database, "sessions"))}
        places: Counter[str] = Counter()
        told: set[str] = set()
        for number, row in enumerate(read_rows(database, "messages", ["id"]), 1):
            id = row.take("id", "message_id", "uuid")
            session_id = read_name(row.take(*SESSION)) or ""
            text = read_text(row.take(*TEXT))
            session = sessions.get(session_id)
            if is_deleted(row) or (session is not None and session.is_deleted):
                yield Skipped(DELETED, number)
                continue
            if not text.strip():
                yield Skipped(NO_TEXT, number)
                continue
            places[session_id] += 1
            key = f"#{number}" if id is None else str(id)
            told.add(session_id)
            yield Entry(
                record=self._make_record(row, text, session_id, session, places[session_id]),
                key=key,
                line=number,
                title=None if session is None else session.title,
            )
        for id, session in sessions.items():
            if id not in told and session.title and not session.is_deleted:
                yield TitleEntry(
                    scope=find_scope(None, user=session.user),
                    session=id,
                    title=session.title,
                    created_at=session.created_at,
                )

    def _make_record(self, row: Row, text: str, id: str, session: _Session | None, place: int) -> NewRecord:
        time, role, turn = row.take(*TIME), read_role(row.take(*ROLE)), read_whole(row.take(*TURN))
        user = row.take(*USER) or (None if session is None else session.user)
        created_at = read_time(time)
        metadata = read_metadata(row.take(*METADATA))
        if time is not None and created_at is None:
            metadata["created_at"] = time  # as it is there: no time that can be read
        return NewRecord(
            text=text,
            scope=find_scope(None, user=user),
            session=id or None,
            turn=place if turn is None else turn,
            role=role,
            kind="message",
            tags=read_tags(row.take(*TAGS)),
            metadata={**({} if session is None else session.metadata), **row.rest(), **metadata},
            source=self.name,
            created_at=created_at,
        )


class _Session:
    """What is known of a session."""

    def __init__(self, row: Row) -> None:
        self.id = read_name(row.take(*ID)) or ""
        self.title = read_name(row.take(*TITLE))
        self.user = row.take(*USER)
        self.created_at = read_time(row.take(*TIME))
        self.is_deleted = is_deleted(row)
        row.take(*UPDATED)
        given = read_metadata(row.take(*METADATA))
        kept = row.rest()
        self.metadata: Mapping[str, object] = {
            name: value
            for name, value in {**kept, **given}.items()
            if isinstance(value, str) and len(value) <= LONGEST_FACT  # it stands with each of its messages
        }


def _is_known(database: ForeignDatabase) -> bool:
    return has_any(database, "sessions", ID) and has_any(database, "messages", SESSION, ROLE, TEXT)
