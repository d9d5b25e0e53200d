"""What later versions added to the schema, as SQL, step by step. Released steps are never edited."""

from __future__ import annotations

from .protocols import OWN_SPACE
from .schema import DROP_REPLACED, NOW, is_name, is_time

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

# Soft deletion moves a record into `trash`, out of sight of everything that reads `record`. It keeps its key there, by
# which its links find it again: they stay while both ends are in `record` or `trash`, and go with the end that goes
# for good. `meta.deleted_terms` counts the chunks whose terms were deleted, but are still in the data of the keyword
# index, since that was last cleared.
_DROP_REPLACED_LINKS = """DELETE FROM link WHERE from_key IN (SELECT key FROM replaced)
    AND (from_key = new.key OR from_key NOT IN (SELECT key FROM record));
  DELETE FROM link WHERE to_key IN (SELECT key FROM replaced)
    AND (to_key = new.key OR to_key NOT IN (SELECT key FROM record));"""
DELETED_TERMS = "deleted_terms"
_COUNT_DELETED_TERMS = f"""INSERT INTO meta(key, value) VALUES ('{DELETED_TERMS}', '1')
    ON CONFLICT(key) DO UPDATE SET value = CAST(value + 1 AS TEXT);"""
FOURTH_SCHEMA = f"""
CREATE TABLE trash(
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  record_key INTEGER NOT NULL,
  deleted_at INTEGER NOT NULL {is_time("deleted_at")},
  title TEXT,
  id TEXT NOT NULL,
  scope TEXT NOT NULL,
  session TEXT,
  turn INTEGER,
  role TEXT,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  payload TEXT,
  metadata TEXT NOT NULL,
  tags TEXT NOT NULL,
  source TEXT,
  importance REAL NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  accessed_at INTEGER,
  expires_at INTEGER
);
CREATE INDEX trash_id ON trash(id, key);
CREATE INDEX trash_record ON trash(record_key);
CREATE INDEX trash_age ON trash(deleted_at);
CREATE TABLE trash_vector(
  trash_key INTEGER NOT NULL REFERENCES trash(key) ON DELETE CASCADE,
  space_id INTEGER NOT NULL REFERENCES space(id) ON DELETE CASCADE,
  start INTEGER NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY(trash_key, space_id, start)
);
CREATE INDEX trash_vector_space ON trash_vector(space_id);

CREATE TABLE link(
  from_key INTEGER NOT NULL,
  to_key INTEGER NOT NULL CHECK(to_key <> from_key),
  kind TEXT NOT NULL {is_name("kind")},
  created_at INTEGER NOT NULL DEFAULT ({NOW}) {is_time("created_at")},
  PRIMARY KEY(from_key, to_key, kind)
) WITHOUT ROWID;
CREATE INDEX link_to ON link(to_key);

-- What earlier versions deleted was not counted.
INSERT INTO meta(key, value) SELECT '{DELETED_TERMS}', '1' FROM sqlite_sequence WHERE name = 'chunk';

DROP TRIGGER record_after_insert;
CREATE TRIGGER record_after_insert AFTER INSERT ON record WHEN EXISTS (SELECT 1 FROM replaced) BEGIN
  {_DROP_REPLACED_LINKS}
  {DROP_REPLACED}
END;
DROP TRIGGER record_after_rename;
CREATE TRIGGER record_after_rename AFTER UPDATE OF key, id ON record WHEN new.id <> old.id OR new.key <> old.key BEGIN
  {_DROP_REPLACED_LINKS}
  {DROP_REPLACED}
  UPDATE chunk SET record_key = new.key WHERE record_key = old.key;
  UPDATE link SET from_key = new.key WHERE from_key = old.key AND new.key <> old.key;
  UPDATE link SET to_key = new.key WHERE to_key = old.key AND new.key <> old.key;
END;
DROP TRIGGER record_after_delete;
CREATE TRIGGER record_after_delete AFTER DELETE ON record BEGIN
  DELETE FROM chunk WHERE record_key = old.key;
  DELETE FROM link WHERE from_key = old.key AND NOT EXISTS (SELECT 1 FROM trash WHERE record_key = old.key);
  DELETE FROM link WHERE to_key = old.key AND NOT EXISTS (SELECT 1 FROM trash WHERE record_key = old.key);
END;
CREATE TRIGGER trash_after_delete AFTER DELETE ON trash BEGIN
  DELETE FROM trash_vector WHERE trash_key = old.key;
  DELETE FROM link WHERE from_key = old.record_key AND NOT EXISTS (SELECT 1 FROM record WHERE key = old.record_key)
    AND NOT EXISTS (SELECT 1 FROM trash WHERE record_key = old.record_key);
  DELETE FROM link WHERE to_key = old.record_key AND NOT EXISTS (SELECT 1 FROM record WHERE key = old.record_key)
    AND NOT EXISTS (SELECT 1 FROM trash WHERE record_key = old.record_key);
END;

DROP TRIGGER chunk_after_update;
CREATE TRIGGER chunk_after_update AFTER UPDATE OF latin, grams, words, labels ON chunk
WHEN (new.latin, new.grams, new.words, new.labels) IS NOT (old.latin, old.grams, old.words, old.labels) BEGIN
  INSERT INTO chunk_fts(chunk_fts, rowid, latin, grams, words, labels)
  VALUES ('delete', old.key, old.latin, old.grams, old.words, old.labels);
  INSERT INTO chunk_fts(rowid, latin, grams, words, labels)
  VALUES (new.key, new.latin, new.grams, new.words, new.labels);
  {_COUNT_DELETED_TERMS}
END;
CREATE TRIGGER terms_deleted AFTER DELETE ON chunk BEGIN
  {_COUNT_DELETED_TERMS}
END;
DROP TRIGGER space_deleted;
CREATE TRIGGER space_deleted AFTER DELETE ON space BEGIN
  DELETE FROM embedding WHERE space_id = old.id;
  DELETE FROM trash_vector WHERE space_id = old.id;
  DELETE FROM code_index WHERE space_id = old.id;
  DELETE FROM vector_change WHERE space_id = old.id;
  INSERT INTO pending(chunk_key) SELECT key FROM chunk WHERE embeds AND old.name = '{OWN_SPACE}' ON CONFLICT DO NOTHING;
END;
"""
