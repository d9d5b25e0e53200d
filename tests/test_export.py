"""The native export: what is in it, and that it comes back as it was."""

from __future__ import annotations

import gzip
import json
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import NOW, FixedClock, HashedEmbedder
from transfer_support import export_bytes, import_bytes, lines_of

from recall_core import Memory, NewRecord
from recall_core.errors import InvalidInputError, StoreUnavailableError

NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20)
SEGMENTS = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="/*."), min_size=1)
SCOPES = st.lists(SEGMENTS.map(lambda text: text[:20]), max_size=3).map("/".join)
TEXTS = st.text(max_size=200) | st.sampled_from(
    ["项目部署统一使用 Docker\u2028Compose\x85", "", "a\x00b\ud800", "\ufeffx\r\n\tx"]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
LATER = st.datetimes(datetime(2027, 1, 1), datetime(9999, 12, 30), timezones=st.just(UTC))
RECORDS = st.builds(
    NewRecord,
    text=TEXTS,
    scope=SCOPES,
    session=st.none() | NAMES,
    turn=st.none() | st.integers(-(2**63) + 2, 2**63 - 2),
    role=st.none() | NAMES,
    kind=NAMES,
    tags=st.lists(NAMES, max_size=3),
    metadata=st.dictionaries(NAMES, JSON, max_size=3),
    payload=JSON,
    source=st.none() | NAMES,
    importance=st.floats(0, 1),
    created_at=TIMES,
    expires_at=st.none() | LATER,
)


def open_memory(embedder=None, clock=None):
    return Memory.open(":memory:", embedder=embedder, clock=clock or FixedClock())


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=40)
@given(st.lists(RECORDS, max_size=6), st.booleans(), st.data())
def test_export_import_and_export_again_are_the_same_bytes(records, vectors, data):
    clock = FixedClock()
    with open_memory(HashedEmbedder(), clock) as memory, open_memory(HashedEmbedder(), clock) as other:
        stored = memory.add_many(records)
        for session in {(record.scope, record.session) for record in stored if record.session}:
            memory.session(session[1], scope=session[0], title=data.draw(NAMES))
        clock.advance(0.000001)
        if len(stored) > 1:
            memory.link(stored[0].id, stored[1].id, data.draw(NAMES))
            memory.update(stored[0].id, importance=1)
            memory.touch(stored[1].id)
        memory.flush()
        raw = export_bytes(memory, vectors=vectors)
        clock.advance(days=1)
        imported = import_bytes(other, raw)
        other.flush()
        assert (imported.added, imported.failed, imported.skipped) == (len(records), 0, {})
        assert export_bytes(other, vectors=vectors) == raw
        assert other.records(limit=10) == memory.records(limit=10)
        again = import_bytes(other, raw)
        assert (again.added, again.present) == (0, len(records))
        assert export_bytes(other, vectors=vectors) == raw


def test_a_line_says_all_that_a_record_has():
    with open_memory() as memory:
        memory.add(
            "orders 表缺索引", id="one", scope="user/42", session="t1", turn=2, role="assistant", kind="message",
            tags=["db"], metadata={"stars": 3}, payload=[1], source="chat", importance=0.9,
            created_at="2026-01-31T09:30:00.000001Z", expires_at="2999-01-01",
        )  # fmt: skip
        memory.session("t1", scope="user/42", title="慢")
        raw = export_bytes(memory)
    assert lines_of(raw) == [
        {"type": "header", "format": "dualrecall", "version": 1},
        {"type": "session", "scope": "user/42", "session": "t1", "title": "慢", "created_at": "2026-01-31T09:30:00Z"},
        {
            "type": "record", "id": "one", "text": "orders 表缺索引", "scope": "user/42", "session": "t1", "turn": 2,
            "role": "assistant", "kind": "message", "tags": ["db"], "metadata": {"stars": 3}, "payload": [1],
            "source": "chat", "importance": 0.9, "created_at": "2026-01-31T09:30:00.000001Z",
            "updated_at": "2026-01-31T09:30:00Z", "expires_at": "2999-01-01T00:00:00Z",
        },
        {"type": "end", "lines": 2},
    ]  # fmt: skip
    assert "表缺".encode() in raw


def test_vectors_come_back_and_nothing_is_embedded():
    first, second = HashedEmbedder(), HashedEmbedder()
    long = " ".join(f"部署{number}" for number in range(3000))
    with open_memory(first) as memory, open_memory(second) as other:
        memory.add(long, id="long")
        memory.add("given", id="given", vector=[1.0] + [0.0] * 63)
        memory.add("a host's", id="host", vector=[1.0, 2.0], space="host")
        memory.flush()
        raw = export_bytes(memory, vectors=True)
        imported = import_bytes(other, raw)
        assert imported.vectors == len(first.passages) + 2
        assert other.flush() == 0
        assert second.passages == []
        assert export_bytes(other, vectors=True) == raw
        ask = {"vector": [1.0, 2.0], "space": "host", "mode": "semantic", "limit": 1}
        assert [hit.record.id for hit in other.search("?", **ask)] == ["host"]
    spaces = {line["name"]: (line["model"], line["dimensions"]) for line in lines_of(raw, "space")}
    assert spaces == {"memory": ("hashed-64", 64), "host": ("external", 2)}


def test_vectors_of_another_model_are_left_and_made_anew():
    other_embedder = HashedEmbedder(32)
    with open_memory(HashedEmbedder()) as memory, open_memory(other_embedder) as other:
        memory.add("部署")
        memory.flush()
        imported = import_bytes(other, export_bytes(memory, vectors=True))
        assert (imported.added, imported.failed, imported.vectors) == (1, 0, 0)
        assert other.flush() == 0
        assert len(other_embedder.passages) == 1


def test_a_view_exports_its_subtree_alone_and_as_seen_from_there():
    with open_memory() as memory, open_memory() as other:
        ids = [memory.add("x", scope=scope).id for scope in ("a", "a/b", "ab", "", "c")]
        memory.link(ids[0], ids[1], "cause")
        memory.link(ids[0], ids[4], "cause")
        memory.session("s", scope="a/b", title="inside")
        memory.session("s", scope="c", title="outside")
        memory.add_words("灰度发布平台")
        raw = export_bytes(memory.scoped("a"))
        assert [line.get("scope", "") for line in lines_of(raw, "record")] == ["", "b"]
        assert [line["title"] for line in lines_of(raw, "session")] == ["inside"]
        assert [line["target"] for line in lines_of(raw, "link")] == [ids[1]]
        assert lines_of(raw, "word") == []
        import_bytes(other.scoped("z"), raw)
        assert [record.scope for record in other.records()] == ["z", "z/b"]
        assert export_bytes(other.scoped("z")) == raw
        assert [line["scope"] for line in lines_of(export_bytes(memory, scope="a"), "record")] == ["a", "a/b"]


def test_an_import_into_a_view_changes_nothing_outside():
    with open_memory() as memory:
        memory.add("outside", id="taken", scope="b")
        memory.add("outside, too", id="end", scope="b")
        raw = export_bytes(memory.scoped("b"))
        raw = raw.replace(b'"text":"outside"', b'"text":"changed"')
        raw += b'{"type":"header","format":"dualrecall","version":1}\n'
        raw += b'{"type":"record","id":"new","text":"new","importance":0.5,"created_at":"2026-01-01T00:00:00Z"}\n'
        raw += b'{"type":"link","source":"new","target":"end","kind":"x","created_at":"2026-01-01T00:00:00Z"}\n'
        raw += b'{"type":"word","word":"new"}\n'
        for choice in ("keep", "replace"):
            imported = import_bytes(memory.scoped("a"), raw, on_duplicate=choice)
            assert imported.skipped["the id is taken by a record outside of the scope"] == 2
            assert imported.skipped["links to records that are not here"] == 1
        assert [record.text for record in memory.get(["taken", "end"])] == ["outside", "outside, too"]
        assert [record.scope for record in memory.records()] == ["b", "a", "b"]
        assert memory.words() == []
        assert memory.links(["new", "end"]) == []


def test_what_can_not_be_seen_is_not_exported(clock):
    with open_memory(clock=clock) as memory:
        memory.add("expires", id="a", ttl=60)
        memory.add("deleted", id="b")
        memory.add("stays", id="c")
        memory.delete("b")
        clock.advance(60)
        assert [line["id"] for line in lines_of(export_bytes(memory), "record")] == ["c"]


def test_what_has_expired_since_the_export_is_left_out(clock):
    with open_memory(clock=clock) as memory, open_memory(clock=clock) as other:
        memory.add("expires", ttl=60)
        raw = export_bytes(memory)
        clock.advance(60)
        assert import_bytes(other, raw).skipped == {"expired": 1}
        assert other.count() == 0


def test_filters_choose_what_is_exported():
    with open_memory() as memory:
        memory.add("x", id="a", session="s", metadata={"stars": 3})
        memory.add("x", id="b", session="t", metadata={"stars": 1})
        memory.session("s", title="S")
        memory.session("t", title="T")
        some = export_bytes(memory, where={"stars": {"$gte": 2}})
        assert ([line["id"] for line in lines_of(some, "record")], len(lines_of(some, "session"))) == (["a"], 1)
        other = export_bytes(memory, session="t")
        assert [line["id"] for line in lines_of(other, "record")] == ["b"]
        assert [line["title"] for line in lines_of(other, "session")] == ["T"]


def test_numbers_that_json_can_not_hold_become_null(db_path):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add("x", id="a")
    connection = sqlite3.connect(db_path)
    deep = "[" * 500 + "1e999" + "]" * 500
    with connection:
        values = ('{"n": [1e999, -1e999, 1]}', f'{{"deep": {deep}}}')
        connection.execute("UPDATE record SET metadata = ?, payload = ?", values)
    connection.close()
    with Memory.open(db_path, embedder=None) as memory, open_memory() as other:
        raw = export_bytes(memory)
        assert lines_of(raw, "record")[0]["metadata"] == {"n": [None, None, 1]}
        assert import_bytes(other, raw).failed == 0
        assert export_bytes(other) == raw


def test_a_dictionary_is_taken_over_before_the_records_are_indexed():
    with open_memory() as memory, open_memory() as other:
        memory.add_words("灰度发布平台")
        memory.add("灰度发布平台周四升级", id="a")
        raw = export_bytes(memory)
        assert import_bytes(other, raw).words == 1
        assert other.words() == ["灰度发布平台"]
        assert other.reindex(words_only=True, dry_run=True).records == 0
        assert export_bytes(other) == raw


# Files


def test_a_file_is_private_complete_and_compressed_by_its_name(tmp_path):
    with open_memory() as memory:
        memory.add("x", id="a")
        plain, packed = tmp_path / "out.jsonl", tmp_path / "out.jsonl.gz"
        assert memory.export(plain).records == 1
        memory.export(str(packed))
        assert gzip.decompress(packed.read_bytes()) == plain.read_bytes() == export_bytes(memory)
        first = packed.read_bytes()
        memory.export(packed)
        assert packed.read_bytes() == first
    assert plain.stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "out.jsonl.gz"]
    for file in (plain, packed):
        with open_memory() as other:
            assert other.import_(file).added == 1


def test_a_failed_export_leaves_the_file_that_was_there(tmp_path):
    target = tmp_path / "out.jsonl"
    target.write_text("before")

    def fail(done):
        raise RuntimeError

    with open_memory() as memory:
        memory.add("x")
        with pytest.raises(RuntimeError):
            memory.export(target, progress=fail)
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_memory_is_not_overwritten_by_an_export(db_path, tmp_path):
    with Memory.open(db_path, embedder=None) as memory:
        with pytest.raises(InvalidInputError, match="is an SQLite database"):
            memory.export(db_path)
        with pytest.raises(InvalidInputError, match="is a folder"):
            memory.export(tmp_path)
        with pytest.raises(StoreUnavailableError, match="can't be written"):
            memory.export(tmp_path / "nowhere" / "out.jsonl")


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path):
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.write_text("before")
    link.symlink_to(real)
    with open_memory() as memory:
        memory.export(link)
        memory.export("/dev/null")
        assert link.is_symlink()
        assert real.read_bytes() == export_bytes(memory)


# Damage


def exported(count=5):
    with open_memory() as memory:
        memory.add_many([{"text": f"note {number}", "id": f"id{number}"} for number in range(count)])
        return export_bytes(memory)


def test_a_damaged_line_costs_no_other():
    lines = exported().splitlines(keepends=True)
    lines[2] = lines[2][:20] + b"\n"
    lines.insert(4, b'{"type":"colour"}\n')
    with open_memory() as other:
        imported = import_bytes(other, b"".join(lines))
        assert (imported.added, imported.failed) == (4, 3)
        assert [failure.line for failure in imported.failures] == [3, 5, 8]
        assert "6 lines" not in imported.failures[0].reason
        assert imported.failures[2].reason == "5 lines were written, and 6 are here"


def test_an_export_that_was_cut_short_is_told():
    raw = exported()
    for cut in (raw[: raw.index(b"note 3")], b"".join(raw.splitlines(keepends=True)[:-1])):
        with open_memory() as other:
            imported = import_bytes(other, cut)
            assert imported.added in (3, 5)
            assert "cut short" in imported.failures[-1].reason


def test_a_newer_format_is_refused_before_anything_is_stored():
    with open_memory() as other:
        with pytest.raises(InvalidInputError, match=r"version 2 of the format.*pip install -U dualrecall"):
            import_bytes(other, exported().replace(b'"version":1', b'"version":2'))
        with pytest.raises(InvalidInputError, match="does not begin with a header"):
            import_bytes(other, b'{"text": "x"}\n', format="recall")
        assert other.count() == 0


def test_two_exports_in_one_file_are_both_read():
    with open_memory() as other:
        assert import_bytes(other, exported(2) + exported(4)).added == 4


@pytest.mark.parametrize(
    ("choice", "text", "counts"),
    [("keep", "old", (0, 0, 1, 0)), ("replace", "new", (0, 1, 0, 0)), ("error", "old", (0, 0, 0, 1))],
)
def test_a_taken_id_is_settled_as_asked_for(choice, text, counts):
    with open_memory() as memory, open_memory(clock=FixedClock(NOW + timedelta(days=1))) as other:
        memory.add("new", id="a", created_at="2020-01-01")
        other.add("old", id="a")
        imported = import_bytes(other, export_bytes(memory), on_duplicate=choice)
        assert (imported.added, imported.replaced, imported.present, imported.failed) == counts
        (record,) = other.get("a")
        assert record.text == text
        assert (record == memory.get("a")[0]) == (choice == "replace")


def test_what_was_deleted_since_does_not_come_back():
    raw = exported(2)
    with open_memory() as other:
        import_bytes(other, raw)
        other.delete("id0")
        for choice in ("keep", "replace", "error"):
            imported = import_bytes(other, raw, on_duplicate=choice)
            assert imported.skipped == {"deleted since, restore them with recall restore": 1}
        assert [record.id for record in other.records()] == ["id1"]
        other.delete("id0", hard=True)
        other.delete("id1", hard=True)
        assert import_bytes(other, raw).added == 2


def test_a_dry_run_counts_and_stores_nothing():
    with open_memory() as other:
        other.add("old", id="id0")
        before = export_bytes(other)
        imported = import_bytes(other, exported(3) + exported(3), dry_run=True)
        assert (imported.added, imported.present, imported.dry_run) == (2, 4, True)
        assert export_bytes(other) == before


def test_older_records_can_be_left_out():
    with open_memory() as memory, open_memory() as other:
        memory.add("old", created_at="2020-01-01")
        memory.add("new", created_at="2026-01-01")
        imported = import_bytes(other, export_bytes(memory), since="2026-01-01")
        assert (imported.added, imported.skipped) == (1, {"older than asked for": 1})


def test_json_is_written_for_people_and_for_line_readers():
    with open_memory() as memory:
        memory.add("a\u2028b\u2029c\x85d\x7f", id="x")
        raw = export_bytes(memory)
    assert len(raw.decode().splitlines()) == 3
    assert json.loads(raw.splitlines()[1])["text"] == "a\u2028b\u2029c\x85d\x7f"
