"""A file as a whole: made smaller, and copied, while others read and write it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import apsw

from ..errors import StoreUnavailableError
from .connection import MEMORY_PATH, Patience, select, select_one, truncate_log
from .database import Database
from .faults import translate_errors
from .filesystem import find_lack, temporary_folder
from .protocols import Holdings

COPIED_PAGES = 256  # in one step: 2 MiB
LOG_WAIT = 10.0  # seconds to wait for others who read an old state of the file
MEGABYTE = 1 << 20
HELD = "SELECT (SELECT count(*) FROM record), (SELECT count(*) FROM chunk), (SELECT count(*) FROM embedding)"

Progress = Callable[[int, int], object]


class Upkeep:
    """One memory file, looked at from outside."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def size(self) -> int:
        """Return the bytes of the file and its log; 0 if all is in RAM."""
        path = self._database.path
        files = [] if path == MEMORY_PATH else [Path(path), Path(path + "-wal")]
        return sum(file.stat().st_size for file in files if file.exists())

    def check_room(self) -> None:
        """Raise StoreUnavailableError if there is too little room on the disk for `shrink`."""
        if self._database.path != MEMORY_PATH:
            with self._database.read() as connection:
                self._check_room(connection, Path(self._database.path).parent, temporary_folder())

    def shrink(self) -> bool:
        """Write the file anew without its free pages, and empty the log; tell whether that is done, or else left to the
        next checkpoint, since others went on reading the old state.

        Readers go on meanwhile, writers wait.
        """
        path = self._database.path
        if path == MEMORY_PATH:
            return True
        with self._database.apart(alone=True) as (connection, step), step:
            connection.pragma("temp_store", "file")  # the copy is as large as the file
            connection.execute("VACUUM")
            return truncate_log(connection, LOG_WAIT, Patience(LOG_WAIT))

    def copy(self, target: str, progress: Progress | None = None) -> Holdings:
        """Copy the file, as it is at this moment, to `target`, an empty file of the caller's; return what it holds.

        Nobody waits meanwhile. Raises StoreUnavailableError if the copy, or the file itself, is damaged.
        """
        with self._snapshot() as (source, step):
            with step:
                self._check_room(source, Path(target).parent)
                held = Holdings(*select(source, HELD)[0])
            with translate_errors(target), contextlib.closing(apsw.Connection(target)) as copy:
                copy.pragma("synchronous", "off")  # the caller sees to that at the end
                copy.pragma("journal_mode", "memory")
                self._copy_pages(source, copy, step, progress)
        with translate_errors(target), contextlib.closing(apsw.Connection(target)) as copy:
            if faults := find_faults(copy, held):
                raise StoreUnavailableError(
                    f"the copy of {self._database.path} is not sound ({faults[0]}), and was dropped; "
                    "recall doctor tells what is wrong with the file"
                )
        return held

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[tuple[apsw.Connection, AbstractContextManager[object]]]:
        """Give a connection that goes on reading the present state, whatever others write."""
        if self._database.path == MEMORY_PATH:
            with self._database.read() as connection:
                yield connection, contextlib.nullcontext()
            return
        with self._database.apart() as (connection, step):
            with step:
                connection.execute("BEGIN")
                select_one(connection, "SELECT 1 FROM meta")
            yield connection, step

    def _copy_pages(
        self,
        source: apsw.Connection,
        copy: apsw.Connection,
        step: AbstractContextManager[object],
        progress: Progress | None,
    ) -> None:
        with copy.backup("main", source, "main") as work:
            while not work.done:
                with step:
                    work.step(COPIED_PAGES)
                if progress is not None:
                    progress(work.page_count - work.remaining, work.page_count)

    def _check_room(self, connection: apsw.Connection, *folders: str | Path) -> None:
        """Raise StoreUnavailableError if one of these folders has no room for the pages that are in use."""
        pages = int(connection.pragma("page_count")) - int(connection.pragma("freelist_count"))
        size = pages * int(connection.pragma("page_size"))
        lack = find_lack([(os.fspath(folder), size) for folder in folders])
        if lack is not None:
            folder, wanted, free = lack
            raise StoreUnavailableError(
                f"{self._database.path}: this takes up to {wanted / MEGABYTE:,.1f} MB of room in {folder}, where "
                f"{free / MEGABYTE:,.1f} MB are free; make room first (SQLITE_TMPDIR names another folder for "
                "temporary files)"
            )


def find_faults(connection: apsw.Connection, held: Holdings) -> Sequence[str]:
    """Say what is wrong with a copy that should hold so much."""
    found = [str(line) for (line,) in select(connection, "PRAGMA integrity_check(3)") if line != "ok"]
    if found:
        return found
    try:
        with connection:
            connection.execute("INSERT INTO chunk_fts(chunk_fts, rank) VALUES ('integrity-check', 1)")
    except apsw.CorruptError as error:
        return [f"the keyword index does not match the texts: {error}"]
    counted = Holdings(*select(connection, HELD)[0])
    return [] if counted == held else [f"it holds {counted}, not {held}"]
