"""SinoMem's database: memories with a category, tags, an importance and an end."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import InvalidInputError
from ..models import NewRecord
from .columns import (
    DELETED,
    Row,
    find_expiry,
    find_scale,
    has_any,
    is_deleted,
    read_importance,
    read_metadata,
    read_name,
    read_rows,
    read_tags,
    read_text,
    read_time,
    read_ttl,
    take_scope,
)
from .entries import Entry, Item, Skipped
from .foreign import ForeignDatabase
from .input import Input

TABLE = "memories"
TEXT = ("content", "text", "memory")
CATEGORY = ("category", "type")
SCOPE = ("scope",)
USER = ("user_id", "agent_id")
NO_CATEGORY = "general"  # what it writes where none was given
NO_TEXT = "memories without text"


class SinoMemSource:
    """Reads an SQLite file with a table `memories` of contents and categories: each row becomes a record."""

    name = "sinomem"

    def detect(self, file: Input) -> bool:
        """Look for the table."""
        if not file.is_sqlite:
            return False
        with file.database() as database:
            return has_any(database, TABLE, TEXT, CATEGORY)

    def read(self, file: Input) -> Iterator[Item]:
        """Yield the memories in the order of their ids."""
        with file.database() as database:
            if not has_any(database, TABLE, TEXT, CATEGORY):
                raise InvalidInputError(f"{file.name} has no table {TABLE} with content and category")
            yield from self._read(database)

    def _read(self, database: ForeignDatabase) -> Iterator[Item]:
        scale = find_scale(database, TABLE, "importance")
        for number, row in enumerate(read_rows(database, TABLE, ["id"]), 1):
            id = row.take("id")
            text = read_text(row.take(*TEXT))
            if is_deleted(row):
                yield Skipped(DELETED, number)
                continue
            if not text.strip():
                yield Skipped(NO_TEXT, number)
                continue
            updated_at = read_time(row.take("updated_at"))
            accessed_at = read_time(row.take("last_accessed", "last_accessed_at", "accessed_at"))
            yield Entry(
                record=self._make_record(row, text, scale),
                key=f"#{number}" if id is None else str(id),
                line=number,
                updated_at=updated_at,
                accessed_at=accessed_at,
            )

    def _make_record(self, row: Row, text: str, scale: float) -> NewRecord:
        created_at = read_time(row.take("created_at", "timestamp"))
        end, ttl = row.take("expires_at", "expires", "expire_at"), read_ttl(row.take("ttl", "ttl_seconds"))
        category = read_name(row.take(*CATEGORY))
        importance = read_importance(row.take("importance", "priority"), scale)
        metadata = read_metadata(row.take("metadata", "meta"))
        if end is not None and read_time(end) is None:
            metadata["expires_at"] = end  # as it is there: no time that can be read
        source = read_name(row.take("source")) or self.name
        if count := row.take("access_count"):
            metadata["access_count"] = count
        return NewRecord(
            text=text,
            scope=take_scope(row, SCOPE, USER),
            session=read_name(row.take("session_id", "session")),
            tags=_join_tags(category, read_tags(row.take("tags"))),
            metadata={**row.rest(), **metadata},
            source=source,
            importance=0.5 if importance is None else importance,
            created_at=created_at,
            expires_at=read_time(end) or find_expiry(created_at, ttl),
        )


def _join_tags(category: str | None, tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags of a memory with its category as the first of them."""
    return tags if category in (None, NO_CATEGORY) else tuple(dict.fromkeys((str(category), *tags)))
