"""The tables of a memory file, as SQL; `docs/storage-format.md` describes every byte, `upgrades` adds what came later.

Truth: record, link, trash, trash_vector, session, space, embedding, dictionary, meta. Derived from it and rebuildable:
chunk, chunk_fts, and the vector index tables. To do: pending (chunks without a vector) and vector_change (vectors the
index has not seen).

Everything that must hold when another program writes is a constraint or a trigger in plain SQL, so that the stock
sqlite3 can add, change and delete records. `record.indexed` counts our own writes of a row; it is 0 where another
program has written since, so that the chunks are missing or out of date.
"""

from __future__ import annotations

from ..text import TOKENIZER
from .protocols import OWN_SPACE

APPLICATION_ID = 0x5243414C  # "RCAL"
PAGE_SIZE = 8192  # five 384-dimensional vectors on a page; SQLite's 4096 holds two and wastes a quarter

NOW = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999  # microseconds: the years 1 to 9999
SORTABLE_ID = "printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)) || lower(hex(randomblob(6)))"

NEW_INDEX = "new_chunk_fts"  # the keyword index that a repair is making beside the old one

MAX_NAME, MAX_SCOPE = 512, 1024  # characters; as in drafting and scopes


def is_name(column: str) -> str:
    """Return the constraint of a column that holds names."""
    return f"CHECK({column} IS NULL OR typeof({column}) = 'text' AND length({column}) BETWEEN 1 AND {MAX_NAME})"


def is_time(column: str) -> str:
    """Return the constraint of a column that holds times."""
    year_1_to_9999 = f"{column} BETWEEN {FIRST_TIME} AND {LAST_TIME}"
    return f"CHECK({column} IS NULL OR typeof({column}) = 'integer' AND {year_1_to_9999})"


# In how many chunks each term occurs. Of the connection, not of the file.
TERM_TABLE = "CREATE VIRTUAL TABLE temp.term USING fts5vocab('main', 'chunk_fts', 'row')"

FIRST_SCHEMA = f"""
CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE record(
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE DEFAULT ({SORTABLE_ID}) {is_name("id")},
  scope TEXT NOT NULL DEFAULT '' CHECK(typeof(scope) = 'text' AND length(scope) <= {MAX_SCOPE}),
  session TEXT {is_name("session")},
  turn INTEGER CHECK(typeof(turn) IN ('integer', 'null')),
  role TEXT {is_name("role")},
  kind TEXT NOT NULL DEFAULT 'memory' {is_name("kind")},
  text TEXT NOT NULL CHECK(typeof(text) = 'text'),
  payload TEXT CHECK(payload IS NULL OR typeof(payload) = 'text' AND json_valid(payload)),
  metadata TEXT NOT NULL DEFAULT '{{}}'
    CHECK(typeof(metadata) = 'text' AND json_valid(metadata) AND json_type(metadata) = 'object'),
  tags TEXT NOT NULL DEFAULT '[]' CHECK(typeof(tags) = 'text' AND json_valid(tags) AND json_type(tags) = 'array'),
  source TEXT {is_name("source")},
  importance REAL NOT NULL DEFAULT 0.5 CHECK(importance BETWEEN 0 AND 1),
  created_at INTEGER NOT NULL DEFAULT ({NOW}) {is_time("created_at")},
  updated_at INTEGER NOT NULL DEFAULT ({NOW}) {is_time("updated_at")},
  accessed_at INTEGER {is_time("accessed_at")},
  expires_at INTEGER {is_time("expires_at")},
  text_hash BLOB,
  indexed INTEGER NOT NULL DEFAULT 0,
  place INTEGER GENERATED ALWAYS AS (ifnull(turn, 9223372036854775807)) VIRTUAL
);
CREATE INDEX record_scope ON record(scope, created_at);
CREATE INDEX record_session ON record(scope, session, place, created_at, key) WHERE session IS NOT NULL;
CREATE INDEX record_text ON record(scope, text_hash);
CREATE INDEX record_expiry ON record(expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX record_stale ON record(key) WHERE indexed = 0;

-- The keys of records that a statement is about to replace; empty between statements, or harmless.
CREATE TABLE replaced(key INTEGER PRIMARY KEY);

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
  id INTEGER PRIMARY KEY AUTOINCREMENT,
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
CREATE INDEX pending_order ON pending(attempts, chunk_key);

CREATE TABLE vector_change(
  space_id INTEGER NOT NULL,
  chunk_key INTEGER NOT NULL,
  PRIMARY KEY(space_id, chunk_key)
) WITHOUT ROWID;
"""

# REPLACE deletes a row without firing its delete trigger (recursive_triggers is off by default). So the rows that a
# statement may replace are noted before it, and after it those that are gone lose their chunks. If the statement turns
# out to ignore the conflict instead, or to be an upsert, the rows are still there and keep them.
_NOTE_REPLACED = """DELETE FROM replaced;
  INSERT INTO replaced(key) SELECT key FROM record WHERE {conflict};"""
DROP_REPLACED = """DELETE FROM chunk WHERE record_key IN (SELECT key FROM replaced)
    AND (record_key = new.key OR record_key NOT IN (SELECT key FROM record));
  DELETE FROM replaced;"""
_CHECK_TAGS = """SELECT RAISE(ABORT, 'tags is a JSON array of texts of 1 to 512 characters')
  WHERE EXISTS (SELECT 1 FROM json_each(new.tags) WHERE type <> 'text' OR length(value) NOT BETWEEN 1 AND 512);"""
FIRST_TRIGGERS = f"""
CREATE TRIGGER record_before_insert BEFORE INSERT ON record
WHEN EXISTS (SELECT 1 FROM record WHERE id = new.id OR key = new.key) BEGIN
  {_NOTE_REPLACED.format(conflict="id = new.id OR key = new.key")}
END;
CREATE TRIGGER record_after_insert AFTER INSERT ON record WHEN EXISTS (SELECT 1 FROM replaced) BEGIN
  {DROP_REPLACED}
END;
CREATE TRIGGER record_before_rename BEFORE UPDATE OF key, id ON record WHEN new.id <> old.id OR new.key <> old.key BEGIN
  {_NOTE_REPLACED.format(conflict="(id = new.id OR key = new.key) AND key <> old.key")}
END;
CREATE TRIGGER record_after_rename AFTER UPDATE OF key, id ON record WHEN new.id <> old.id OR new.key <> old.key BEGIN
  {DROP_REPLACED}
  UPDATE chunk SET record_key = new.key WHERE record_key = old.key;
END;
CREATE TRIGGER record_after_update AFTER UPDATE OF text, role, tags, metadata, source ON record
WHEN new.indexed = old.indexed BEGIN
  UPDATE record SET indexed = 0 WHERE key = new.key;
END;
CREATE TRIGGER record_after_delete AFTER DELETE ON record BEGIN
  DELETE FROM chunk WHERE record_key = old.key;
END;
CREATE TRIGGER tags_before_insert BEFORE INSERT ON record WHEN new.tags <> '[]' BEGIN
  {_CHECK_TAGS}
END;
CREATE TRIGGER tags_before_update BEFORE UPDATE OF tags ON record WHEN new.tags <> old.tags BEGIN
  {_CHECK_TAGS}
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
  INSERT INTO pending(chunk_key) SELECT key FROM chunk WHERE key = old.chunk_key
    AND old.space_id = (SELECT id FROM space WHERE name = '{OWN_SPACE}') ON CONFLICT DO NOTHING;
END;
"""
