"""Memories of other programs that keep them in SQLite: CmdCode, SinoMem, scope-recall."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from foreign_support import CHUNKS, CMDCODE, SCOPED, SINOMEM, SINOMEM_WITH_METADATA, make_database
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from support import NOW, FixedClock

from recall_core import Memory
from recall_core.errors import InvalidInputError

MILLISECONDS = int(NOW.timestamp() * 1000)
LONG = "部署服务统一使用 Docker Compose，不再使用虚拟机。回滚时先停流量，再换镜像。" * 4


@pytest.fixture
def memory():
    with Memory.open(":memory:", embedder=None, clock=FixedClock()) as memory:
        yield memory


def by_text(memory, **arguments):
    return {record.text: record for record in memory.records(limit=1000, **arguments)}


# CmdCode


@pytest.fixture
def cmdcode(tmp_path):
    sessions = [
        ("s1", "部署讨论", "shop", MILLISECONDS, MILLISECONDS, 4),
        ("s2", "Coffee", None, MILLISECONDS, MILLISECONDS, 1),
        ("s3", "Nothing said yet", None, MILLISECONDS, MILLISECONDS, 0),
    ]
    messages = [
        (1, "s1", "human", "怎么部署服务？", 1, MILLISECONDS, None, "done"),
        (2, "s1", "ai", "统一使用 Docker Compose。", 1, MILLISECONDS + 1500, '{"model": "doubao"}', "done"),
        (3, "s1", "user", "And the rollback?", 2, MILLISECONDS + 3000, None, "failed"),
        (4, "s1", "tool", "   ", 3, MILLISECONDS + 3000, None, None),
        (5, "s2", "user", "Anna takes her coffee black", None, MILLISECONDS, "not json", None),
    ]
    return make_database(tmp_path / "cmdcode.db", CMDCODE, sessions=sessions, messages=messages)


def test_the_messages_of_cmdcode_become_records_of_their_sessions(memory, cmdcode):
    done = memory.import_(cmdcode)
    assert (done.format, done.read, done.added, done.failed) == ("cmdcode", 5, 4, 0)
    assert done.skipped == {"messages without text": 1}
    found = by_text(memory)
    question, answer = found["怎么部署服务？"], found["统一使用 Docker Compose。"]
    assert (question.session, question.turn, question.role, question.kind) == ("s1", 1, "user", "message")
    assert (answer.role, answer.metadata["model"], answer.metadata["project"]) == ("assistant", "doubao", "shop")
    assert answer.created_at == NOW + timedelta(milliseconds=1500)
    coffee = found["Anna takes her coffee black"]
    assert (coffee.session, coffee.turn, coffee.metadata) == ("s2", 1, {"metadata": "not json"})
    assert (question.scope, question.source, question.tags) == ("", "cmdcode", ())
    assert memory.session("s1").title == "部署讨论"
    assert memory.session("s3").title == "Nothing said yet"


def test_other_names_of_columns_are_known(memory, tmp_path):
    schema = """
    CREATE TABLE sessions (session_id TEXT PRIMARY KEY, name TEXT, user_id TEXT);
    CREATE TABLE messages (uuid TEXT, conversation_id TEXT, sender TEXT, body TEXT, timestamp TEXT, tags TEXT,
      lang TEXT);
    """
    parts = json.dumps([{"type": "text", "text": "喝茶"}])
    rows = [
        ("u1", "c1", "bot", parts, "2026-01-31 09:30:00", "a,b", "zh"),
        ("u2", "c1", "user", "x", "soon", None, None),
    ]
    path = make_database(tmp_path / "other.db", schema, sessions=[("c1", "Tea", "42")], messages=rows)
    assert memory.import_(path, format="cmdcode").added == 2
    found = by_text(memory)
    tea = found["喝茶"]
    assert (tea.scope, tea.session, tea.role, tea.tags) == ("user/42", "c1", "assistant", ("a", "b"))
    assert (tea.created_at, tea.metadata) == (NOW, {"lang": "zh"})
    assert found["x"].metadata == {"created_at": "soon"}


def test_long_texts_of_a_session_are_not_told_with_each_message(memory, tmp_path):
    schema = """
    CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT, model TEXT, system_prompt TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL);
    """
    path = make_database(
        tmp_path / "state.db",
        schema,
        sessions=[("s", "Tea", "doubao", "You are very " * 100)],
        messages=[(1, "s", "user", "喝茶", NOW.timestamp())],
    )
    memory.import_(path)
    (record,) = memory.records()
    assert (record.metadata, record.created_at) == ({"model": "doubao"}, NOW)


# SinoMem


@pytest.fixture
def sinomem(tmp_path):
    later, before = "2027-01-31 09:30:00", "2025-01-31 09:30:00"
    rows = [
        (
            1,
            "用户喜欢喝茶，不加糖",
            "preference",
            '["饮食", "习惯"]',
            0.9,
            None,
            before,
            "2026-01-01 00:00:00",
            3,
            before,
        ),
        (2, "The staging server runs Debian 12", "general", "[]", 0.5, later, before, before, 0, None),
        (3, "过期的记忆", "general", "[]", 0.5, before, before, before, 0, None),
        (4, "灰度发布平台在周五上线", "project", '["project", "发布"]', 1.0, None, before, before, 0, None),
    ]
    return make_database(tmp_path / "sinomem.db", SINOMEM, memories=rows)


def test_the_memories_of_sinomem_keep_their_category_tags_importance_and_end(memory, sinomem):
    done = memory.import_(sinomem)
    assert (done.format, done.read, done.added, done.failed) == ("sinomem", 4, 3, 0)
    assert done.skipped == {"expired": 1}
    found = by_text(memory)
    tea, release = found["用户喜欢喝茶，不加糖"], found["灰度发布平台在周五上线"]
    server = found["The staging server runs Debian 12"]
    assert (tea.tags, tea.importance, tea.metadata) == (("preference", "饮食", "习惯"), 0.9, {"access_count": 3})
    assert tea.created_at == tea.accessed_at == datetime(2025, 1, 31, 9, 30, tzinfo=UTC)
    assert tea.updated_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert (server.tags, server.expires_at) == ((), datetime(2027, 1, 31, 9, 30, tzinfo=UTC))
    assert (release.tags, release.importance, release.kind) == (("project", "发布"), 1.0, "memory")
    assert [hit.record.text for hit in memory.search("喝茶", limit=1)] == ["用户喜欢喝茶，不加糖"]


def test_a_time_to_live_counts_from_when_the_memory_was_made(memory, tmp_path):
    made = NOW.timestamp() - 86_400
    rows = [
        ("a", "短期记忆", "note", 8, "7d12h", '{"origin": "chat", "deep": {"k": [1]}}', "42", made),
        ("b", "Gone already", "note", 3, "12h", None, "42", made),
        ("c", "For ever", None, 10, None, "{}", None, made),
    ]
    path = make_database(tmp_path / "m.db", SINOMEM_WITH_METADATA, memories=rows)
    done = memory.import_(path)
    assert (done.added, done.skipped) == (2, {"expired": 1})
    found = by_text(memory)
    short = found["短期记忆"]
    assert short.expires_at == NOW - timedelta(days=1) + timedelta(days=7, hours=12)
    assert (short.scope, short.tags, short.importance) == ("user/42", ("note",), 0.8)
    assert short.metadata == {"origin": "chat", "deep": {"k": [1]}}
    assert (found["For ever"].importance, found["For ever"].expires_at) == (1.0, None)


# scope-recall


@pytest.fixture
def chunks(tmp_path):
    time = "2026-01-31T09:30:00"
    pieces = [LONG[start : start + 60] for start in range(0, len(LONG) - 10, 50)]
    answer = {"user_id": "42", "session_id": "s1", "turn_index": 1, "role": "assistant", "source": "chat"}
    marks = {"tags": '["deploy"]', "metadata": '{"lang": "zh"}', "embedding": b"\0" * 8, "created_at": time}
    rows = [
        {**answer, **marks, "id": 10 + place, "chunk_index": place, "content": piece}
        for place, piece in enumerate(pieces)
    ]
    user = {"user_id": "42", "session_id": "s1", "role": "user", "created_at": time}
    rows += [
        {**user, "id": 1, "turn_index": 0, "content": "怎么部署？"},
        {**user, "id": 2, "turn_index": 2, "content": " "},
        {**user, "id": 3, "turn_index": 0, "user_id": "7", "content": "What about coffee?", "importance": 0.8,
         "expires_at": "2026-06-01"},
    ]  # fmt: skip
    return make_database(tmp_path / "recall.db", CHUNKS, conversation_chunks=rows), len(rows)


def test_the_chunks_of_a_message_become_one_record_again(memory, chunks):
    path, _ = chunks
    done = memory.import_(path)
    assert (done.format, done.added, done.failed) == ("scope-recall", 3, 0)
    assert done.skipped == {"chunks without text": 1}
    found = by_text(memory)
    answer = found[LONG]
    assert (answer.scope, answer.session, answer.turn, answer.role) == ("user/42", "s1", 1, "assistant")
    assert (answer.source, answer.tags, answer.metadata) == ("chat", ("deploy",), {"lang": "zh"})
    assert answer.created_at == NOW
    coffee = found["What about coffee?"]
    assert (coffee.scope, coffee.importance) == ("user/7", 0.8)
    assert coffee.expires_at == datetime(2026, 6, 1, tzinfo=UTC)
    assert [message.turn for message in memory.scoped("user/42").session("s1").messages()] == [0, 1]


def test_memories_by_scope_are_read_too(memory, tmp_path):
    row = {
        "id": "m1", "scope_id": "telegram/用户:42", "platform": "telegram", "user_id": "42", "session_id": "s9",
        "source": "tool", "target": "user", "content": "用户叫 Anna", "summary": "用户叫 Anna",
        "created_at": "2026-01-31T09:30:00+00:00", "updated_at": "2026-02-01T00:00:00+00:00", "dedup_key": "x",
        "metadata": '{"tier": "durable"}',
    }  # fmt: skip
    done = memory.import_(make_database(tmp_path / "m.db", SCOPED, memories=[row]))
    assert (done.format, done.added) == ("scope-recall", 1)
    (record,) = memory.records()
    assert (record.scope, record.session, record.tags, record.source) == ("telegram/用户:42", "s9", ("user",), "tool")
    assert record.metadata == {"platform": "telegram", "user_id": "42", "last_recalled_turn": 0, "tier": "durable"}
    assert record.updated_at == datetime(2026, 2, 1, tzinfo=UTC)


# All of them


@pytest.mark.parametrize(
    ("table", "mark"),
    [
        ("messages", "deleted_at TEXT"),
        ("messages", "is_deleted INTEGER"),
        ("sessions", "deleted INTEGER"),
        ("memories", "deleted_at TEXT"),
        ("conversation_chunks", "is_deleted INTEGER"),
    ],
)
def test_what_is_only_marked_as_deleted_is_not_brought_back(memory, tmp_path, table, mark):
    schema = {"messages": CMDCODE, "sessions": CMDCODE, "memories": SINOMEM, "conversation_chunks": CHUNKS}[table]
    made = make_database(tmp_path / "marked.db", schema)
    with closing(sqlite3.connect(made)) as connection, connection:
        if schema == CMDCODE:
            connection.execute("INSERT INTO sessions(id, title) VALUES ('s', 'Tea')")
            connection.execute("INSERT INTO messages VALUES (1, 's', 'user', 'x', 1, 0, NULL, NULL)")
        elif schema == SINOMEM:
            connection.execute("INSERT INTO memories(content) VALUES ('x')")
        else:
            connection.execute("INSERT INTO conversation_chunks(session_id, content, created_at) VALUES ('s', 'x', '')")
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {mark}")
        connection.execute(f"UPDATE {table} SET {mark.split()[0]} = 1")
    done = memory.import_(made)
    assert (done.added, done.skipped) == (0, {"deleted in the other program": 1})


def test_what_is_out_of_use_is_left_out(memory, tmp_path):
    schema = CMDCODE.replace("metadata TEXT,", "metadata TEXT, active INTEGER DEFAULT 1,")
    rows = [
        {"session_id": "s", "role": "user", "content": "in use", "created_at": 0},
        {"session_id": "s", "role": "user", "content": "rewound", "created_at": 0, "active": 0},
    ]
    assert memory.import_(make_database(tmp_path / "m.db", schema, messages=rows)).added == 1
    assert [record.text for record in memory.records()] == ["in use"]


LOOSE = {
    "cmdcode": (
        "CREATE TABLE sessions (id, title, user_id, created_at, metadata); CREATE TABLE messages"
        " (id, session_id, role, content, turn, created_at, metadata, tags, deleted, extra_column)",
        "messages",
    ),
    "sinomem": (
        "CREATE TABLE memories (id, content, category, tags, importance, ttl, expires_at, created_at, updated_at,"
        " last_accessed, metadata, scope, user_id, session_id, source)",
        "memories",
    ),
    "scope-recall": (
        "CREATE TABLE conversation_chunks (id, scope, user_id, session_id, turn_index, chunk_index, role, content,"
        " tags, metadata, importance, created_at, expires_at, source)",
        "conversation_chunks",
    ),
}
ODDITIES = ["[]", "{", '{"a": [1, {"b": null}]}', '["x", 5]', "user", "7d", "2026-01-31", "\n", "\0", "1e999", "/"]
cells = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.binary(max_size=6)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from(ODDITIES)
)


@pytest.mark.parametrize("format", LOOSE)
@examples(max_examples=40)
@given(st.data())
def test_whatever_is_in_a_table_each_row_is_stored_or_accounted_for(tmp_path_factory, format, data):
    schema, table = LOOSE[format]
    columns = schema[schema.rindex("(") + 1 : -1].replace(",", " ").split()
    rows = data.draw(st.lists(st.fixed_dictionaries(dict.fromkeys(columns, cells)), max_size=5))
    path = make_database(tmp_path_factory.mktemp("loose") / "x.db", schema, **{table: rows})
    with Memory.open(":memory:", embedder=None, clock=FixedClock()) as memory:
        done = memory.import_(path, format=format)
        counted = done.added + done.present + sum(done.skipped.values()) + done.failed
        assert done.added == memory.count()
        assert counted == len(rows) if format != "scope-recall" else counted <= len(rows)


def test_a_damaged_database_is_an_error_that_names_it(memory, cmdcode):
    cmdcode.write_bytes(cmdcode.read_bytes()[:5000])
    with pytest.raises(InvalidInputError, match=r"cmdcode\.db"):
        memory.import_(cmdcode)


@pytest.fixture(params=["cmdcode", "sinomem", "chunks"])
def path(request):
    made = request.getfixturevalue(request.param)
    return made[0] if isinstance(made, tuple) else made


def test_an_import_again_adds_nothing(memory, path):
    first, again = memory.import_(path, scope="old"), memory.import_(path, scope="old")
    assert first.added == again.present > 0
    assert (again.added, again.replaced, again.failed) == (0, 0, 0)
    assert memory.count() == memory.count("old") == first.added


def test_what_came_since_the_last_import_is_added(memory, cmdcode):
    memory.import_(cmdcode)
    with closing(sqlite3.connect(cmdcode)) as connection, connection:
        connection.execute(
            "INSERT INTO messages(session_id, role, content, turn, created_at) VALUES (?, ?, ?, ?, ?)",
            ("s2", "assistant", "好的", 2, MILLISECONDS),
        )
    assert memory.import_(cmdcode).added == 1


def test_the_file_is_not_changed(memory, path):
    before = path.read_bytes()
    memory.import_(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_dry_run_stores_nothing(memory, path):
    assert memory.import_(path, dry_run=True).added > 0
    assert memory.count() == 0


@pytest.mark.parametrize("format", ["cmdcode", "sinomem", "scope-recall"])
def test_a_database_without_the_tables_is_refused_with_what_is_missing(memory, tmp_path, format):
    path = make_database(tmp_path / "x.db", "CREATE TABLE notes (id INTEGER)")
    with pytest.raises(InvalidInputError, match=r"x\.db has no table"):
        memory.import_(path, format=format)


def test_a_large_table_is_read_as_it_is_stored(memory, tmp_path):
    size = 2000
    rows = [
        (number, f"记忆 {number}", "general", "[]", 0.5, None, None, None, 0, None) for number in range(1, size + 1)
    ]
    path = make_database(tmp_path / "large.db", SINOMEM, memories=rows)
    seen = []
    assert memory.import_(path, progress=seen.append).added == size == memory.count()
    assert len(seen) > size // 300
