"""What the tests of the doctor share: a memory with everything in it, damage of each kind, and what searches find.

Damage is done by the stock sqlite3, or to the bytes of the closed file. Run as a script it is a process that repairs:
`python damage_support.py PATH`.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from support import HashedEmbedder

from recall_core import Memory, Settings
from recall_core.integrity import examine_file

DIMENSIONS = 16
CHUNKED = Settings(backfill_interval=math.inf, chunk_size=40, chunk_overlap=0, chunk_unit="characters")
QUERIES = ("rockets fly to the moon", "灰度发布的数据库", "the build cache number 22")
MODES = ("hybrid", "keyword", "semantic")
SCOPES = ("", "a")
HOST = "host"


def embedder() -> HashedEmbedder:
    return HashedEmbedder(DIMENSIONS)


def open_memory(path: Path | str) -> Memory:
    return Memory.open(path, embedder=embedder(), settings=CHUNKED)


def fill(path: Path | str, count: int = 80) -> None:
    """Store records of both languages, short and long, with and without vectors of their own."""
    rng = np.random.default_rng(7)
    texts = (
        "Rockets fly to the moon, number {}.",
        "数据库配置在 config/prod-{}.yaml，灰度发布每周二进行。",
        "The build cache number {} lives on /mnt/cache. It is emptied on Mondays, and nobody minds. Not even the bees.",
        "火箭 {} 号发射成功。",
    )
    with open_memory(path) as memory:
        memory.add_many(
            {
                "text": texts[number % len(texts)].format(number),
                "id": f"r{number:03}",
                "scope": "ab"[number % 2],
                "role": ("user", "Dana", None)[number % 3],
                "tags": ["build", f"n{number % 5}"],
                "session": "s" if number % 6 == 0 else None,
                "metadata": {"stars": number % 5, "place": "lab"},
            }
            | ({"vector": rng.normal(size=DIMENSIONS).tolist()} if number % 10 == 0 else {})
            | ({"vector": rng.normal(size=8).tolist(), "space": HOST} if number % 10 == 1 else {})
            for number in range(count)
        )
        memory.add("", id="empty")
        memory.flush()


def results(path: Path | str) -> dict[tuple[str, str, str], list[tuple[str, float]]]:
    """Return the ids and relevances that each query finds, once all has its vector."""
    with open_memory(path) as memory:
        assert memory.flush() == 0
        found = {
            (mode, scope, query): [
                (hit.record.id, round(hit.relevance, 6))
                for hit in memory.search(query, mode=mode, scope=scope, limit=20)
            ]
            for mode in MODES
            for scope in SCOPES
            for query in QUERIES
        }
        vector = np.ones(8).tolist()
        hits = memory.search("", vector=vector, space=HOST, mode="semantic", limit=20)
        return found | {("host", "", ""): [(hit.record.id, round(hit.relevance, 6)) for hit in hits]}


def given(path: Path | str) -> list[tuple[str, int, bytes]]:
    """Return the vectors that callers brought, by record and space."""
    sql = """
    SELECT record.id, space_id, vector FROM embedding JOIN chunk ON chunk.key = chunk_key
    JOIN record ON record.key = record_key WHERE given ORDER BY 1, 2
    """
    return read(path, sql)


def truth(path: Path | str) -> list[list[tuple]]:
    """Return what the tables of the truth hold, but for what the library counts."""
    columns = "id, scope, session, turn, role, kind, text, payload, metadata, tags, source, importance, created_at"
    return [
        read(path, f"SELECT {columns} FROM record ORDER BY key"),
        *(read(path, f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("session", "link", "trash", "trash_vector")),
        read(path, "SELECT word FROM dictionary ORDER BY 1"),
        given(path),
    ]


def read(path: Path | str, sql: str) -> list[tuple]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def run_sql(path: Path | str, *statements: str) -> None:
    """Run statements with the stock sqlite3, as one that knows nothing of recall_core does."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def without_triggers(*statements: str, of: Sequence[str] = ("chunk", "record", "embedding", "code_page")) -> list[str]:
    """Return statements that are run while the triggers of some tables are gone, as after a bad tool."""
    quoted = ", ".join(f"'{table}'" for table in of)
    return [f"@drop {quoted}", *statements, "@restore"]


def harm(path: Path | str, *statements: str) -> None:
    """Run statements as `run_sql`; "@drop 'table'" takes the triggers of tables away until "@restore"."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        kept: list[str] = []
        for statement in statements:
            if statement.startswith("@drop"):
                where = f"type = 'trigger' AND tbl_name IN ({statement.removeprefix('@drop')})"
                rows = connection.execute(f"SELECT name, sql FROM sqlite_master WHERE {where}").fetchall()
                for name, sql in rows:
                    connection.execute(f"DROP TRIGGER {name}")
                    kept.append(sql)
            elif statement == "@restore":
                for sql in kept:
                    connection.execute(sql)
                kept = []
            else:
                connection.execute(statement)
        connection.commit()


def now():
    return int(time.time() * 1e6)


def examine(path, **arguments):
    return {damage.kind: damage for damage in examine_file(str(path), 5, now, **arguments)[0]}


@dataclass(frozen=True)
class Harm:
    """Damage to derived parts: the statements that do it, and the kinds by which the doctor has to name it."""

    kinds: tuple[str, ...]
    statements: tuple[str, ...]
    needs_codes: bool = False


def _quietly(*statements: str) -> tuple[str, ...]:
    return tuple(without_triggers(*statements))


HARMS: dict[str, Harm] = {
    "some rows of the keyword index are gone": Harm(
        ("keyword-rows",), ("DELETE FROM chunk_fts_docsize WHERE id % 7 = 0",)
    ),
    "rows were taken out of the keyword index": Harm(
        ("keyword-rows",),
        (
            "INSERT INTO chunk_fts(chunk_fts, rowid, latin, grams, words, labels) "
            "SELECT 'delete', key, latin, grams, words, labels FROM chunk WHERE key % 7 = 0",
        ),
    ),
    "the keyword index holds what is gone": Harm(
        ("keyword-orphan",), ("INSERT INTO chunk_fts(rowid, latin) VALUES (9999, 'rocket moon rocket')",)
    ),
    "the keyword index holds other terms": Harm(
        ("keyword-wrong",),
        (
            "INSERT INTO chunk_fts(chunk_fts, rowid, latin, grams, words, labels) "
            "SELECT 'delete', key, latin, grams, words, labels FROM chunk WHERE key = 3",
            "INSERT INTO chunk_fts(rowid, latin) VALUES (3, 'rocket moon rocket')",
        ),
    ),
    "the data of the keyword index is noise": Harm(
        ("keyword-wrong",), ("UPDATE chunk_fts_data SET block = randomblob(40) WHERE id > 10",)
    ),
    "the data of the keyword index is gone": Harm(("keyword-wrong",), ("DELETE FROM chunk_fts_data",)),
    "a table of the keyword index is gone": Harm(("keyword-missing",), ("DROP TABLE chunk_fts_data",)),
    "the configuration of the keyword index is gone": Harm(("keyword-missing",), ("DROP TABLE chunk_fts_config",)),
    "the keyword index is gone": Harm(("keyword-missing",), ("DROP TABLE chunk_fts",)),
    "chunks are gone": Harm(
        ("chunk-missing",),
        (
            "DELETE FROM chunk WHERE record_key IN (4, 8, 9, 27) AND NOT EXISTS "
            "(SELECT 1 FROM embedding WHERE chunk_key = chunk.key AND given)",
        ),
    ),
    "last chunks of records are gone": Harm(("chunk-missing",), ("DELETE FROM chunk WHERE place > 0",)),
    "chunks are gone and what hung on them is left": Harm(
        ("chunk-missing", "vector-orphan", "keyword-orphan"),
        _quietly(
            "DELETE FROM chunk WHERE record_key % 5 = 3 AND NOT EXISTS "
            "(SELECT 1 FROM embedding WHERE chunk_key = chunk.key AND given)"
        ),
    ),
    "chunks have wrong offsets": Harm(("chunk-wrong",), ("UPDATE chunk SET start = start + 2 WHERE key IN (1, 5)",)),
    "chunks end behind their text": Harm(("chunk-wrong",), ("UPDATE chunk SET stop = stop + 99 WHERE key IN (1, 5)",)),
    "chunks have other hashes": Harm(("chunk-wrong",), ("UPDATE chunk SET hash = x'00' WHERE key IN (2, 11)",)),
    "chunks have other terms": Harm(
        ("chunk-wrong",), ("UPDATE chunk SET latin = 'rocket', labels = '' WHERE key IN (2, 11)",)
    ),
    "texts were changed behind the triggers": Harm(
        ("chunk-wrong",), _quietly("UPDATE chunk SET latin = 'old', hash = x'11' WHERE record_key = 7")
    ),
    "chunks are of records that are gone": Harm(
        ("chunk-orphan",),
        (
            "INSERT INTO chunk(record_key, place, start, stop, tokens, hash, latin, grams, words, labels) "
            "VALUES (7777, 0, 0, 5, 1, x'22', 'rocket moon', '', '', '')",
        ),
    ),
    "chunks are twice there": Harm(
        ("chunk-wrong",),
        (
            "INSERT INTO chunk(record_key, place, start, stop, tokens, hash, latin, grams, words, labels) "
            "SELECT record_key, place, start, stop, tokens, hash, latin, grams, words, labels FROM chunk WHERE key = 2",
        ),
    ),
    "vectors are of chunks that are gone": Harm(
        ("vector-orphan",),
        ("INSERT INTO embedding(chunk_key, space_id, vector) VALUES (8888, 1, zeroblob(64))",),
    ),
    "keys would be used again": Harm(
        ("chunk-keys",),
        _quietly("INSERT INTO vector_change(space_id, chunk_key) VALUES (1, 500)"),
    ),
    "chunks wait for nothing": Harm(
        ("pending-missing",), _quietly("DELETE FROM embedding WHERE NOT given AND chunk_key % 3 = 0")
    ),
    "chunks that are gone wait": Harm(("pending-orphan",), ("INSERT INTO pending(chunk_key) VALUES (6666)",)),
    "chunks wait that have vectors": Harm(
        ("pending-settled",), ("INSERT INTO pending(chunk_key) SELECT key FROM chunk WHERE key < 9",)
    ),
    "leases of processes that are gone": Harm(
        ("lease-stale",),
        (
            "DELETE FROM embedding WHERE chunk_key IN (2, 3) AND NOT given",
            "UPDATE pending SET owner = '1-dead-1', leased_until = 5",
        ),
    ),
    "leases that reach into the far future": Harm(
        ("lease-stale",),
        (
            "DELETE FROM embedding WHERE chunk_key IN (2, 3) AND NOT given",
            "UPDATE pending SET owner = '1-dead-1', leased_until = 9000000000000000",
        ),
    ),
    "chunks wait until the far future": Harm(
        ("pending-late",),
        (
            "DELETE FROM embedding WHERE chunk_key IN (2, 3) AND NOT given",
            "UPDATE pending SET next_at = 9000000000000000",
        ),
    ),
    "notes of spaces that are gone": Harm(("codes-orphan",), ("INSERT INTO vector_change VALUES (77, 1)",)),
    "codes of spaces that are gone": Harm(
        ("codes-orphan",), ("INSERT INTO code_index(space_id, centre) VALUES (77, x'00')",)
    ),
    "the notes are gone": Harm(("vector-unnoted",), ("DELETE FROM vector_change WHERE space_id = 2",)),
    "the table of notes is gone": Harm(("table-missing",), ("DROP TABLE vector_change",)),
    "pages of codes are noise": Harm(
        ("codes-page",), ("UPDATE code_page SET codes = randomblob(length(codes))",), needs_codes=True
    ),
    "pages of codes are cut off": Harm(("codes-page",), ("UPDATE code_page SET codes = x'0102'",), needs_codes=True),
    "pages of codes are gone": Harm(("codes-page",), _quietly("DELETE FROM code_page"), needs_codes=True),
    "pages of codes say that they are empty": Harm(
        ("codes-page",), ("UPDATE code_page SET present = zeroblob(128), codes = x''",), needs_codes=True
    ),
    "pages of codes have the version of none": Harm(
        ("codes-page",), ("UPDATE code_page SET version = 0",), needs_codes=True
    ),
    "the centre of the codes is cut off": Harm(
        ("codes-centre",), ("UPDATE code_index SET centre = x'01'",), needs_codes=True
    ),
    "the version of the codes is none": Harm(
        ("codes-centre",), ("UPDATE code_index SET version = -5",), needs_codes=True
    ),
    "triggers are gone": Harm(
        ("trigger-missing",), ("DROP TRIGGER chunk_after_insert", "DROP TRIGGER record_after_delete")
    ),
    "a trigger does something else": Harm(
        ("trigger-missing",),
        (
            "DROP TRIGGER chunk_after_insert",
            "CREATE TRIGGER chunk_after_insert AFTER INSERT ON chunk BEGIN SELECT 1; END",
        ),
    ),
    "indexes are gone": Harm(("index-missing",), ("DROP INDEX record_scope", "DROP INDEX chunk_record")),
    "the table of changes is gone": Harm(("table-missing",), ("DROP TABLE change",)),
    "the queue is gone": Harm(("table-missing",), ("DROP TABLE pending",)),
    "the codes are gone": Harm(("table-missing",), ("DROP TABLE code_page", "DROP TABLE code_index")),
    "the schema version is too low": Harm(("schema-version",), ("PRAGMA user_version = 2",)),
    "the schema version is none": Harm(("schema-version",), ("PRAGMA user_version = 0",)),
    "the application id is another's": Harm(("application-id",), ("PRAGMA application_id = 4711",)),
}
