"""What a file says about itself: the segmenter and the words it was indexed with, and how much it holds."""

from __future__ import annotations

from pathlib import Path

from ..models import SpaceStats, Stats
from .connection import MEMORY_PATH, select, select_one
from .database import Database
from .filesystem import network_type
from .migrations import SCHEMA_VERSION
from .protocols import Medium

SPACES = """
SELECT name, model, dimensions, (SELECT count(*) FROM embedding WHERE space_id = space.id) FROM space ORDER BY id
"""
BEHIND = """
SELECT (SELECT count(*) FROM vector_change WHERE space_id IN (SELECT space_id FROM code_index)),
  (SELECT count(*) FROM record WHERE indexed = 0),
  ifnull((SELECT json_array_length(value, '$.words') FROM meta WHERE key = 'changed_words' AND json_valid(value)), 0)
"""
TOTALS = """
SELECT (SELECT count(*) FROM record), (SELECT count(*) FROM chunk),
  (SELECT count(*) FROM (SELECT 1 FROM record WHERE session IS NOT NULL GROUP BY scope, session)),
  (SELECT count(*) FROM pending), (SELECT count(error) FROM pending),
  EXISTS (SELECT 1 FROM code_index)
"""


class FactTable:
    """Reads and writes the file's own facts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def segmenter(self) -> str | None:
        """Return the version of the segmenter that indexed the file, None for a new one."""
        with self._database.read() as connection:
            row = select_one(connection, "SELECT value FROM meta WHERE key = 'segmenter'")
        return row[0] if row else None

    def save_segmenter(self, version: str) -> None:
        """Note which segmenter indexes the file."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO meta(key, value) VALUES ('segmenter', ?) "
                "ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                (version,),
            )

    def medium(self) -> Medium:
        """Return what the file lies on and how it is written."""
        path = self._database.path
        with self._database.read() as connection:
            mode = str(connection.pragma("journal_mode"))
            journal = "none" if self._database.obstacle is not None and mode != "wal" else mode
            unindexed, stale, words = select(connection, BEHIND)[0]
        network = None if path == MEMORY_PATH else network_type(path)
        return Medium(
            journal=journal, network=network, unindexed_changes=unindexed, stale_records=stale, changed_words=words
        )

    def stats(self, *, segmenter: str, notes: tuple[str, ...]) -> Stats:
        """Count what the file holds; the arguments are passed on."""
        path = self._database.path
        with self._database.read() as connection:
            records, chunks, sessions, pending, failed, coded = select(connection, TOTALS)[0]
            spaces = tuple(
                SpaceStats(name=name, model=model, dimensions=dimensions, vectors=vectors)
                for name, model, dimensions, vectors in select(connection, SPACES)
            )
        files = [] if path == MEMORY_PATH else [Path(path), Path(path + "-wal")]
        return Stats(
            path=path,
            records=records,
            chunks=chunks,
            sessions=sessions,
            spaces=spaces,
            pending=pending,
            failed=failed,
            file_bytes=sum(file.stat().st_size for file in files if file.exists()),
            schema_version=SCHEMA_VERSION,
            segmenter=segmenter,
            vector_index="codes" if coded else "exact",
            notes=notes,
        )
