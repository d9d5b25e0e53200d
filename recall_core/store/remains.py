"""What deletion leaves in a file, though no read shows it, and how that is cleared.

Rows are overwritten as they are deleted (`secure_delete`). Two places keep more. FTS5 only marks the terms of a deleted
chunk as deleted, and drops them when it merges the parts of its index that hold them. The log holds the pages that were
written, until it is copied into the file and begins anew.
"""

from __future__ import annotations

import time

from .connection import select, select_one
from .database import Database
from .schema import NEW_INDEX
from .upgrades import DELETED_TERMS

COUNT = f"SELECT CAST(value AS INTEGER) FROM meta WHERE key = '{DELETED_TERMS}'"
# Negative: merge all parts into one, beginning with so many pages; positive: go on with so many.
MERGE = "INSERT INTO chunk_fts(chunk_fts, rank) VALUES ('merge', ?)"
MERGED_PAGES = 2_000  # in one transaction, which takes about 0.1 s
SETTLE = f"""
UPDATE meta SET value = CAST(value - ? AS TEXT) WHERE key = '{DELETED_TERMS}';
DELETE FROM meta WHERE key = '{DELETED_TERMS}' AND CAST(value AS INTEGER) <= 0;
"""
REPAIRED = f"SELECT 1 FROM sqlite_schema WHERE name = '{NEW_INDEX}'"


class Remains:
    """What deletion has left in one file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self) -> int:
        """Return how many chunks were deleted or changed whose terms are still in the data of the keyword index."""
        with self._database.read() as connection:
            row = select_one(connection, COUNT)
        return int(row[0]) if row else 0

    def count_chunks(self, most: int) -> int:
        """Return how many chunks the file has, up to `most`: what clearing costs grows with them."""
        with self._database.read() as connection:
            return int(select(connection, "SELECT count(*) FROM (SELECT 1 FROM chunk LIMIT ?)", (most,))[0][0])

    def clear_terms(self, timeout: float | None = None, *, merges: bool = False) -> bool:
        """Merge the keyword index into one part without deleted terms, in transactions of their own; tell whether that
        was completed within `timeout` seconds. What is left is taken up by the next call, as is all while a repair of
        the index is unfinished. `merges` says that it is done even if there are no deleted terms.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        owed, pages = self.count(), -MERGED_PAGES
        while owed or merges:
            with self._database.write() as connection:
                before = connection.total_changes()
                connection.execute(MERGE, (pages,))
                if connection.total_changes() - before < 2:  # as FTS5 says that there was nothing to do
                    if select_one(connection, REPAIRED):  # the new one has such terms, too
                        return False
                    connection.execute(SETTLE, (owed,))
                    return True
            if deadline is not None and time.monotonic() >= deadline:
                return False
            pages = MERGED_PAGES
        return True

    def has_codes(self) -> bool:
        """Tell whether some space has codes."""
        with self._database.read() as connection:
            return select_one(connection, "SELECT 1 FROM code_index") is not None

    def clear_log(self) -> bool:
        """Copy the log into the file and empty it; tell whether that was possible. If not, later writes try again."""
        return self._database.clear_log()
