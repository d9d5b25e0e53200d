"""This process's connections to a memory file: who reads and who writes."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager

import apsw

from ..errors import ClosedError, StoreBusyError, StoreMovedError, StoreUnavailableError
from .connection import MEMORY_PATH, Deadline, Durability, Patience, connect, connect_reader, truncate_log
from .faults import translate_errors
from .filesystem import find_obstacle, find_place, find_state, has_log, network_type
from .migrations import SCHEMA_VERSION, check_file, migrate
from .schema import TERM_TABLE

logger = logging.getLogger("recall_core")

# After a transaction a writer leaves the file to others for this share of the time it took, at most so many seconds.
# Otherwise one process that writes without a pause, and is on the CPU when the lock is free, starves all others: with
# eight of them and durability="full" a write waited for 17 s, with the rest for 0.2 s, and more were written.
REST_SHARE, LONGEST_REST = 0.3, 0.05

# Locks belong to a process, so two copies of SQLite in one process, such as ours and that of Python's sqlite3, do not
# see each other's: the one that closes the file takes itself for the last, and deletes the log that the other writes.
LOG_TAKEN = "another copy of SQLite in this process, such as Python's sqlite3, has closed the file and deleted its log"


class Connections:
    """This process's connections to one memory file, shared by all who have it open: one writes, one reads beside it.

    Both may be used from any thread. A thread inside `write()` reads what it has written; other threads go on reading
    the last committed state.
    """

    def __init__(self, path: str, durability: Durability, busy_timeout: float) -> None:
        self.path = path
        self.users = 0
        self.openings = 0  # how often the file was opened
        self.obstacle: str | None = None  # why the file can only be read
        self._state: tuple[object, ...] | None = None  # of a file that is read as one that nobody changes
        self._durability = durability
        self._busy_timeout = busy_timeout
        self._patience = Patience(busy_timeout)  # the writer's
        self._pid = os.getpid()
        self._write_lock = threading.RLock()
        self._read_lock = threading.RLock()
        self._apart: list[apsw.Connection] = []
        self._step_lock = threading.RLock()  # while one of those is inside SQLite
        self._writing_thread: int | None = None
        self._reading_thread: int | None = None
        self._rests_until = 0.0
        self._log_is_owed = False  # it holds what was deleted for good
        if path != MEMORY_PATH and (kind := network_type(path)):
            logger.warning("%s lies on a network file system (%s); SQLite's log needs a local disk", path, kind)
        with translate_errors(path):
            self._open()

    @contextlib.contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Give a connection for reading; all that is read in one such block is of one moment."""
        self.check_process()
        me = threading.get_ident()
        if me in (self._writing_thread, self._reading_thread):
            yield self._writer if me == self._writing_thread else self._reader
            return
        self._check_place()
        with self._write_lock if self._reader is self._writer else self._read_lock, translate_errors(self.path):
            self._reading_thread = me
            try:
                with self._reader:  # a savepoint is a transaction here, which only reads
                    yield self._reader
            except apsw.Error:
                self._check_unwritten()
                raise
            finally:
                self._reading_thread = None
            self._check_unwritten()

    @contextlib.contextmanager
    def write(self, deadline: Deadline) -> Iterator[apsw.Connection]:
        """Give a connection inside a transaction: committed at the end, rolled back on an exception. May be nested.

        Other programs' and other threads' transactions are waited for until `deadline` at the latest.
        """
        self.check_process()
        self.check_writable()
        with self._turn(deadline):
            if self._writing_thread is not None:
                with self._writer:  # a savepoint: an inner transaction that fails leaves nothing in the outer one
                    yield self._writer
                return
            self._check_place()
            if (rest := self._rests_until - time.perf_counter()) > 0:
                time.sleep(rest)
            self._patience.deadline = deadline
            with translate_errors(self.path), self._transaction():
                yield self._writer
            if self._log_is_gone():
                raise StoreUnavailableError(f"{self.path}: {LOG_TAKEN}; what was just written may be lost: repeat it")
            if self._log_is_owed:
                self.clear_log(0.0)

    @contextlib.contextmanager
    def _turn(self, deadline: Deadline) -> Iterator[None]:
        """Let this thread be the one that writes."""
        left = max(0.0, deadline.at - time.monotonic())
        if not self._write_lock.acquire(timeout=-1 if math.isinf(left) else left):
            raise StoreBusyError(f"{self.path}: other threads kept writing to the file; try again")
        try:
            yield
        finally:
            self._write_lock.release()

    @contextlib.contextmanager
    def apart(self, *, alone: bool = False) -> Iterator[tuple[apsw.Connection, AbstractContextManager[object]]]:
        """Give a connection for long work, which holds up no other thread's reads and writes, and what every step of it
        has to be done in, so that no fork comes in between. `alone` says that the work writes: this process's other
        writers wait for its end.
        """
        self.check_process()
        self._check_place()
        if alone:
            self.check_writable()
        with self._write_lock if alone else contextlib.nullcontext(), translate_errors(self.path):
            with self._step_lock:
                connection = self._connect()
                self._apart.append(connection)
            try:
                yield connection, self._step_lock
            finally:
                with self._step_lock:
                    self._apart.remove(connection)
                    connection.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            started = time.perf_counter()
            self._writing_thread = threading.get_ident()
            yield
            self._writer.execute("COMMIT")
            self._rest(started)
        except BaseException:
            if self._writer.in_transaction:  # a full disk may have rolled it back already
                self._writer.execute("ROLLBACK")
            raise
        finally:
            self._writing_thread = None

    def clear_log(self, wait: float) -> bool:
        """Copy the log into the file and empty it, unless others read it for longer than `wait` seconds; tell whether
        that was done. If not, it is tried again after each transaction.
        """
        self.check_process()
        if self.path == MEMORY_PATH:
            return True
        deadline = time.monotonic() + wait
        with self._write_lock:
            self._log_is_owed = True
            if self._writing_thread is not None or not self._read_lock.acquire(timeout=wait):
                return False
            try:
                left = max(0.0, deadline - time.monotonic())
                self._log_is_owed = not truncate_log(self._writer, left, self._patience)
            finally:
                self._read_lock.release()
        return not self._log_is_owed

    def is_writing(self) -> bool:
        """Tell whether this thread is inside a transaction, whose changes may yet be rolled back."""
        return self._writing_thread == threading.get_ident()

    def check_writable(self) -> None:
        """Raise StoreUnavailableError if the file can only be read."""
        if self.obstacle is not None:
            raise StoreUnavailableError(f"{self.path} can't be written to: {self.obstacle}; it can only be read")

    def check_process(self) -> None:
        """Raise ClosedError in a process that was forked from the one that opened the file."""
        if self._pid != os.getpid():
            raise ClosedError(
                f"the memory {self.path} was opened before this process was forked; "
                f"open it again with Memory.open({self.path!r})"
            )

    def close(self) -> None:
        """Close the file. What reads or writes in other threads is let finish first."""
        with self._write_lock, self._read_lock:
            for connection in self._both():
                connection.close()

    def pause(self) -> None:
        """Let what reads and writes finish, and nothing begin."""
        self._write_lock.acquire()
        self._read_lock.acquire()
        self._step_lock.acquire()

    def resume(self) -> None:
        """Undo `pause`."""
        self._step_lock.release()
        self._read_lock.release()
        self._write_lock.release()

    def abandon(self) -> None:
        """In a forked child, drop the connections and leave the file to the parent.

        SQLite counts the open connections of a process. Were the inherited ones left open, one that the child opens
        would take no locks of its own, and the parent would delete the log under it.
        """
        if self._writing_thread is not None:  # closing would roll back what the parent is about to commit
            return
        for connection in self._apart:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.close(force=True)
        self._drop()

    def _rest(self, started: float) -> None:
        now = time.perf_counter()
        if self.path != MEMORY_PATH:
            self._rests_until = now + min(REST_SHARE * (now - started), LONGEST_REST)

    def _open(self) -> None:
        self.openings += 1
        self.obstacle = None if self.path == MEMORY_PATH else find_obstacle(self.path)
        with contextlib.ExitStack() as opened:
            if self.obstacle is None:
                self._open_to_write(opened)
            else:
                self._open_to_read(opened)
            for connection in self._both():
                connection.execute(TERM_TABLE)
            if self.path != MEMORY_PATH:
                self._reader.pragma("query_only", True)
            self.place = find_place(self.path)
            opened.pop_all()

    def _open_to_write(self, opened: contextlib.ExitStack) -> None:
        self._state = None
        self._writer = connect(self.path, self._durability, self._patience)
        opened.callback(self._writer.close)
        migrate(self._writer, self.path)
        self._reader = self._writer
        if self.path != MEMORY_PATH:
            self._reader = self._connect()
            opened.callback(self._reader.close)
        self._log_path = self._writer.filename_wal
        self._log_place = find_place(self._log_path)

    def _open_to_read(self, opened: contextlib.ExitStack) -> None:
        self._state = None if has_log(self.path) else find_state(self.path)
        self._writer = self._reader = self._connect()
        opened.callback(self._reader.close)
        version = check_file(self._reader, self.path)
        if version < SCHEMA_VERSION:
            upgrade = f"it has schema version {version}, and has to be upgraded to {SCHEMA_VERSION} first"
            raise StoreUnavailableError(
                f"{self.path} can't be opened, for it can't be written to ({self.obstacle}): {upgrade}; "
                "open it once where it can be written to, or copy it and open the copy"
            )

    def _connect(self) -> apsw.Connection:
        patience = Patience(self._busy_timeout)
        if self.obstacle is not None:
            return connect_reader(self.path, patience)
        return connect(self.path, self._durability, patience)

    def _both(self) -> list[apsw.Connection]:
        return [self._writer] if self._reader is self._writer else [self._reader, self._writer]

    def _check_place(self) -> None:
        """Raise StoreUnavailableError if the file is not where it was; open it anew if its log is not, or if somebody
        has changed what was read as something that nobody changes.
        """
        if self.path == MEMORY_PATH:
            return
        if find_place(self.path) != self.place:
            raise StoreMovedError(f"{self.path} was moved, deleted or replaced while it was open; open it again")
        if self._log_is_gone() or self._has_changed():
            with self._write_lock, self._read_lock, translate_errors(self.path):
                gone = self._log_is_gone()
                if gone:
                    logger.warning("%s: %s, and it is opened anew", self.path, LOG_TAKEN)
                if gone or self._has_changed():
                    self._drop()
                    self._open()

    def _log_is_gone(self) -> bool:
        if self.path == MEMORY_PATH or self.obstacle is not None:
            return False
        return find_place(self._log_path) != self._log_place

    def _has_changed(self) -> bool:
        return self._state is not None and find_state(self.path) != self._state

    def _check_unwritten(self) -> None:
        """Raise StoreBusyError if others wrote while a file was read as one that nobody changes."""
        if self._state is not None and find_state(self.path)[1:] != self._state[1:]:
            raise StoreBusyError(f"{self.path} was written to while it was read; try again")

    def _drop(self) -> None:
        """Close the connections without the last one's clearing up: the log is not, or no more, ours."""
        for connection in self._both():
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.close()
