"""CrewAI's memory: a LanceDB table of memories with scopes and categories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError
from ..models import NewRecord
from .columns import (
    Row,
    find_scope,
    read_importance,
    read_metadata,
    read_name,
    read_tags,
    read_text,
    read_time,
)
from .entries import Entry, Item, Skipped
from .input import Input

SUFFIX = ".lance"
TABLE = "memories"
BATCH = 256
COLUMNS = (
    "id", "content", "scope", "categories_str", "metadata_str", "importance", "created_at", "last_accessed", "source",
    "private",
)  # fmt: skip
PRIVATE = "private"  # the kind of what only its source may recall, as the adapter for CrewAI has it, too
NO_TEXT = "memories without text"


class CrewAISource:
    """Reads the folder that CrewAI keeps its memory in, with the help of lancedb. Its vectors stay behind: nothing says
    of which model they are.
    """

    name = "crewai"

    def detect(self, file: Input) -> bool:
        """Look for the folder of a table."""
        return file.path is not None and file.is_folder and _find_table(file.path) is not None

    def read(self, file: Input) -> Iterator[Item]:
        """Yield the memories, in the order in which the table holds them."""
        found = None if file.path is None or not file.is_folder else _find_table(file.path)
        if found is None:
            raise InvalidInputError(f"{file.name} is no folder with a LanceDB table such as {TABLE}{SUFFIX}")
        for number, values in enumerate(_read_table(found), 1):
            row = Row(values)
            text = read_text(row.take("content"))
            if not text.strip():
                yield Skipped(NO_TEXT, number)
                continue
            id, accessed_at = row.take("id"), read_time(row.take("last_accessed"))
            yield Entry(
                record=self._make_record(row, text),
                key=f"#{number}" if id is None else str(id),
                line=number,
                accessed_at=accessed_at,
            )

    def _make_record(self, row: Row, text: str) -> NewRecord:
        importance = read_importance(row.take("importance"))
        return NewRecord(
            text=text,
            kind=PRIVATE if row.take("private") else "memory",
            scope=find_scope(row.take("scope")),
            tags=read_tags(row.take("categories_str")),
            metadata=read_metadata(row.take("metadata_str")),
            source=read_name(row.take("source")) or self.name,
            importance=0.5 if importance is None else importance,
            created_at=read_time(row.take("created_at")),
        )


def _find_table(folder: Path) -> Path | None:
    """Return the folder of the table: the one given, or one in it."""
    if folder.name.endswith(SUFFIX):
        return folder
    known = folder / f"{TABLE}{SUFFIX}"
    if known.is_dir():
        return known
    tables = sorted(path for path in folder.glob(f"*{SUFFIX}") if path.is_dir())
    return tables[0] if len(tables) == 1 else None


def _read_table(path: Path) -> Iterator[dict[str, Any]]:
    try:
        import lancedb
    except ImportError:
        raise InvalidInputError(
            f"{path} is a LanceDB table; to read it, install lancedb (it comes with crewai): pip install lancedb"
        ) from None
    try:
        table = lancedb.connect(str(path.parent)).open_table(path.name.removesuffix(SUFFIX))
        columns = [name for name in COLUMNS if name in table.schema.names]
        if not {"id", "content"} <= set(columns):
            raise InvalidInputError(f"{path} has no columns id and content; it is no memory of CrewAI")
        for batch in table.search().select(columns).to_batches(BATCH):
            yield from batch.to_pylist()
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidInputError(f"{path} can't be read: {error}") from None
