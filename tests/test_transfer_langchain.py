"""Histories of `SQLChatMessageHistory`; tests/data/langchain-history.db was written by langchain-community 0.4.2."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from recall_core import Memory

HISTORY = Path(__file__).parent / "data" / "langchain-history.db"


def open_memory():
    return Memory.open(":memory:", embedder=None)


def write_history(path, *messages):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT)")
        connection.executemany(
            "INSERT INTO message_store (session_id, message) VALUES ('s', ?)", [[m] for m in messages]
        )
    return path


def test_messages_become_records_of_their_sessions():
    with open_memory() as memory:
        imported = memory.import_(HISTORY)
        assert (imported.format, imported.read, imported.added, imported.failed) == ("langchain", 7, 4, 0)
        assert imported.skipped == {"system messages": 1, "messages without text": 1, "results of tools": 1}
        first = memory.session("t1").messages()
        assert [(message.role, message.turn, message.text) for message in first] == [
            ("user", 1, "结算页很慢，怎么回事？"),
            ("assistant", 2, "慢查询：orders 表缺索引。"),
        ]
        assert [dict(message.metadata) for message in first] == [{"id": "m1", "name": "小李"}, {"score": 0.9}]
        assert [message.text for message in memory.session("t2").messages()] == [
            "Where do the logs lie?",
            "In /var/log/shop.",
        ]


def test_importing_again_adds_nothing_and_another_scope_is_another_place():
    with open_memory() as memory:
        first = memory.import_(HISTORY, scope="user/1")
        again = memory.import_(HISTORY, scope="user/1")
        assert (first.added, again.added, again.present) == (4, 0, 4)
        assert memory.import_(HISTORY, scope="user/2").added == 4


def test_a_message_that_can_not_be_read_is_told_by_its_row(tmp_path):
    good = json.dumps({"type": "human", "data": {"content": "x"}})
    path = write_history(tmp_path / "h.db", good, "{", "[1]", None, '{"type": "ai", "data": 5}', good)
    with open_memory() as memory:
        imported = memory.import_(path)
        assert (imported.added, imported.failed) == (2, 4)
        assert [failure.line for failure in imported.failures] == [2, 3, 4, 5]


def test_a_file_that_is_in_use_is_read_with_its_log_and_not_changed(tmp_path):
    path = write_history(tmp_path / "h.db")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        with writer:
            message = json.dumps({"type": "human", "data": {"content": "in the log"}})
            writer.execute("INSERT INTO message_store (session_id, message) VALUES ('s', ?)", [message])
        before = path.read_bytes()
        with open_memory() as memory:
            assert memory.import_(path).added == 1
        assert path.read_bytes() == before
