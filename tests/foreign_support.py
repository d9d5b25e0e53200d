"""Files of other programs, made in the shape that those give them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

CMDCODE = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT, project TEXT, created_at INTEGER, updated_at INTEGER,
  message_count INTEGER);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id),
  role TEXT NOT NULL, content TEXT NOT NULL, turn INTEGER, created_at INTEGER NOT NULL, metadata TEXT,
  embedding_status TEXT, UNIQUE (session_id, turn, role));
CREATE VIRTUAL TABLE messages_fts USING fts5(content, content='messages', content_rowid='id');
"""
SINOMEM = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL, category TEXT DEFAULT 'general',
  tags TEXT DEFAULT '[]', importance REAL DEFAULT 0.5, expires_at TIMESTAMP,
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  access_count INTEGER DEFAULT 0, last_accessed TIMESTAMP);
CREATE VIRTUAL TABLE memories_fts USING fts5(content, tags, category, tokenize='unicode61');
"""
SINOMEM_WITH_METADATA = """
CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT NOT NULL, category TEXT, importance INTEGER, ttl TEXT,
  metadata TEXT, user_id TEXT, created_at REAL);
"""
CHUNKS = """
CREATE TABLE conversation_chunks (id INTEGER PRIMARY KEY, user_id TEXT, session_id TEXT NOT NULL, turn_index INTEGER,
  chunk_index INTEGER NOT NULL DEFAULT 0, role TEXT, content TEXT NOT NULL, source TEXT, tags TEXT, metadata TEXT,
  importance REAL, embedding BLOB, created_at TEXT NOT NULL, expires_at TEXT);
"""
SCOPED = """
CREATE TABLE memories (id TEXT PRIMARY KEY, scope_id TEXT NOT NULL, platform TEXT, user_id TEXT, chat_id TEXT,
  session_id TEXT, source TEXT NOT NULL, target TEXT NOT NULL, content TEXT NOT NULL, summary TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, last_recalled_turn INTEGER NOT NULL DEFAULT 0, dedup_key TEXT,
  metadata TEXT);
"""


def make_database(path: Path, schema: str, **tables: Iterable[Sequence[Any] | dict[str, Any]]) -> Path:
    """Make an SQLite file with plain sqlite3, as another program would, and return its path."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(schema)
        for table, rows in tables.items():
            for row in rows:
                values = dict(row) if isinstance(row, dict) else row
                names = f"({', '.join(values)})" if isinstance(values, dict) else ""
                marks = ", ".join("?" for _ in values)
                given = list(values.values()) if isinstance(values, dict) else list(values)
                connection.execute(f"INSERT INTO {table}{names} VALUES ({marks})", given)
    return path
