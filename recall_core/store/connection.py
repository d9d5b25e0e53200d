"""A connection to a memory file: how it is opened, and how it waits for other programs."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import apsw

from ..errors import StoreUnavailableError
from .compile import FOLD_FUNCTION, SQLValue, fold_text
from .filesystem import explain_kind, explain_path, has_log
from .migrations import check_file
from .schema import PAGE_SIZE

logger = logging.getLogger("recall_core")

MEMORY_PATH = ":memory:"
CACHE_KIB = 16 * 1024
# From so many pages in the log on, each commit copies them into the file, as far as that hinders nobody. While several
# processes write without a pause it never gets to the end, and the log never begins anew: from so many more on, the
# others are made to wait for it. (Eight writers and two readers left a log of 650 MB for a file of 9 MB otherwise.)
CHECKPOINT_PAGES, LONGEST_LOG_PAGES = 1_000, 4_000
CHECKPOINT_WAIT = 0.25  # seconds
MMAP_BYTES = 1 << 30  # address space, not memory: vectors are read without being copied first

Durability = Literal["normal", "full"]


@dataclass(slots=True)
class Deadline:
    """When who uses a file gives up waiting for others, however long it would otherwise; on the monotonic clock."""

    at: float = math.inf


class Patience:
    """A busy handler: waits for a lock for `timeout` seconds, but not beyond `deadline`. With jitter, which is
    fairer among writers than SQLite's own back-off.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.deadline = Deadline()
        self._started = 0.0

    def __call__(self, calls: int) -> bool:
        """Wait a moment; tell whether it may be tried again. `calls` counts the tries for one lock."""
        now = time.monotonic()
        if calls == 0:
            self._started = now
        if now - self._started > self.timeout or now > self.deadline.at:
            return False
        time.sleep(random.uniform(0.0005, 0.004))
        return True


def connect(path: str, durability: Durability, patience: Patience) -> apsw.Connection:
    """Return a connection that is set up as we need it. The file is made if missing, and untouched if it is not ours.

    Raises NotADatabaseError, SchemaTooNewError, StoreUnavailableError, and what apsw raises.
    """
    create_private(path)
    if path != MEMORY_PATH and (reason := explain_kind(path)):
        raise StoreUnavailableError(f"{path} can't be opened for writing: {reason}")
    connection = apsw.Connection(path)
    try:
        connection.set_busy_handler(patience)
        check_file(connection, path)
        if connection.readonly("main"):  # SQLite opens what it can't write to for reading, without a word
            reason = explain_path(path) or "it is read-only"
            raise StoreUnavailableError(f"{path} can't be opened for writing: {reason}")
        connection.pragma("page_size", PAGE_SIZE)
        enter_wal(connection, path, patience.timeout)
        connection.set_wal_hook(_make_checkpointer(patience))
        connection.pragma("synchronous", durability)
        connection.pragma("foreign_keys", True)
        connection.pragma("secure_delete", True)  # deleted text is overwritten in the file
        connection.pragma("mmap_size", MMAP_BYTES)
        _set_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: str, patience: Patience) -> apsw.Connection:
    """Return a connection that reads a file which can't be written to, and leaves nothing beside it.

    SQLite reads a file with a log by what lies in memory that processes share, which has a file, too. Where there is no
    log it would make one; so the file is then read as it lies there, as one that nobody changes.

    Raises StoreUnavailableError if it has a log that can't be read, and what apsw raises.
    """
    fixed = "" if has_log(path) else "&immutable=1"
    uri = f"{Path(path).absolute().as_uri()}?mode=ro{fixed}"
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        connection.set_busy_handler(patience)
        with contextlib.suppress(apsw.CorruptError, apsw.NotADBError):  # which a look at the file will tell of
            select_one(connection, "SELECT 1 FROM sqlite_schema")
        _set_up(connection)
    except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
        connection.close()
        raise StoreUnavailableError(
            f"{path} can't be read: it has a log beside it that only who may write there can take up ({error}); "
            "copy the file and its log to a folder of your own, and open the copy"
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: apsw.Connection) -> None:
    connection.pragma("trusted_schema", False)
    connection.pragma("temp_store", "memory")
    connection.pragma("cache_size", -CACHE_KIB)
    connection.create_scalar_function(FOLD_FUNCTION, _fold_argument, 1, deterministic=True)


def select(connection: apsw.Connection, sql: str, bindings: Sequence[SQLValue] = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a query. Rows that another program wrote may hold values of any type."""
    return connection.execute(sql, bindings).fetchall()


def select_one(connection: apsw.Connection, sql: str, bindings: Sequence[SQLValue] = ()) -> tuple[Any, ...] | None:
    """Return the first row of a query, None if there is none. Not for statements that write: they would not finish."""
    rows = connection.execute(sql, bindings)
    row = rows.fetchone()
    rows.close()
    return row


def create_private(path: str) -> None:
    """Create a missing file, and its folder, for their owner only; memories are personal."""
    if path != MEMORY_PATH:
        with contextlib.suppress(OSError, ValueError):  # SQLite's own attempt tells what is wrong
            Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def enter_wal(connection: apsw.Connection, path: str, timeout: float) -> None:
    """Switch a new file to write-ahead logging.

    SQLite does not call the busy handler while it switches, so processes that create a file together try again.
    """
    if path == MEMORY_PATH or connection.pragma("journal_mode") == "wal":
        return
    deadline = time.monotonic() + timeout
    while True:
        try:
            mode = connection.pragma("journal_mode", "wal")
            break
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.01))
    if mode != "wal":
        logger.warning(
            "%s: the file system offers no write-ahead log; several processes will wait for each other", path
        )


def truncate_log(connection: apsw.Connection, wait: float, patience: Patience) -> bool:
    """Copy the log into the file and empty it, if others let go of it within `wait` seconds; tell whether they did.

    `patience` is what the connection has otherwise.
    """
    connection.set_busy_handler(Patience(wait))
    try:
        connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.BusyError, apsw.LockedError):
        return False
    finally:
        connection.set_busy_handler(patience)
    return True


def _make_checkpointer(patience: Patience) -> Callable[[apsw.Connection, str, int], int]:
    def checkpoint(connection: apsw.Connection, name: str, pages: int) -> int:
        """Copy the log into the file after a commit. That is safe already: nothing here may fail it."""
        if pages >= CHECKPOINT_PAGES:
            long = pages >= LONGEST_LOG_PAGES
            mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if long else apsw.SQLITE_CHECKPOINT_PASSIVE
            connection.set_busy_handler(Patience(CHECKPOINT_WAIT))
            with contextlib.suppress(apsw.Error):
                connection.wal_checkpoint(name, mode)
            connection.set_busy_handler(patience)
        return apsw.SQLITE_OK

    return checkpoint


def _fold_argument(*arguments: SQLValue) -> SQLValue:
    return fold_text(arguments[0])
