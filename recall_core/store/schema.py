"""The tables of a memory file, as SQL; `docs/storage-format.md` describes every byte.

Truth: record, session, space, embedding, dictionary, meta. Derived from it and rebuildable: chunk, chunk_fts, and the
vector index tables. To do: pending (chunks without a vector) and vector_change (vectors the index has not seen).

Everything that must hold when another program writes is a trigger in plain SQL, so that the stock sqlite3 can add,
change and delete records: `record.indexed = 0` marks rows whose chunks are out of date.
"""

from __future__ import annotations

from ..text import TOKENIZER

APPLICATION_ID = 0x5243414C  # "RCAL"
PAGE_SIZE = 8192  # five 384-dimensional vectors on a page; SQLite's 4096 holds two and wastes a quarter

NOW = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999  # microseconds: the years 1 to 9999
SORTABLE_ID = "printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)) || lower(hex(randomblob(6)))"

# In how many chunks each term occurs. Of the connection, not of the file.
TERM_TABLE = "CREATE VIRTUAL TABLE temp.term USING fts5vocab('main', 'chunk_fts', 'row')"

FIRST_SCHEMA = f"""
CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE record(
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE DEFAULT ({SORTABLE_ID}),
  scope TEXT NOT NULL DEFAULT '',
  session TEXT,
  turn INTEGER CHECK(typeof(turn) IN ('integer', 'null')),
  role TEXT,
  kind TEXT NOT NULL DEFAULT 'memory',
  text TEXT NOT NULL CHECK(typeof(text) = 'text'),
  payload TEXT CHECK(payload IS NULL OR json_valid(payload)),
  metadata TEXT NOT NULL DEFAULT '{{}}' CHECK(json_valid(metadata) AND json_type(metadata) = 'object'),
  tags TEXT NOT NULL DEFAULT '[]' CHECK(json_valid(tags) AND json_type(tags) = 'array'),
  source TEXT,
  importance REAL NOT NULL DEFAULT 0.5 CHECK(importance BETWEEN 0 AND 1),
  created_at INTEGER NOT NULL DEFAULT ({NOW}) CHECK(created_at BETWEEN {FIRST_TIME} AND {LAST_TIME}),
  updated_at INTEGER NOT NULL DEFAULT ({NOW}) CHECK(updated_at BETWEEN {FIRST_TIME} AND {LAST_TIME}),
  accessed_at INTEGER CHECK(accessed_at IS NULL OR accessed_at BETWEEN {FIRST_TIME} AND {LAST_TIME}),
  expires_at INTEGER CHECK(expires_at IS NULL OR expires_at BETWEEN {FIRST_TIME} AND {LAST_TIME}),
  text_hash BLOB,
  indexed INTEGER NOT NULL DEFAULT 0,
  place INTEGER GENERATED ALWAYS AS (ifnull(turn, 9223372036854775807)) VIRTUAL
);
CREATE INDEX record_scope ON record(scope, created_at);
CREATE INDEX record_session ON record(scope, session, place, created_at, key) WHERE session IS NOT NULL;
CREATE INDEX record_text ON record(scope, text_hash);
CREATE INDEX record_expiry ON record(expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX record_stale ON record(key) WHERE indexed = 0;

CREATE TABLE session(
  scope TEXT NOT NULL,
  id TEXT NOT NULL,
  title TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY(scope, id)
) WITHOUT ROWID;

CREATE TABLE dictionary(word TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE chunk(
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  record_key INTEGER NOT NULL REFERENCES record(key) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  hash BLOB NOT NULL,
  latin TEXT NOT NULL,
  grams TEXT NOT NULL,
  words TEXT NOT NULL,
  labels TEXT NOT NULL
);
CREATE INDEX chunk_record ON chunk(record_key, place);
CREATE INDEX chunk_hash ON chunk(hash);

CREATE VIRTUAL TABLE chunk_fts USING fts5(
  latin, grams, words, labels,
  content='chunk', content_rowid='key',
  tokenize="{TOKENIZER}"
);

CREATE TABLE space(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  model TEXT NOT NULL,
  dimensions INTEGER NOT NULL CHECK(dimensions > 0),
  created_at INTEGER NOT NULL DEFAULT ({NOW})
);

CREATE TABLE embedding(
  key INTEGER PRIMARY KEY,
  chunk_key INTEGER NOT NULL REFERENCES chunk(key) ON DELETE CASCADE,
  space_id INTEGER NOT NULL REFERENCES space(id) ON DELETE CASCADE,
  vector BLOB NOT NULL,
  given INTEGER NOT NULL DEFAULT 0,
  UNIQUE(chunk_key, space_id)
);

CREATE TABLE pending(
  chunk_key INTEGER PRIMARY KEY REFERENCES chunk(key) ON DELETE CASCADE,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL DEFAULT 0,
  error TEXT
);

CREATE TABLE vector_change(
  space_id INTEGER NOT NULL,
  chunk_key INTEGER NOT NULL,
  PRIMARY KEY(space_id, chunk_key)
) WITHOUT ROWID;
"""

# REPLACE deletes the old row without firing its delete trigger (recursive_triggers is off by default), so the chunks
# of a row that an insert would replace are dropped beforehand; if the insert is ignored instead, the row is reindexed.
FIRST_TRIGGERS = """
CREATE TRIGGER record_before_insert BEFORE INSERT ON record
WHEN EXISTS (SELECT 1 FROM record WHERE id = new.id OR key = new.key) BEGIN
  UPDATE record SET indexed = 0 WHERE id = new.id OR key = new.key;
  DELETE FROM chunk WHERE record_key IN (SELECT key FROM record WHERE id = new.id OR key = new.key);
END;
CREATE TRIGGER record_after_update AFTER UPDATE OF text, role, tags, metadata, source ON record BEGIN
  UPDATE record SET indexed = 0 WHERE key = new.key;
END;
CREATE TRIGGER record_after_delete AFTER DELETE ON record BEGIN
  DELETE FROM chunk WHERE record_key = old.key;
END;

CREATE TRIGGER chunk_after_insert AFTER INSERT ON chunk BEGIN
  INSERT INTO chunk_fts(rowid, latin, grams, words, labels)
  VALUES (new.key, new.latin, new.grams, new.words, new.labels);
  INSERT INTO pending(chunk_key) VALUES (new.key) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER chunk_after_delete AFTER DELETE ON chunk BEGIN
  INSERT INTO chunk_fts(chunk_fts, rowid, latin, grams, words, labels)
  VALUES ('delete', old.key, old.latin, old.grams, old.words, old.labels);
  DELETE FROM embedding WHERE chunk_key = old.key;
  DELETE FROM pending WHERE chunk_key = old.key;
END;
CREATE TRIGGER chunk_after_update AFTER UPDATE OF latin, grams, words, labels ON chunk BEGIN
  INSERT INTO chunk_fts(chunk_fts, rowid, latin, grams, words, labels)
  VALUES ('delete', old.key, old.latin, old.grams, old.words, old.labels);
  INSERT INTO chunk_fts(rowid, latin, grams, words, labels)
  VALUES (new.key, new.latin, new.grams, new.words, new.labels);
END;

CREATE TRIGGER embedding_after_insert AFTER INSERT ON embedding BEGIN
  INSERT INTO vector_change(space_id, chunk_key) VALUES (new.space_id, new.chunk_key) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER embedding_after_update AFTER UPDATE ON embedding BEGIN
  INSERT INTO vector_change(space_id, chunk_key) VALUES (new.space_id, new.chunk_key) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER embedding_after_delete AFTER DELETE ON embedding BEGIN
  INSERT INTO vector_change(space_id, chunk_key) VALUES (old.space_id, old.chunk_key) ON CONFLICT DO NOTHING;
END;
"""
