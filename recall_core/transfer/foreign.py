"""Other programs' SQLite files, read and never written: the one module here that speaks SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import apsw

from ..errors import InvalidInputError

BUSY_MILLISECONDS = 10_000
TABLES = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"

COLUMNS = "SELECT name FROM pragma_table_xinfo(?)"


class ForeignDatabase:
    """Another program's SQLite file, opened for reading only; what lies in its log beside it is seen, too.

    Use it as a context manager. What is read is of the moment of the first read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        uri = f"file:{quote(str(path.absolute()))}?mode=ro"
        try:
            self._connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        except apsw.Error as error:
            raise InvalidInputError(f"{path} can't be read: {error}") from None
        try:
            self._connection.set_busy_timeout(BUSY_MILLISECONDS)
            self._connection.pragma("trusted_schema", False)
            self._connection.execute("BEGIN")
            self._encoding = {"UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}.get(
                self._connection.pragma("encoding"), "utf-8"
            )
            self.tables = self._read_tables()
        except apsw.Error as error:
            self._connection.close()
            raise InvalidInputError(f"{path} can't be read: {_explain(error)}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def has(self, table: str, *columns: str) -> bool:
        """Tell whether there is a table with these columns."""
        return table in self.tables and set(columns) <= set(self.tables[table])

    def rows(self, table: str, columns: Sequence[str], order: Sequence[str] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a table: the values of `columns`, None for a column that it has not, in the order of the
        columns `order` that it has, or else of their making.

        Values are what SQLite holds: None, int, float, str, bytes. Bytes in a text that are no text become U+FFFD.
        Raises InvalidInputError where the file is damaged.
        """
        known = self.tables[table]
        selected = [_select(name) if name in known else "'null', NULL" for name in columns]
        ordered = ", ".join(_quote(name) for name in order if name in known)
        sql = f"SELECT {', '.join(selected)} FROM {_quote(table)}" + (f" ORDER BY {ordered}" if ordered else "")
        try:
            for row in self._connection.execute(sql):
                yield tuple(self._read(kind, value) for kind, value in zip(row[::2], row[1::2], strict=True))
        except apsw.Error as error:
            raise InvalidInputError(f"the table {table} of {self.path} can't be read: {_explain(error)}") from None

    def _read_tables(self) -> Mapping[str, tuple[str, ...]]:
        tables = [str(table) for (table,) in self._connection.execute(TABLES).fetchall()]
        return {
            table: tuple(str(name) for (name,) in self._connection.execute(COLUMNS, (table,)).fetchall())
            for table in tables
        }

    def _read(self, kind: object, value: Any) -> Any:
        return value.decode(self._encoding, "replace") if kind == "text" else value


def _select(name: str) -> str:
    """Return a column's type and value; text as bytes, since that of another program may be no text."""
    column = _quote(name)
    return f"typeof({column}), CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _explain(error: apsw.Error) -> str:
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError):
        return f"{error}; its log can't be opened here: copy the file with its -wal to a folder that you can write to"
    return str(error)
