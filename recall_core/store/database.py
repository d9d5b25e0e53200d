"""An open memory file, as one opener has it, and all files that this process has open."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from contextlib import AbstractContextManager

import apsw

from ..errors import ClosedError
from .connection import Deadline, Durability, create_private
from .connections import Connections
from .filesystem import find_place

logger = logging.getLogger("recall_core")

LOG_WAIT = 2.0  # seconds to wait for readers before the log is cleared at a later time


class Database:
    """A memory file as one opener has it. Raises ClosedError once it is closed, whoever else has the file open."""

    def __init__(self, connections: Connections, path: str) -> None:
        self.path = path
        self._connections = connections
        self._deadline = Deadline()
        self._closed = False

    def read(self) -> AbstractContextManager[apsw.Connection]:
        """Give a connection for reading; all that is read in one such block is of one moment."""
        self.check_open()
        return self._connections.read()

    def write(self) -> AbstractContextManager[apsw.Connection]:
        """Give a connection inside a transaction: committed at the end, rolled back on an exception. May be nested."""
        self.check_open()
        return self._connections.write(self._deadline)

    def hurry(self, timeout: float) -> None:
        """Let no write of this opener, one that waits already included, wait for others for more than `timeout` seconds
        from now on, all waits taken together.
        """
        self._deadline.at = time.monotonic() + timeout

    def is_writing(self) -> bool:
        """Tell whether this thread is inside a transaction, whose changes may yet be rolled back."""
        return self._connections.is_writing()

    def clear_log(self) -> bool:
        """Copy the log into the file and empty it; tell whether that was done. If not, later writes try again."""
        self.check_open()
        done = self._connections.clear_log(LOG_WAIT)
        if not done:
            logger.warning(
                "%s: what was deleted stays in the log beside the file while another program or thread reads it; "
                "the next write, or the last one who closes the file, clears it",
                self.path,
            )
        return done

    def apart(
        self, *, alone: bool = False
    ) -> AbstractContextManager[tuple[apsw.Connection, AbstractContextManager[object]]]:
        """Give a connection for long work, and what every step of it has to be done in. See `Connections.apart`."""
        self.check_open()
        return self._connections.apart(alone=alone)

    @property
    def obstacle(self) -> str | None:
        """Why the file can only be read, None if it can be written to."""
        return self._connections.obstacle

    def version(self) -> tuple[int, int, int]:
        """Return a value that differs whenever the file's content may have changed, by whomever."""
        with self.read() as connection:
            openings = self._connections.openings
            return openings, int(connection.pragma("data_version")), connection.total_changes()

    def check_open(self) -> None:
        """Raise ClosedError if this is closed, or belongs to the process that this one was forked from."""
        if self._closed:
            raise ClosedError(f"the memory {self.path} is closed; open it again with Memory.open({self.path!r})")
        self._connections.check_process()

    def close(self) -> None:
        """Give the file back; the last one who does closes it. Closing twice does nothing."""
        if not self._closed:
            self._closed = True
            _open_files.give_back(self._connections)


class OpenFiles:
    """The files that this process has open, each once, however often and by whichever path it was opened."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._files: dict[tuple[int, int], Connections] = {}
        self._watches_forks = False

    def take(self, path: str, durability: Durability, busy_timeout: float) -> Connections:
        """Return the connections to a file, opened if need be. Each taker has to give them back."""
        with self._lock:
            self._watch_forks()
            create_private(path)
            place = find_place(path)
            shared = None if place is None else self._files.get(place)
            if shared is None:
                shared = Connections(path, durability, busy_timeout)
                if shared.place is not None:
                    self._files[shared.place] = shared
            shared.users += 1
            return shared

    def give_back(self, connections: Connections) -> None:
        """Close a file if nobody else has it open."""
        with self._lock:
            connections.users -= 1
            if connections.users > 0:
                return
            if connections.place is not None and self._files.get(connections.place) is connections:
                del self._files[connections.place]
            with contextlib.suppress(ClosedError):  # in a forked child there is nothing to close
                connections.check_process()
                connections.close()

    def _watch_forks(self) -> None:
        if not self._watches_forks and hasattr(os, "register_at_fork"):
            self._watches_forks = True
            os.register_at_fork(before=self._pause, after_in_parent=self._resume, after_in_child=self._start_afresh)

    def _pause(self) -> None:
        """Before a fork, keep all threads out of SQLite, so that the child does not inherit its locks."""
        self._lock.acquire()
        for connections in self._files.values():
            connections.pause()

    def _resume(self) -> None:
        for connections in self._files.values():
            connections.resume()
        self._lock.release()

    def _start_afresh(self) -> None:
        self._lock = threading.RLock()
        for connections in self._files.values():
            connections.abandon()
        self._files = {}


_open_files = OpenFiles()


def open_database(path: str, durability: Durability, busy_timeout: float) -> Database:
    """Return the file at an absolute path, or a new database in RAM for ":memory:"."""
    return Database(_open_files.take(path, durability, busy_timeout), path)
