"""A memory file as one store: its tables, and how a path is opened."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import InvalidInputError
from ..forks import lazy
from .access import AccessTable
from .blocks import BlockTable
from .candidates import CandidateTable
from .cleaning import CleaningTable
from .connection import MEMORY_PATH, Durability
from .database import Database, open_database
from .dictionary import DictionaryTable
from .facts import FactTable
from .insight import InsightTable
from .keyword import KeywordTable
from .links import LinkTable
from .moves import MoveTable
from .pending import PendingTable
from .protocols import VectorIndex
from .records import RecordTable
from .reindexing import ReindexTable
from .remains import Remains
from .sessions import SessionTable
from .trash import TrashTable
from .upkeep import Upkeep
from .vectors import VectorTable


class SqliteStore:
    """The parts of a store over one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.records = RecordTable(database)
        self.keyword = KeywordTable(database)
        self.vectors = VectorTable(database)
        self.pending = PendingTable(database)
        self.moves = MoveTable(database)
        self.blocks = BlockTable(database)
        self.candidates = CandidateTable(database)
        self.sessions = SessionTable(database)
        self.access = AccessTable(database)
        self.links = LinkTable(database)
        self.trash = TrashTable(database)
        self.remains = Remains(database)
        self.facts = FactTable(database)
        self.dictionary = DictionaryTable(database)
        self.reindexing = ReindexTable(database)
        self.insight = InsightTable(database)
        self.upkeep = Upkeep(database)
        self.cleaning = CleaningTable(database)

    @lazy
    def index(self) -> VectorIndex:
        """The index over the vectors; made when it is first needed, since it takes numpy."""
        from .nearest import CodeIndex

        return CodeIndex(self.database)

    @property
    def path(self) -> str:
        """The path of the file, ":memory:" if there is none."""
        return self.database.path

    def close(self) -> None:
        """Give the store back; the last one who does closes the file."""
        self.database.close()


def open_store(path: str | Path, *, durability: Durability = "normal", busy_timeout: float = 30.0) -> SqliteStore:
    """Return the store of a file, made if missing. Who opens it again in this process shares it, as first opened.

    Raises InvalidInputError, NotADatabaseError, SchemaTooNewError, StoreUnavailableError and StoreBusyError.
    """
    return SqliteStore(open_database(find_path(path), durability, busy_timeout))


def find_path(path: str | Path) -> str:
    """Return the absolute path that a caller means; `~` is a home folder. Raises InvalidInputError."""
    if not isinstance(path, str | Path) or str(path) == "" or "\0" in str(path):
        raise InvalidInputError(f"{path!r} is no path of a file; give one such as 'agent.db', or ':memory:'")
    if str(path) == MEMORY_PATH:
        return MEMORY_PATH
    try:
        os.fspath(path).encode("utf-8")
        return str(Path(path).expanduser().absolute())
    except (UnicodeEncodeError, RuntimeError) as error:  # RuntimeError: there is no such home folder
        raise InvalidInputError(f"{str(path)!r} can't be opened: {error}; give another path") from error
