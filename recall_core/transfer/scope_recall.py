"""scope-recall's database: chunks of conversations, or memories by scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, groupby, pairwise

from ..errors import InvalidInputError
from ..models import NewRecord
from .columns import (
    DELETED,
    Row,
    find_expiry,
    has_any,
    is_deleted,
    read_importance,
    read_metadata,
    read_name,
    read_role,
    read_rows,
    read_tags,
    read_text,
    read_time,
    read_ttl,
    read_whole,
    take_scope,
)
from .entries import Entry, Item, Skipped
from .foreign import ForeignDatabase
from .input import Input

CHUNKS, MEMORIES = "conversation_chunks", "memories"
TEXT = ("content", "text", "chunk_text", "message_text", "chunk")
SESSION = ("session_id", "conversation_id", "session")
SCOPE = ("scope", "scope_id", "namespace")
USER = ("user_id", "user", "agent_id")
TURN = ("turn_index", "turn", "message_index")
PART = ("chunk_index", "chunk_no", "part_index")
ORDER = (*SCOPE, *USER, *SESSION, *TURN, "role", *PART, "id")
NO_TEXT = "chunks without text"
LEAST_OVERLAP, LONGEST_OVERLAP = 8, 2000  # characters


@dataclass(slots=True)
class _Chunk:
    """A row of `conversation_chunks`, or of `memories`."""

    id: str
    line: int
    scope: str
    session: str | None
    turn: int | None
    role: str | None
    part: int | None
    text: str
    row: Row

    @property
    def message(self) -> tuple[object, ...]:
        """What the parts of one message have in common; a chunk that is no part stands alone."""
        whole = None if self.part is not None and self.turn is not None else self.id
        return self.scope, self.session, self.turn, self.role, whole


class ScopeRecallSource:
    """Reads an SQLite file with `conversation_chunks`, or with `memories` that have a scope_id and a target.

    Chunks of one turn and role become one record again, without what their ends say twice.
    """

    name = "scope-recall"

    def detect(self, file: Input) -> bool:
        """Look for the tables."""
        if not file.is_sqlite:
            return False
        with file.database() as database:
            return bool(_find_tables(database))

    def read(self, file: Input) -> Iterator[Item]:
        """Yield the messages, session by session, and the memories."""
        with file.database() as database:
            tables = _find_tables(database)
            if not tables:
                raise InvalidInputError(
                    f"{file.name} has no table {CHUNKS} with content, nor {MEMORIES} with scope_id and target"
                )
            for table in tables:
                order = ORDER if table == CHUNKS else ("id",)
                chunks = (_read_chunk(number, row) for number, row in enumerate(read_rows(database, table, order), 1))
                for _, parts in groupby(chunks, key=lambda chunk: chunk.message):
                    yield self._make_item(table, list(parts))

    def _make_item(self, table: str, parts: list[_Chunk]) -> Item:
        parts.sort(key=lambda chunk: chunk.part or 0)  # a text column may have sorted 10 before 2
        first = parts[0]
        if is_deleted(first.row):
            return Skipped(DELETED, first.line)
        text = join_parts([part.text for part in parts if part.text.strip()])
        if not text:
            return Skipped(NO_TEXT, first.line)
        updated_at = read_time(first.row.take("updated_at"))
        return Entry(
            record=self._make_record(first, text),
            key=f"{table}/{first.id}",
            line=first.line,
            updated_at=updated_at,
        )

    def _make_record(self, chunk: _Chunk, text: str) -> NewRecord:
        row = chunk.row
        created_at = read_time(row.take("created_at", "timestamp", "ingested_at", "ts"))
        importance = read_importance(row.take("importance"))
        end, ttl = read_time(row.take("expires_at")), read_ttl(row.take("ttl"))
        tags = (*read_tags(row.take("target")), *read_tags(row.take("tags", "labels")))
        metadata = read_metadata(row.take("metadata", "meta"))
        source = read_name(row.take("source")) or self.name
        row.take("summary", "block_content")  # made of the text
        return NewRecord(
            text=text,
            scope=chunk.scope,
            session=chunk.session,
            turn=chunk.turn,
            role=chunk.role,
            kind="message" if chunk.session is not None and chunk.role is not None else "memory",
            tags=tuple(dict.fromkeys(tags)),
            metadata={**row.rest(), **metadata},
            source=source,
            importance=0.5 if importance is None else importance,
            created_at=created_at,
            expires_at=end or find_expiry(created_at, ttl),
        )


def join_parts(parts: list[str]) -> str:
    """Return the text that was cut into these parts. Where one begins with the end of the one before, that is said
    once; parts with nothing in common stand on lines of their own.
    """
    overlaps = [_find_overlaps(before, after) for before, after in pairwise(parts)]
    common = Counter(chain.from_iterable(overlaps))
    joined = parts[0] if parts else ""
    for part, lengths in zip(parts[1:], overlaps, strict=True):
        # Text that repeats itself overlaps in several ways: what most parts have in common is how it was cut.
        overlap = min(lengths, key=lambda length: (-common[length], length), default=0)
        joined += part[overlap:] if overlap else f"\n{part}"
    return joined


def _find_overlaps(before: str, after: str) -> list[int]:
    """Return the numbers of characters at the end of one text that begin the other."""
    longest = min(len(before), len(after), LONGEST_OVERLAP)
    return [length for length in range(LEAST_OVERLAP, longest + 1) if before.endswith(after[:length])]


def _read_chunk(number: int, row: Row) -> _Chunk:
    id = row.take("id", "chunk_id", "memory_id")
    return _Chunk(
        id=f"#{number}" if id is None else str(id),
        line=number,
        scope=take_scope(row, SCOPE, USER),
        session=read_name(row.take(*SESSION)),
        turn=read_whole(row.take(*TURN)),
        role=read_role(row.take("role", "speaker")),
        part=read_whole(row.take(*PART)),
        text=read_text(row.take(*TEXT)),
        row=row,
    )


def _find_tables(database: ForeignDatabase) -> list[str]:
    tables = [CHUNKS] if has_any(database, CHUNKS, TEXT) else []
    if has_any(database, MEMORIES, ("content",), ("scope_id",), ("target",)):
        tables.append(MEMORIES)
    return tables
