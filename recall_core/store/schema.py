"""The tables of a memory file, as SQL; `docs/storage-format.md` describes every byte.

Truth: record, session, space, embedding, dictionary, meta. Derived from it and rebuildable: chunk, chunk_fts, and the
vector index tables. To do: pending (chunks without a vector) and vector_change (vectors the index has not seen).

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

MAX_NAME, MAX_SCOPE = 512, 1024  # characters; as in drafting and scopes


def _is_name(column: str) -> str:
    return f"CHECK({column} IS NULL OR typeof({column}) = 'text' AND length({column}) BETWEEN 1 AND {MAX_NAME})"


def _is_time(column: str) -> str:
    year_1_to_9999 = f"{column} BETWEEN {FIRST_TIME} AND {LAST_TIME}"
    return f"CHECK({column} IS NULL OR typeof({column}) = 'integer' AND {year_1_to_9999})"


# In how many chunks each term occurs. Of the connection, not of the file.
TERM_TABLE = "CREATE VIRTUAL TABLE temp.term USING fts5vocab('main', 'chunk_fts', 'row')"

FIRST_SCHEMA = f"""
CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE record(
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE DEFAULT ({SORTABLE_ID}) {_is_name("id")},
  scope TEXT NOT NULL DEFAULT '' CHECK(typeof(scope) = 'text' AND length(scope) <= {MAX_SCOPE}),
  session TEXT {_is_name("session")},
  turn INTEGER CHECK(typeof(turn) IN ('integer', 'null')),
  role TEXT {_is_name("role")},
  kind TEXT NOT NULL DEFAULT 'memory' {_is_name("kind")},
  text TEXT NOT NULL CHECK(typeof(text) = 'text'),
  payload TEXT CHECK(payload IS NULL OR typeof(payload) = 'text' AND json_valid(payload)),
  metadata TEXT NOT NULL DEFAULT '{{}}'
    CHECK(typeof(metadata) = 'text' AND json_valid(metadata) AND json_type(metadata) = 'object'),
  tags TEXT NOT NULL DEFAULT '[]' CHECK(typeof(tags) = 'text' AND json_valid(tags) AND json_type(tags) = 'array'),
  source TEXT {_is_name("source")},
  importance REAL NOT NULL DEFAULT 0.5 CHECK(importance BETWEEN 0 AND 1),
  created_at INTEGER NOT NULL DEFAULT ({NOW}) {_is_time("created_at")},
  updated_at INTEGER NOT NULL DEFAULT ({NOW}) {_is_time("updated_at")},
  accessed_at INTEGER {_is_time("accessed_at")},
  expires_at INTEGER {_is_time("expires_at")},
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
_DROP_REPLACED = """DELETE FROM chunk WHERE record_key IN (SELECT key FROM replaced)
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
  {_DROP_REPLACED}
END;
CREATE TRIGGER record_before_rename BEFORE UPDATE OF key, id ON record WHEN new.id <> old.id OR new.key <> old.key BEGIN
  {_NOTE_REPLACED.format(conflict="(id = new.id OR key = new.key) AND key <> old.key")}
END;
CREATE TRIGGER record_after_rename AFTER UPDATE OF key, id ON record WHEN new.id <> old.id OR new.key <> old.key BEGIN
  {_DROP_REPLACED}
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

# Which records' chunks, vectors or places in a conversation changed, in the order of the changes, so that what a
# process holds in memory can follow. Only the last ones are kept: who has missed more reads all anew.
CHANGES_KEPT = 8192
SECOND_SCHEMA = f"""
CREATE TABLE change(seq INTEGER PRIMARY KEY AUTOINCREMENT, record_key INTEGER NOT NULL);

-- The index of a large space: what its codes are centred by, and the codes by chunk key. One that is made anew begins
-- with a higher version, so that nobody takes it for the old one.
CREATE TABLE code_index(
  space_id INTEGER PRIMARY KEY REFERENCES space(id) ON DELETE CASCADE,
  version INTEGER NOT NULL DEFAULT ({NOW}) CHECK(typeof(version) = 'integer'),
  centre BLOB NOT NULL CHECK(typeof(centre) = 'blob')
);
CREATE TABLE code_page(
  space_id INTEGER NOT NULL REFERENCES space(id) ON DELETE CASCADE,
  number INTEGER NOT NULL CHECK(typeof(number) = 'integer' AND number BETWEEN -{1 << 53} AND {(1 << 53) - 1}),
  version INTEGER NOT NULL,
  present BLOB NOT NULL CHECK(typeof(present) = 'blob' AND length(present) = 128),
  codes BLOB NOT NULL CHECK(typeof(codes) = 'blob'),
  PRIMARY KEY(space_id, number)
);
CREATE INDEX code_version ON code_page(space_id, version);

CREATE TRIGGER change_after_insert AFTER INSERT ON change WHEN new.seq % 1024 = 0 BEGIN
  DELETE FROM change WHERE seq <= new.seq - {CHANGES_KEPT};
END;
CREATE TRIGGER record_changed
AFTER UPDATE OF key, id, scope, session, role, turn, text, created_at, expires_at ON record
WHEN (new.key, new.id, new.scope, new.session, new.role, new.turn, new.text, new.created_at, new.expires_at)
  IS NOT (old.key, old.id, old.scope, old.session, old.role, old.turn, old.text, old.created_at, old.expires_at) BEGIN
  INSERT INTO change(record_key) SELECT old.key UNION SELECT new.key;
END;
CREATE TRIGGER chunk_inserted AFTER INSERT ON chunk BEGIN
  INSERT INTO change(record_key) VALUES (new.record_key);
END;
CREATE TRIGGER chunk_changed AFTER UPDATE ON chunk BEGIN
  INSERT INTO change(record_key) SELECT old.record_key UNION SELECT new.record_key;
END;
CREATE TRIGGER chunk_deleted AFTER DELETE ON chunk BEGIN
  INSERT INTO change(record_key) VALUES (old.record_key);
END;
CREATE TRIGGER embedding_inserted AFTER INSERT ON embedding BEGIN
  INSERT INTO change(record_key) SELECT record_key FROM chunk WHERE key = new.chunk_key;
END;
CREATE TRIGGER embedding_changed AFTER UPDATE ON embedding BEGIN
  INSERT INTO change(record_key) SELECT record_key FROM chunk WHERE key IN (old.chunk_key, new.chunk_key);
  INSERT INTO vector_change(space_id, chunk_key) VALUES (old.space_id, old.chunk_key) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER embedding_deleted AFTER DELETE ON embedding BEGIN
  INSERT INTO change(record_key) SELECT record_key FROM chunk WHERE key = old.chunk_key;
END;

-- What has no code any more is to be taken up again.
CREATE TRIGGER code_page_deleted AFTER DELETE ON code_page BEGIN
  INSERT INTO vector_change(space_id, chunk_key) SELECT space_id, chunk_key FROM embedding
    WHERE space_id = old.space_id AND chunk_key BETWEEN 1024 * old.number AND 1024 * old.number + 1023
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER code_index_deleted AFTER DELETE ON code_index BEGIN
  DELETE FROM code_page WHERE space_id = old.space_id;
  INSERT INTO vector_change(space_id, chunk_key) SELECT space_id, chunk_key FROM embedding
    WHERE space_id = old.space_id ON CONFLICT DO NOTHING;
END;
-- As the foreign keys do, which other programs have switched off.
CREATE TRIGGER space_deleted AFTER DELETE ON space BEGIN
  DELETE FROM embedding WHERE space_id = old.id;
  DELETE FROM code_index WHERE space_id = old.id;
  DELETE FROM vector_change WHERE space_id = old.id;
  INSERT INTO pending(chunk_key) SELECT key FROM chunk WHERE old.name = '{OWN_SPACE}' ON CONFLICT DO NOTHING;
END;
"""

# Who is embedding a chunk, and until when nobody else does, so that processes share the work. And which chunks are
# embedded at all: one that is not waits for no vector.
THIRD_SCHEMA = f"""
ALTER TABLE pending ADD COLUMN owner TEXT;
ALTER TABLE pending ADD COLUMN leased_until INTEGER NOT NULL DEFAULT 0;
CREATE INDEX pending_lease ON pending(owner, leased_until) WHERE owner IS NOT NULL;
ALTER TABLE chunk ADD COLUMN embeds INTEGER NOT NULL DEFAULT 1;

DROP TRIGGER chunk_after_insert;
CREATE TRIGGER chunk_after_insert AFTER INSERT ON chunk BEGIN
  INSERT INTO chunk_fts(rowid, latin, grams, words, labels)
  VALUES (new.key, new.latin, new.grams, new.words, new.labels);
  INSERT INTO pending(chunk_key) SELECT new.key WHERE new.embeds ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER chunk_embeds_changed AFTER UPDATE OF embeds ON chunk WHEN new.embeds <> old.embeds BEGIN
  DELETE FROM pending WHERE chunk_key = new.key AND NOT new.embeds;
  INSERT INTO pending(chunk_key) SELECT new.key WHERE new.embeds AND NOT EXISTS
    (SELECT 1 FROM embedding JOIN space ON space.id = space_id WHERE chunk_key = new.key AND name = '{OWN_SPACE}')
    ON CONFLICT DO NOTHING;
END;
DROP TRIGGER embedding_after_delete;
CREATE TRIGGER embedding_after_delete AFTER DELETE ON embedding BEGIN
  INSERT INTO vector_change(space_id, chunk_key) VALUES (old.space_id, old.chunk_key) ON CONFLICT DO NOTHING;
  INSERT INTO pending(chunk_key) SELECT key FROM chunk WHERE key = old.chunk_key AND embeds
    AND old.space_id = (SELECT id FROM space WHERE name = '{OWN_SPACE}') ON CONFLICT DO NOTHING;
END;
DROP TRIGGER space_deleted;
CREATE TRIGGER space_deleted AFTER DELETE ON space BEGIN
  DELETE FROM embedding WHERE space_id = old.id;
  DELETE FROM code_index WHERE space_id = old.id;
  DELETE FROM vector_change WHERE space_id = old.id;
  INSERT INTO pending(chunk_key) SELECT key FROM chunk WHERE embeds AND old.name = '{OWN_SPACE}' ON CONFLICT DO NOTHING;
END;
"""
