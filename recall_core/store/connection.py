"""The connections to one memory file: how it is opened, locked and closed, and how its errors are told."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import apsw

from ..errors import ClosedError, NotADatabaseError, StoreBusyError, StoreError, StoreUnavailableError
from .compile import FOLD_FUNCTION, SQLValue, fold_text
from .filesystem import network_type
from .migrations import migrate
from .schema import PAGE_SIZE, TERM_TABLE

logger = logging.getLogger("recall_core")

MEMORY_PATH = ":memory:"
CACHE_KIB = 16 * 1024
MMAP_BYTES = 1 << 30  # address space, not memory: scans of vectors are up to twice as fast


class Database:
    """A memory file: one connection that writes, one that reads beside it, both usable from any thread.

    A thread inside `write()` reads what it has written; other threads go on reading the last committed state.
    """

    def __init__(self, path: str, *, durability: Literal["normal", "full"], busy_timeout: float) -> None:
        self.path = path
        self.has_vec0 = False
        self._pid = os.getpid()
        self._busy_timeout = busy_timeout
        self._write_lock = threading.RLock()
        self._read_lock = threading.RLock()
        self._writing_thread: int | None = None
        self._closed = False
        if path != MEMORY_PATH and (kind := network_type(path)):
            logger.warning("%s lies on a network file system (%s); SQLite's log needs a local disk", path, kind)
        with translate_errors(path):
            self._writer = self._connect(durability)
            try:
                migrate(self._writer, path)
                self._reader = self._writer if path == MEMORY_PATH else self._connect(durability)
            except BaseException:
                self._writer.close()
                raise
            # The reader can't create anything once it is read-only, so its view of the index's terms is made here.
            self._reader.execute(TERM_TABLE)
            if self._reader is not self._writer:
                self._reader.pragma("query_only", True)

    @contextlib.contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Give a connection for reading."""
        if self._writing_thread == threading.get_ident():
            yield self._writer
            return
        lock = self._write_lock if self._reader is self._writer else self._read_lock
        with lock, translate_errors(self.path):
            self._check_open()
            yield self._reader

    @contextlib.contextmanager
    def write(self) -> Iterator[apsw.Connection]:
        """Give a connection inside a transaction: committed at the end, rolled back on an exception. May be nested."""
        with self._write_lock:
            if self._writing_thread is not None:
                yield self._writer
                return
            with translate_errors(self.path):
                self._check_open()
                self._writer.execute("BEGIN IMMEDIATE")
                self._writing_thread = threading.get_ident()
                try:
                    yield self._writer
                    self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:  # a full disk may have rolled it back already
                        self._writer.execute("ROLLBACK")
                    raise
                finally:
                    self._writing_thread = None

    def version(self) -> tuple[int, int]:
        """Return a value that differs whenever the file's content may have changed, by whomever."""
        with self.read() as connection:
            return int(connection.pragma("data_version")), connection.total_changes()

    @property
    def usable(self) -> bool:
        """Whether the file is open, and in this process."""
        return not self._closed and self._pid == os.getpid()

    def close(self) -> None:
        """Close the file. What reads or writes in other threads is let finish first."""
        with self._write_lock, self._read_lock:
            if self._closed:
                return
            self._closed = True
            if self._pid != os.getpid():  # closing a parent's connection would drop its locks
                return
            if self._reader is not self._writer:
                self._reader.close()
            self._writer.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the memory {self.path} is closed; open it again with Memory.open({self.path!r})")
        if self._pid != os.getpid():
            raise ClosedError(f"the memory {self.path} was opened before this process was forked; open it again here")

    def _connect(self, durability: str) -> apsw.Connection:
        create_private(self.path)
        connection = apsw.Connection(self.path)
        try:
            connection.set_busy_handler(busy_handler(self._busy_timeout))
            connection.pragma("page_size", PAGE_SIZE)
            enter_wal(connection, self.path, self._busy_timeout)
            connection.pragma("synchronous", durability)
            connection.pragma("foreign_keys", True)
            connection.pragma("trusted_schema", False)
            connection.pragma("temp_store", "memory")
            connection.pragma("cache_size", -CACHE_KIB)
            connection.pragma("mmap_size", MMAP_BYTES)
            connection.create_scalar_function(FOLD_FUNCTION, _fold_argument, 1, deterministic=True)
            self.has_vec0 = load_vec0(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def select(connection: apsw.Connection, sql: str, bindings: Sequence[SQLValue] = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a query. Rows that another program wrote may hold values of any type."""
    return connection.execute(sql, bindings).fetchall()


def select_one(connection: apsw.Connection, sql: str, bindings: Sequence[SQLValue] = ()) -> tuple[Any, ...] | None:
    """Return the first row of a query, None if there is none. Not for statements that write: they would not finish."""
    rows = connection.execute(sql, bindings)
    row = rows.fetchone()
    rows.close()
    return row


@contextlib.contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Turn SQLite's errors about the file into ours."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusyError(f"{path}: other programs kept writing to the file; try again ({error})") from error
    except apsw.NotADBError as error:
        raise NotADatabaseError(f"{path} is no SQLite database; give the path of a memory or of a new file") from error
    except apsw.FullError as error:
        raise StoreUnavailableError(f"{path}: the disk is full; nothing of this call was stored") from error
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError) as error:
        raise StoreUnavailableError(f"{path} can't be opened for writing: {explain_path(path, error)}") from error
    except apsw.CorruptError as error:
        raise StoreUnavailableError(f"{path} is damaged ({error}); restore a backup of the file") from error
    except apsw.IOError as error:
        raise StoreUnavailableError(f"{path}: reading or writing the file failed ({error})") from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}") from error


def explain_path(path: str, error: Exception) -> str:
    """Say in words why SQLite could not open `path`."""
    file = Path(path)
    if file.is_dir():
        return "it is a folder; give the path of a file"
    if not file.parent.is_dir():
        return f"the folder {file.parent} does not exist; create it first"
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        return "no permission to write there"
    return str(error)


def create_private(path: str) -> None:
    """Create a missing file readable by its owner only; memories are personal."""
    if path == MEMORY_PATH or Path(path).exists():
        return
    with contextlib.suppress(OSError):  # SQLite's own attempt tells what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


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


def busy_handler(timeout: float) -> Callable[[int], bool]:
    """Return a handler that waits for a lock with jitter, which is fairer among writers than SQLite's own back-off."""
    started = 0.0

    def wait(calls: int) -> bool:
        nonlocal started
        now = time.monotonic()
        if calls == 0:
            started = now
        if now - started > timeout:
            return False
        time.sleep(random.uniform(0.0005, 0.004))
        return True

    return wait


def _fold_argument(*arguments: SQLValue) -> SQLValue:
    return fold_text(arguments[0])


def load_vec0(connection: apsw.Connection) -> bool:
    """Load the vector index extension and tell whether that worked. Importing sqlite_vec would import numpy."""
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        return False
    try:
        connection.enable_load_extension(True)
        connection.load_extension(str(Path(spec.submodule_search_locations[0]) / "vec0"))
        connection.enable_load_extension(False)
    except (apsw.Error, AttributeError) as error:
        logger.warning("the vector index extension can't be loaded (%s); vectors are compared one by one", error)
        return False
    return True
