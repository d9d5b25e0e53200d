"""Records stored, read back, changed and deleted through Memory."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import NOW, HashedEmbedder

from recall_core import Memory
from recall_core.errors import InvalidInputError, RecordNotFoundError

storable = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
texts = st.text(storable)
names = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


@pytest.fixture
def memory(clock, embedder):
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        yield memory


@pytest.fixture(scope="module")
def keywords():
    """Return a memory without vectors that all examples of a property share."""
    with Memory.open(":memory:", embedder=None) as memory:
        yield memory


def found(memory, query, mode="keyword", **arguments) -> list[str]:
    return [hit.record.id for hit in memory.search(query, mode=mode, **arguments)]


# Add and get


def test_an_added_text_is_a_record_with_everything_that_was_given(memory):
    record = memory.add(
        "部署统一使用 Docker Compose",
        id="r1",
        scope="user/42",
        session="s",
        turn=-3,
        role="user",
        kind="fact",
        tags=["deploy", "deploy", "ops"],
        metadata={"team": "infra", "sizes": (1, 2)},
        payload=["anything", {"goes": None}],
        source="wiki",
        importance=1,
        created_at="2025-12-24T18:00:00+08:00",
    )
    assert (record.id, record.scope, record.session, record.turn, record.role) == ("r1", "user/42", "s", -3, "user")
    assert (record.kind, record.tags, record.source, record.importance) == ("fact", ("deploy", "ops"), "wiki", 1.0)
    assert (record.metadata, record.payload) == (
        {"team": "infra", "sizes": [1, 2]},
        ["anything", {"goes": None}],
    )
    assert (record.created_at, record.updated_at) == (datetime(2025, 12, 24, 10, tzinfo=UTC), NOW)
    assert memory.get("r1") == [record]


def test_what_is_not_given_has_its_default(memory):
    record = memory.add("text")
    assert (record.scope, record.kind, record.tags, record.metadata, record.importance) == ("", "memory", (), {}, 0.5)
    assert (record.session, record.turn, record.role, record.source, record.payload) == (None,) * 5
    assert (record.created_at, record.updated_at) == (NOW, NOW)
    assert (record.accessed_at, record.expires_at) == (None, None)


@given(text=texts, metadata=st.dictionaries(texts, json, max_size=4), tags=st.lists(names, max_size=4), payload=json)
def test_whatever_is_stored_comes_back(keywords, text, metadata, tags, payload):
    record = keywords.add(text, metadata=metadata, tags=tags, payload=payload)
    assert (record.text, record.metadata, record.payload) == (text, metadata, payload)
    assert record.tags == tuple(dict.fromkeys(tags))
    assert keywords.get(record.id) == [record]


@given(names, names, names, names, names)
def test_names_come_back_as_they_were_given(keywords, id, session, role, kind, source):
    keywords.delete(id)  # an earlier example may have taken it
    record = keywords.add("x", id=id, session=session, role=role, kind=kind, source=source)
    assert (record.id, record.session, record.role, record.kind, record.source) == (id, session, role, kind, source)
    assert keywords.get(id) == [record]


def test_what_no_file_can_hold_is_replaced_visibly(memory):
    record = memory.add("a\0b\ud800c", metadata={"k\0": ["\udfff"]}, payload="\0")
    assert (record.text, record.metadata, record.payload) == ("a\ufffdb\ufffdc", {"k\ufffd": ["\ufffd"]}, "\ufffd")
    assert memory.get(record.id) == [record]


def test_records_outlive_their_memory(db_path):
    with Memory.open(db_path, embedder=HashedEmbedder()) as memory:
        record = memory.add("数据库在五号机", metadata={"k": [1, {"深": 2.5}]}, tags=["db"])
    with Memory.open(db_path, embedder=HashedEmbedder()) as memory:
        assert memory.get(record.id) == [record]
        assert found(memory, "数据库") == [record.id]


def test_get_returns_records_in_the_order_asked_for_and_passes_over_unknown_ids(memory):
    for id in "abc":
        memory.add(id, id=id)
    assert [record.id for record in memory.get(["c", "unknown", "a"])] == ["c", "a"]
    assert memory.get([]) == memory.get("\0") == []


def test_ids_made_for_records_sort_by_when_they_were_made(memory, clock):
    ids = []
    for _ in range(5):
        ids += [memory.add("text").id for _ in range(5)]
        clock.advance(0.001)
    assert ids == sorted(set(ids))


TIMES = [
    datetime(2026, 1, 31, 9, 30, tzinfo=UTC),
    datetime(2026, 1, 31, 17, 30, tzinfo=timezone(timedelta(hours=8))),
    datetime(2026, 1, 31, 9, 30),
    "2026-01-31T09:30:00Z",
    "2026-01-31 09:30",
    "2026-01-31T17:30:00+08:00",
    1769851800,
    1769851800.0,
]


@pytest.mark.parametrize("time", TIMES, ids=repr)
def test_a_time_may_be_given_in_many_ways(clock, time):
    clock.advance(-1)
    with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        record = memory.add("text", created_at=time, expires_at=time)
    assert record.created_at == record.expires_at == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
    assert record.created_at.tzinfo is UTC


def test_a_date_is_its_midnight(keywords):
    assert keywords.add("text", created_at=date(2026, 1, 31)).created_at == datetime(2026, 1, 31, tzinfo=UTC)


# What is refused

BAD = [
    ({"text": 5}, "text"),
    ({"text": None}, "text"),
    ({"text": b"bytes"}, "text"),
    ({"id": ""}, "id"),
    ({"id": 7}, "id"),
    ({"id": "a\nb"}, "id"),
    ({"id": "x" * 513}, "id"),
    ({"scope": 7}, "scope"),
    ({"scope": None}, "scope"),
    ({"session": ""}, "session"),
    ({"turn": "1"}, "turn"),
    ({"turn": 1.0}, "turn"),
    ({"turn": True}, "turn"),
    ({"turn": 2**63}, "turn"),
    ({"role": "\ud800"}, "role"),
    ({"kind": None}, "kind"),
    ({"tags": 5}, "tags"),
    ({"tags": [5]}, "tag"),
    ({"tags": [""]}, "tag"),
    ({"metadata": ["a"]}, "metadata"),
    ({"metadata": {1: "a"}}, "key"),
    ({"metadata": {"k": object()}}, "k is of type object"),
    ({"payload": float("nan")}, "nan"),
    ({"source": 5}, "source"),
    ({"importance": 1.1}, "importance"),
    ({"importance": float("nan")}, "importance"),
    ({"importance": "high"}, "importance"),
    ({"created_at": "yesterday"}, "created_at"),
    ({"created_at": True}, "created_at"),
    ({"expires_at": 1e17}, "expires_at"),
    ({"ttl": 0}, "ttl"),
    ({"ttl": -timedelta(seconds=1)}, "ttl"),
    ({"ttl": float("inf")}, "ttl"),
    ({"ttl": 60, "expires_at": "2027-01-01"}, "ttl"),
    ({"on_duplicate": "ignore"}, "on_duplicate"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=repr)
def test_what_can_not_be_stored_is_refused_and_nothing_is_stored(memory, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        memory.add(**{"text": "text", **arguments})
    assert memory.stats().records == 0


@pytest.mark.parametrize("ids", [None, 5, [5], ["a", None]], ids=repr)
@pytest.mark.parametrize("method", ["get", "delete"])
def test_ids_that_are_no_strings_are_refused(memory, method, ids):
    with pytest.raises(InvalidInputError, match="ids"):
        getattr(memory, method)(ids)


@pytest.mark.parametrize("limit", [-1, 1.5, "3", True, None])
def test_a_limit_of_records_that_is_no_count_is_refused(memory, limit):
    with pytest.raises(InvalidInputError, match="limit"):
        memory.records(limit=limit)


# Update

CHANGES = [
    ("text", "new"),
    ("scope", "a/b"),
    ("session", "s2"),
    ("session", None),
    ("turn", 9),
    ("turn", None),
    ("role", "assistant"),
    ("role", None),
    ("kind", "fact"),
    ("tags", ("x", "y")),
    ("tags", ()),
    ("metadata", {"new": [1]}),
    ("payload", {"p": 1}),
    ("payload", None),
    ("source", "wiki"),
    ("importance", 0.9),
    ("created_at", datetime(2020, 1, 1, tzinfo=UTC)),
    ("expires_at", datetime(2030, 1, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize(("field", "value"), CHANGES, ids=repr)
def test_an_update_changes_what_is_given_and_nothing_else(memory, clock, field, value):
    old = memory.add("old", id="r", session="s", turn=1, role="user", tags=["t"], metadata={"k": 1}, payload=0)
    clock.advance(5)
    new = memory.update("r", **{field: value})
    assert getattr(new, field) == value
    others = [name for name in type(new).__slots__ if name not in (field, "updated_at")]
    assert {name: getattr(new, name) for name in others} == {name: getattr(old, name) for name in others}
    assert new.updated_at == NOW + timedelta(seconds=5)
    assert memory.get("r") == [new]


def test_metadata_none_empties_it(memory):
    memory.add("text", id="r", metadata={"k": 1})
    assert memory.update("r", metadata=None).metadata == {}


def test_words_of_the_old_text_are_found_no_more(memory):
    memory.add("rockets fly", id="r")
    memory.update("r", text="turtles swim")
    assert (found(memory, "rockets"), found(memory, "turtles")) == ([], ["r"])


def test_words_of_old_tags_and_metadata_are_found_no_more(memory):
    memory.add("text", id="r", tags=["rockets"], metadata={"animal": "turtles"})
    assert (found(memory, "rockets"), found(memory, "turtles")) == (["r"], ["r"])
    memory.update("r", tags=["planes"], metadata={"animal": "gulls"})
    assert (found(memory, "rockets"), found(memory, "turtles")) == ([], [])
    assert (found(memory, "planes"), found(memory, "gulls")) == (["r"], ["r"])


def test_a_new_text_gets_a_new_vector(memory):
    memory.add("rockets fly", id="r")
    memory.update("r", text="turtles swim")
    (hit,) = memory.search("turtles swim", mode="semantic")
    assert hit.why.similarity == pytest.approx(1, abs=1e-5)


def test_an_unchanged_text_keeps_its_vector(memory, embedder):
    memory.add("rockets fly", id="r")
    memory.update("r", tags=["new"], metadata={"k": "v"}, scope="a", importance=1, text="rockets fly")
    assert embedder.passages == ["rockets fly"]
    assert found(memory, "rockets fly", "semantic") == ["r"]


@pytest.mark.parametrize(
    ("arguments", "message"), [bad for bad in BAD if next(iter(bad[0])) not in ("id", "on_duplicate")]
)
def test_an_update_to_what_can_not_be_stored_is_refused_and_changes_nothing(memory, arguments, message):
    if arguments == {"ttl": 60, "expires_at": "2027-01-01"}:
        message = "expires_at"
    record = memory.add("text", id="r")
    with pytest.raises(InvalidInputError, match=message):
        memory.update("r", **arguments)
    assert memory.get("r") == [record]


def test_an_unknown_record_can_not_be_updated(memory):
    with pytest.raises(RecordNotFoundError, match="'nope'"):
        memory.update("nope", text="x")


# Delete, list, count


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_a_deleted_record_is_not_found(memory, mode):
    memory.add("rockets fly", id="r")
    memory.add("rockets rest", id="s")
    assert (memory.delete(["r", "unknown"]), memory.delete("r")) == (1, 0)
    assert found(memory, "rockets fly", mode) == ["s"]
    assert (memory.get("r"), memory.count(), memory.stats().chunks) == ([], 1, 1)


def test_pages_of_records_cover_all_of_them_once(memory):
    ids = [memory.add(f"text {number}").id for number in range(7)]
    seen, after = [], None
    while page := memory.records(limit=3, after=after):
        seen += [record.id for record in page]
        after = page[-1].id
    assert seen == ids


def test_records_and_count_keep_to_scope_session_and_filter(memory):
    memory.add("one", id="1", scope="a", session="s", metadata={"k": 1})
    memory.add("two", id="2", scope="a/b", session="s", metadata={"k": 2})
    memory.add("three", id="3", scope="ab", session="t", metadata={"k": 1})
    assert [record.id for record in memory.records(scope="a")] == ["1", "2"]
    assert [record.id for record in memory.records(session="s", where={"k": 2})] == ["2"]
    assert (memory.count(), memory.count("a"), memory.count("", {"k": 1}), memory.count(where={"k": 3})) == (3, 2, 2, 0)
