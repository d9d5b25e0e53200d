"""Histories of LangChain's `SQLChatMessageHistory`, as langchain-community writes them."""

from __future__ import annotations

import json
import sqlite3

from recall_core import Memory

MESSAGES = [
    ("s1", {"type": "human", "data": {"content": "怎么部署？", "additional_kwargs": {}, "type": "human", "id": "m1"}}),
    ("s1", {"type": "ai", "data": {"content": [{"type": "text", "text": "用 Docker Compose。"}], "type": "ai"}}),
    ("s2", {"type": "human", "data": {"content": "Where do the logs lie?", "type": "human"}}),
    ("s1", {"type": "ai", "data": {"content": "", "type": "ai", "tool_calls": [{"name": "search", "args": {}}]}}),
    ("s1", {"type": "human", "data": {"content": "谢谢", "type": "human"}}),
]


def write_history(path, messages=MESSAGES):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT)")
        rows = [
            (session, message if isinstance(message, str) else json.dumps(message)) for session, message in messages
        ]
        connection.executemany("INSERT INTO message_store (session_id, message) VALUES (?, ?)", rows)
    connection.close()
    return path


def test_messages_become_records_of_their_sessions(tmp_path):
    with Memory.open(":memory:", embedder=None) as memory:
        imported = memory.import_(write_history(tmp_path / "chat.db"))
        assert (imported.format, imported.read, imported.added, imported.failed) == ("langchain", 5, 4, 0)
        assert imported.skipped == {"messages without text": 1}
        said = [(m.role, m.turn, m.text) for m in memory.session("s1").messages()]
        assert said == [("user", 1, "怎么部署？"), ("assistant", 2, "用 Docker Compose。"), ("user", 3, "谢谢")]


def test_importing_again_adds_nothing(tmp_path):
    history = write_history(tmp_path / "chat.db")
    with Memory.open(":memory:", embedder=None) as memory:
        first = memory.import_(history, scope="user/1")
        again = memory.import_(history, scope="user/1")
        assert (first.added, again.added, again.present) == (4, 0, 4)
        assert memory.import_(history, scope="user/2").added == 4
