"""A memory file as one store: its tables, opened once per file and process."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Literal

from ..errors import InvalidInputError
from .candidates import CandidateTable
from .connection import MEMORY_PATH, Database
from .facts import FactTable
from .keyword import KeywordTable
from .nearest import open_index
from .records import RecordTable
from .sessions import SessionTable
from .vectors import VectorTable


class SqliteStore:
    """The parts of a store over one database. Shared by all who open the same file in this process."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.records = RecordTable(database)
        self.keyword = KeywordTable(database)
        self.vectors = VectorTable(database)
        self.candidates = CandidateTable(database)
        self.sessions = SessionTable(database)
        self.facts = FactTable(database)
        self.index = open_index(database)
        self._users = 0

    @property
    def path(self) -> str:
        """The path of the file, ":memory:" if there is none."""
        return self.database.path

    def close(self) -> None:
        """Give the store back; the last one who does closes the file."""
        with _lock:
            self._users -= 1
            if self._users == 0:
                _open_stores.pop(_key(self.path), None)
                self.database.close()


_lock = threading.Lock()
_open_stores: dict[str, SqliteStore] = {}


def open_store(
    path: str | Path, *, durability: Literal["normal", "full"] = "normal", busy_timeout: float = 30.0
) -> SqliteStore:
    """Return the store of a file, made if missing. Who opens it again in this process shares it, as first opened.

    Raises NotADatabaseError, SchemaTooNewError, StoreUnavailableError and StoreBusyError.
    """
    if not isinstance(path, str | Path) or not is_path(str(path)):
        raise InvalidInputError(f"{path!r} is no path of a file; give one such as 'agent.db', or ':memory:'")
    name = str(path) if str(path) == MEMORY_PATH else str(Path(path).expanduser().absolute())
    with _lock:
        store = None if name == MEMORY_PATH else _open_stores.get(_key(name))
        if store is None or not store.database.usable:
            store = SqliteStore(Database(name, durability=durability, busy_timeout=busy_timeout))
            if name != MEMORY_PATH:
                _open_stores[_key(name)] = store
        store._users += 1
        return store


def is_path(path: str) -> bool:
    """Tell whether SQLite can be given this path: it takes UTF-8 without NUL."""
    try:
        return path != "" and b"\0" not in path.encode("utf-8")
    except UnicodeEncodeError:
        return False


def _key(path: str) -> str:
    return str(Path(path).resolve())
