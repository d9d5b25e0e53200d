"""How a file that may be damaged is reached: nothing of its content is taken for granted, or written unasked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import apsw

from ...errors import StoreError, StoreUnavailableError
from ..connection import MEMORY_PATH, Patience, connect_reader
from ..database import Database
from ..faults import translate_errors
from ..filesystem import explain_kind, find_obstacle


class Access(Protocol):
    """A file to examine or repair."""

    def read(self) -> contextlib.AbstractContextManager[apsw.Connection]:
        """Give a connection; all that is read in one such block is of one moment."""
        ...

    def write(self) -> contextlib.AbstractContextManager[apsw.Connection]:
        """Give a connection inside a transaction that is committed at the end."""
        ...

    def trial(self) -> contextlib.AbstractContextManager[apsw.Connection]:
        """Give a connection inside a transaction that is rolled back at the end."""
        ...


class FileAccess:
    """A file by a connection of its own, which works where `Database` refuses to: without migrations or settings."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    @contextlib.contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Give a connection; all that is read in one such block is of one moment."""
        with self._within("BEGIN", "ROLLBACK") as connection:
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[apsw.Connection]:
        """Give a connection inside a transaction that is committed at the end."""
        with self._within("BEGIN IMMEDIATE", "COMMIT") as connection:
            yield connection

    @contextlib.contextmanager
    def trial(self) -> Iterator[apsw.Connection]:
        """Give a connection inside a transaction that is rolled back at the end."""
        with self._within("BEGIN IMMEDIATE", "ROLLBACK") as connection:
            yield connection

    @contextlib.contextmanager
    def _within(self, begin: str, end: str) -> Iterator[apsw.Connection]:
        self._connection.execute(begin)
        try:
            yield self._connection
            self._connection.execute(end)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise


class MemoryAccess:
    """A database in RAM, which no other connection reaches."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextlib.contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Give a connection; all that is read in one such block is of one moment."""
        with _untranslated(), self._database.read() as connection:
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[apsw.Connection]:
        """Give a connection inside a transaction that is committed at the end."""
        with _untranslated(), self._database.write() as connection:
            yield connection

    @contextlib.contextmanager
    def trial(self) -> Iterator[apsw.Connection]:
        """Give a connection inside a transaction that is rolled back at the end."""
        with contextlib.suppress(_UndoneError), self.write() as connection:
            yield connection
            raise _UndoneError


@contextlib.contextmanager
def _untranslated() -> Iterator[None]:
    """Raise SQLite's own errors, as checks want them."""
    try:
        yield
    except StoreError as error:
        if isinstance(error.__cause__, apsw.Error):
            raise error.__cause__ from None
        raise


class _UndoneError(Exception):
    """Rolls a trial back."""


@contextlib.contextmanager
def open_access(path: str, busy_timeout: float, *, repairs: bool = False) -> Iterator[FileAccess]:
    """Open an existing file to look at it, however damaged it is; with `repairs` also to write.

    Raises StoreUnavailableError, NotADatabaseError and the other errors of a file.
    """
    with translate_errors(path):
        connection = _connect(path, busy_timeout)
        try:
            connection.set_busy_handler(Patience(busy_timeout))
            connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            if repairs:
                with contextlib.suppress(apsw.CorruptError):  # the schema can't be read
                    connection.pragma("secure_delete", True)
            else:  # whoever only looks leaves the log to those who write
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            yield FileAccess(connection)
        finally:
            connection.close()


def _connect(path: str, busy_timeout: float) -> apsw.Connection:
    """Open a file for reading and writing, or else for reading."""
    if path == MEMORY_PATH or not Path(path).exists():
        raise apsw.CantOpenError(f"there is no file at {path}")
    if reason := explain_kind(path):
        raise StoreUnavailableError(f"{path} can't be examined: {reason}")
    if find_obstacle(path) is not None:
        return connect_reader(path, Patience(busy_timeout))
    return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
