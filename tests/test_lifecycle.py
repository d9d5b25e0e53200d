"""Deleting and restoring, forgetting, touching: what is gone shows nowhere, and comes back as it was."""

from __future__ import annotations

import contextlib
import inspect
import sqlite3
from collections.abc import Callable
from datetime import timedelta

import pytest
from store_support import faults, use_small_index, vector_faults
from support import NOW, HashedEmbedder

from recall_core import Memory, Settings, View
from recall_core.errors import InvalidInputError, RecordExistsError, RecordNotFoundError
from recall_core.filters import And

TEXT = "rockets fly on Fridays"
VECTOR = [1.0, 0.5, 0.0]


@pytest.fixture
def memory(db_path, clock):
    with Memory.open(db_path, embedder=HashedEmbedder(), clock=clock) as memory:
        yield memory


def ids(records) -> list[str]:
    return [record.id for record in records]


# Nothing shows what has expired or was deleted. Each way of reading tells whether it shows, in a view of the scope "a",
# the record "r": a message of the session "talk" in the scope "a/b". The records "other" and "like" stay beside it.


def finds(**arguments) -> Callable[[View], bool]:
    return lambda view: "r" in [hit.record.id for hit in view.search(TEXT, limit=50, **arguments)]


READS: dict[str, Callable[[View], bool]] = {
    **{f"search {mode}": finds(mode=mode) for mode in ("keyword", "semantic", "hybrid")},
    **{f"search {fusion}": finds(fusion=fusion) for fusion in ("rrf", "plain")},
    "search by a given vector": finds(mode="semantic", fusion="plain", vector=VECTOR, space="host"),
    "search filtered": finds(where={"k": 1}),
    "search in the session": finds(session="talk"),
    "search diversified": finds(diversify=0.5),
    "context": lambda view: TEXT in view.context(TEXT, min_relevance=0),
    "get": lambda view: view.get("r") != [],
    "records": lambda view: "r" in ids(view.records()),
    "records of the session": lambda view: "r" in ids(view.records(session="talk")),
    "count": lambda view: view.count() > 2,
    "count filtered": lambda view: view.count(where={"k": 1}) > 0,
    "period": lambda view: view.period(where={"k": 1}) is not None,
    "vectors": lambda view: view.vectors("r", space="host") != {},
    "sessions": lambda view: view.sessions() != [],
    "messages": lambda view: view.session("talk", scope="b").messages() != [],
    "the times of the session": lambda view: view.session("talk", scope="b").created_at is not None,
    "links": lambda view: view.links("other") != [],
    "the links of hits": lambda view: any(hit.links for hit in view.search("turtles", limit=50)),
    "scopes": lambda view: view.scopes(where={"k": 1}) != [],
    "breakdown": lambda view: "talk" in str(view.breakdown()),
    "digest": lambda view: TEXT in view.digest(),
    "similar": lambda view: any("r" in str(group) for group in view.similar()),
}
# What changes a record says nothing of one that is gone either. Each tells whether it has found "r".
WRITES: dict[str, Callable[[View], bool]] = {
    "update": lambda view: found(lambda: view.update("r", importance=1)),
    "touch": lambda view: view.touch("r") > 0,
    "link": lambda view: found(lambda: view.link("r", "other", "new")),
    "unlink": lambda view: view.unlink("r", "other") > 0,
    "skip the same text": lambda view: view.add(TEXT, scope="b", on_duplicate="skip").id == "r",
}
NO_READS = {"add", "add_many", "change", "delete", "restore", "deleted", "forget", "scoped", "session"} | {
    "dimensions", "embed"  # of the file and its model, no record's
}  # fmt: skip


def found(call: Callable[[], object]) -> bool:
    with contextlib.suppress(RecordNotFoundError):
        call()
        return True
    return False


def add_both(memory: Memory) -> None:
    memory.add("turtles swim", id="other", scope="a")
    memory.add("Rockets fly on Fridays!", id="like", scope="a/b", role="user")
    memory.add(
        TEXT, id="r", scope="a/b", session="talk", turn=1, role="user", metadata={"k": 1}, vector=VECTOR, space="host"
    )
    memory.link("r", "other", "concerns")


GONE = {
    "expired": lambda memory, clock: (memory.touch("r", ttl=60), clock.advance(60)),
    "deleted": lambda memory, clock: memory.delete("r"),
    "deleted for good": lambda memory, clock: memory.delete("r", hard=True),
    "deleted with its session": lambda memory, clock: memory.session("talk", scope="a/b").delete(),
    "forgotten": lambda memory, clock: memory.forget(where={"k": 1}),
}


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("goes", GONE.values(), ids=GONE)
def test_what_is_gone_shows_on_no_path(memory, clock, monkeypatch, goes, size):
    if size == "large":
        use_small_index(monkeypatch, index_from=10, most_chunks=5)
        memory.add_many({"text": f"note {number} on gardens", "scope": "c"} for number in range(40))
    add_both(memory)
    view = memory.scoped("a")
    assert [name for name, read in READS.items() if not read(view)] == []
    goes(memory, clock)
    assert [name for name, read in READS.items() if read(view)] == []
    assert [name for name, write in WRITES.items() if write(view)] == []


def test_every_method_of_a_view_is_among_the_ways_above():
    public = {name for name, _ in inspect.getmembers(View, inspect.isfunction) if not name.startswith("_")}
    source = inspect.getsource(inspect.getmodule(test_every_method_of_a_view_is_among_the_ways_above))
    assert [name for name in sorted(public - NO_READS - OTHERS) if f"view.{name}(" not in source] == []


OTHERS = {"export", "import_", "merge", "topics"}  # have tests of their own


# Restoring


def test_a_restored_record_is_as_it_was(memory):
    add_both(memory)
    before = memory.get("r")
    assert memory.delete("r") == 1
    assert memory.restore("r") == before == memory.get("r")
    assert [name for name, read in READS.items() if not read(memory.scoped("a"))] == []
    assert (memory.flush(), vector_faults(memory), memory.deleted()) == (0, [], [])


def test_a_restored_record_keeps_the_vectors_that_callers_brought_and_gets_its_own_anew(memory, db_path):
    embedder = memory._engine.embedder
    memory.add(TEXT, id="r", vector=VECTOR, space="host")
    memory.add("given", id="own", vector=[1.0] + [0.0] * 63)
    memory.delete(["r", "own"])
    embedder.passages.clear()
    memory.restore(["r", "own"])
    assert embedder.passages == [TEXT]
    with contextlib.closing(sqlite3.connect(db_path)) as connection:
        given = connection.execute("SELECT space.name FROM embedding JOIN space ON space.id = space_id WHERE given")
        assert sorted(name for (name,) in given) == ["host", "memory"]
    assert faults(db_path) == []


def test_the_vectors_of_pages_come_back_to_their_pages(memory, db_path):
    pages = ["first page " * 200, "second page", "third page " * 200]
    vectors = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    memory.add("\f".join(pages), id="r", vector=vectors, space="host")
    query = "SELECT start, vector FROM embedding JOIN chunk ON chunk.key = chunk_key WHERE given ORDER BY start"
    with memory._engine.store.database.read() as connection:
        before = connection.execute(query).fetchall()
    memory.delete("r")
    memory.restore("r")
    with memory._engine.store.database.read() as connection:
        assert connection.execute(query).fetchall() == before
    assert len(before) == 3
    memory.delete("r")
    memory.close()
    with Memory.open(db_path, embedder=None, settings=Settings(chunk_size=64, chunk_overlap=0)) as other:
        other.restore("r")
        with other._engine.store.database.read() as connection:
            assert connection.execute(query).fetchall() == before


def test_the_last_one_deleted_of_an_id_is_restored(memory):
    for text in ("first", "second"):
        memory.add(text, id="r")
        memory.delete("r")
    assert [deleted.record.text for deleted in memory.deleted()] == ["second"]
    assert [record.text for record in memory.restore(["r", "unknown", "r"])] == ["second"]
    memory.delete("r", hard=True)
    assert memory.deleted() == []


def test_an_id_that_is_taken_is_not_restored_and_nor_are_those_with_it(memory):
    memory.add("old", id="r")
    memory.add("other", id="other")
    memory.delete(["r", "other"])
    memory.add("new", id="r")
    with pytest.raises(RecordExistsError, match="'r' can't be restored"):
        memory.restore(["other", "r"])
    assert ids(memory.records()) == ["r"]
    memory.delete("r", hard=True)  # from the trash too, so that the old one is not brought back by mistake
    assert (memory.restore("r"), ids(memory.restore("other"))) == ([], ["other"])


def test_what_has_expired_is_not_restored(memory, clock):
    memory.add(TEXT, id="r", ttl=60)
    memory.delete("r")
    assert len(memory.deleted()) == 1
    clock.advance(60)
    assert (memory.deleted(), memory.restore("r")) == ([], [])


def test_the_trash_of_another_scope_is_not_seen(memory):
    for scope in ("a", "ab", "a/b"):
        memory.add(TEXT, id=scope, scope=scope)
    memory.forget(everything=True)
    view = memory.scoped("a")
    assert [deleted.record.id for deleted in view.deleted()] == ["a/b", "a"]
    assert [deleted.record.id for deleted in view.deleted(scope="b")] == ["a/b"]
    assert ids(view.restore(["ab", "a"])) == ["a"]
    assert view.delete(["ab", "a/b"], hard=True) == 1
    assert [deleted.record.id for deleted in memory.deleted()] == ["ab"]


def test_deleted_shows_page_by_page_what_was_deleted_last_first(memory, clock):
    for number in range(5):
        memory.add(TEXT, id=f"r{number}")
    for number in (3, 1, 4, 0, 2):
        memory.delete(f"r{number}")
        clock.advance(60)
    seen, after = [], None
    while page := memory.deleted(limit=2, after=after):
        seen += page
        after = page[-1].record.id
    assert [deleted.record.id for deleted in seen] == ["r2", "r0", "r4", "r1", "r3"]
    assert [deleted.deleted_at for deleted in seen] == [NOW + timedelta(minutes=4 - n) for n in range(5)]
    with pytest.raises(RecordNotFoundError, match="begin again"):
        memory.deleted(after="unknown")


def test_a_session_comes_back_with_its_title(memory):
    talk = memory.session("talk", title="Rockets")
    messages = [talk.append("user", f"message {turn}", turn=turn) for turn in range(3)]
    assert talk.delete() == 3
    assert (memory.sessions(), talk.title) == ([], None)
    assert memory.restore([message.id for message in messages]) == messages
    assert (talk.messages(), talk.title) == (messages, "Rockets")


@pytest.mark.parametrize("hard", [False, True])
def test_a_title_goes_with_the_last_message_that_is_forgotten(memory, hard):
    talk = memory.session("talk", title="Rockets")
    messages = [talk.append("user", f"message {turn}", turn=turn, tags=[f"t{turn}"]) for turn in range(2)]
    memory.session("empty", title="Nothing said yet")
    memory.forget(tags=["t0"], hard=hard)
    assert talk.title == "Rockets"
    memory.forget(tags=["t1"], hard=hard)
    assert (talk.title, [session.id for session in memory.sessions()]) == (None, ["empty"])
    restored = memory.restore([message.id for message in messages])
    assert (len(restored), talk.title) == ((0, None) if hard else (2, "Rockets"))


@pytest.mark.parametrize("hard", [False, True])
def test_a_title_goes_with_the_last_message_that_is_deleted_by_its_id(memory, hard):
    talk = memory.session("talk", title="Rockets")
    messages = [talk.append("user", f"message {turn}", turn=turn).id for turn in range(2)]
    memory.session("empty", title="Nothing said yet")
    memory.delete(messages[0], hard=hard)
    assert talk.title == "Rockets"
    memory.delete(messages[1], hard=hard)
    assert (talk.title, [session.id for session in memory.sessions()]) == (None, ["empty"])
    restored = memory.restore(messages)
    assert (len(restored), talk.title) == ((0, None) if hard else (2, "Rockets"))


def test_a_session_whose_messages_are_replaced_in_one_change_keeps_its_title(memory):
    talk = memory.session("talk", title="Rockets")
    before = talk.append("user", "one")
    (after,) = memory.change([{"text": "two", "session": "talk"}], before.id)
    assert talk.title == "Rockets"
    memory.change([{"text": "three", "session": "another"}], after.id)
    assert talk.title is None


def test_a_title_goes_with_messages_that_have_expired(memory, clock):
    memory.session("talk", title="Rockets").append("user", "for a while", ttl=60)
    clock.advance(seconds=120)
    memory.cleanup()
    assert memory.sessions() == []


def test_deletion_keeps_its_count(memory):
    add_both(memory)
    assert memory.delete(["r", "r", "other", "unknown"]) == 2
    assert memory.delete(["r", "other"]) == 0
    assert memory.delete(["r", "other"], hard=True) == 2
    assert memory.delete(["r", "other"], hard=True) == 0


def test_a_deleted_record_can_be_restored_for_30_days(memory, clock):
    for id in ("early", "late", "now"):
        memory.add(TEXT, id=id)
    memory.delete("early")
    clock.advance(days=10)
    memory.delete("late")
    clock.advance(days=20, seconds=1)
    memory.delete("now")  # what is over is purged with later deletions
    assert [deleted.record.id for deleted in memory.deleted()] == ["now", "late"]
    assert memory.restore("early") == []


def test_a_deletion_purges_only_some_hundred(memory, clock, monkeypatch):
    monkeypatch.setattr("recall_core.deletion.PURGED", 2)
    memory.add_many({"text": f"note {number}", "id": f"r{number}"} for number in range(6))
    memory.delete([f"r{number}" for number in range(5)])
    clock.advance(days=31)
    memory.delete("r5")
    assert len(memory.deleted()) == 4
    assert memory._engine.store.trash.purge(int((NOW + timedelta(days=30)).timestamp() * 1e6), 2) == 2


@pytest.mark.parametrize("days", [-1, "30", float("nan"), 40_000, True])
def test_a_grace_period_is_a_number_of_days(days):
    with pytest.raises(InvalidInputError, match="trash_days"):
        Settings(trash_days=days)


def test_what_another_program_deletes_is_gone_for_good(memory, db_path):
    add_both(memory)
    memory.close()
    with contextlib.closing(sqlite3.connect(db_path)) as connection, connection:
        connection.execute("DELETE FROM record WHERE id = 'r'")
        assert connection.execute("SELECT count(*) FROM link").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM trash").fetchone() == (0,)
    assert faults(db_path) == []


def test_a_text_that_is_no_utf8_can_be_deleted_and_restored(memory, db_path):
    memory.add(TEXT, id="r")
    memory.close()
    with contextlib.closing(sqlite3.connect(db_path)) as connection, connection:
        connection.execute("UPDATE record SET text = CAST(x'61ff62' AS TEXT), tags = '[\"t\"]'")
    with Memory.open(db_path, embedder=None) as other:
        with other._engine.store.database.write() as connection:  # as if that had happened while it is open
            connection.execute("UPDATE record SET text = CAST(x'61ff62' AS TEXT), indexed = 0")
        other.delete("r")
        assert [deleted.record.text for deleted in other.deleted()] == ["a\ufffdb"]
        assert [record.text for record in other.restore("r")] == ["a\ufffdb"]
        assert other.get("r")[0].tags == ("t",)
    assert faults(db_path) == []


# Forgetting


def test_forget_deletes_what_is_selected_and_can_be_undone(memory):
    memory.add_many({"text": f"note {n}", "id": f"r{n:03}", "metadata": {"even": n % 2 == 0}} for n in range(600))
    done = []
    found = memory.forget(where={"even": True}, progress=done.append)
    assert (found.count, found.dry_run, found.hard, ids(found.sample)[:2]) == (300, False, False, ["r000", "r002"])
    assert (memory.count(), done) == (300, [256, 300])
    assert len(memory.restore([f"r{n:03}" for n in range(600)])) == 300


def test_a_dry_run_only_says_what_would_be_forgotten(memory):
    memory.add_many({"text": f"note {n}", "tags": ["x"]} for n in range(30))
    found = memory.forget(tags=["x"], dry_run=True)
    assert (found.count, len(found.sample), found.dry_run, memory.count()) == (30, 10, True, 30)


def test_forget_for_good_takes_what_has_expired_and_what_lies_in_the_trash_along(memory, clock):
    memory.add("expires", scope="a", ttl=60)
    memory.add("stays", scope="b")
    memory.add("deleted", id="r", scope="a")
    memory.delete("r")
    clock.advance(60)
    assert memory.forget(scope="a", hard=True, dry_run=True).count == 2
    assert memory.forget(scope="a", hard=True).count == 2
    assert (memory.count(), memory.deleted()) == (1, [])
    with memory._engine.store.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM record").fetchall() == [(1,)]


def test_forget_wants_to_be_told_that_everything_is_meant(memory):
    memory.add(TEXT, scope="a")
    memory.add(TEXT, scope="b")
    for view in (memory, memory.scoped("a")):
        with pytest.raises(InvalidInputError, match="nothing to select by"):
            view.forget()
        with pytest.raises(InvalidInputError, match="nothing to select by"):
            view.forget(hard=True, dry_run=True)
    assert memory.scoped("a").forget(everything=True).count == 1
    assert memory.count() == 1


@pytest.mark.parametrize(
    "arguments",
    [{"where": {}}, {"where": {"$and": []}}, {"where": And((And(()),))}, {"until": "2999-01-01"}],
    ids=str,
)
def test_forget_is_not_told_what_is_meant_by_what_holds_for_all(memory, arguments):
    memory.add(TEXT)
    with pytest.raises(InvalidInputError, match="nothing to select by"):
        memory.forget(**arguments)
    assert memory.forget(**arguments, roles=["user"]).count == 0
    assert memory.forget(**arguments, everything=True).count == 1


SELECTS = [
    {"where": {"k": 1}},
    {"scope": "a"},
    {"session": "talk"},
    {"roles": ["user"]},
    {"tags": "t"},
    {"since": NOW - timedelta(seconds=1)},
    {"until": NOW},
]


@pytest.mark.parametrize("selects", SELECTS, ids=repr)
def test_forget_selects_as_a_search_does(memory, selects):
    made = NOW - timedelta(seconds=1)
    memory.add(TEXT, id="r", scope="a", session="talk", role="user", tags=["t"], metadata={"k": 1}, created_at=made)
    before = NOW - timedelta(days=1) if "since" in selects else NOW + timedelta(days=1)
    memory.add(TEXT, id="other", scope="b", session="s", role="assistant", created_at=before)
    assert memory.forget(**selects).count == 1
    assert ids(memory.records()) == ["other"]


# Touching


def test_touch_sets_the_time_of_access_and_nothing_else(memory, clock):
    before = memory.add(TEXT, id="r")
    clock.advance(60)
    assert memory.touch(["r", "unknown"]) == 1
    (after,) = memory.get("r")
    assert after.accessed_at == NOW + timedelta(seconds=60)
    assert (after.updated_at, after.importance, after.expires_at) == (before.updated_at, 0.5, None)


@pytest.mark.parametrize(
    ("changes", "importance", "expires_at"),
    [
        ({"importance": 0.9}, 0.9, NOW + timedelta(hours=1)),
        ({"ttl": 90}, 0.5, NOW + timedelta(seconds=90)),
        ({"expires_at": NOW + timedelta(days=1)}, 0.5, NOW + timedelta(days=1)),
        ({"expires_at": None, "importance": 0}, 0, None),
        ({"ttl": None}, 0.5, None),
    ],
)
def test_touch_changes_importance_and_expiry_if_they_are_given(memory, changes, importance, expires_at):
    memory.add(TEXT, id="r", ttl=3600)
    memory.touch("r", **changes)
    (after,) = memory.get("r")
    assert (after.importance, after.expires_at) == (importance, expires_at)


@pytest.mark.parametrize("changes", [{"importance": 2}, {"ttl": -1}, {"ttl": 1, "expires_at": "2030-01-01"}], ids=repr)
def test_touch_refuses_what_add_refuses(memory, changes):
    memory.add(TEXT, id="r")
    with pytest.raises(InvalidInputError):
        memory.touch("r", **changes)
    assert memory.get("r")[0].accessed_at is None


# Updates index what has changed and nothing else


@pytest.fixture
def work(memory):
    """Return a function that makes a change to the record "long" and tells what it did to the indexes."""
    memory.add("".join(f"Paragraph {n} is on {'abcdef'[n]} rockets. " * 40 + "\n\n" for n in range(6)), id="long")
    memory.add("short", id="short")
    embedder, store = memory._engine.embedder, memory._engine.store

    def state(connection):
        chunks = connection.execute("SELECT key, hash, latin, grams, words, labels FROM chunk").fetchall()
        vectors = connection.execute("SELECT key, chunk_key, vector FROM embedding").fetchall()
        segments = connection.execute("SELECT hex(block) FROM chunk_fts_data WHERE id = 10").fetchall()
        return {key: rest for key, *rest in chunks}, {key: rest for key, *rest in vectors}, segments

    def run(change):
        with store.database.read() as connection:
            chunks, vectors, index = state(connection)
        embedder.passages.clear()
        change(memory)
        with store.database.read() as connection:
            new_chunks, new_vectors, new_index = state(connection)
        changed = {key: value for key, value in new_chunks.items() if chunks.get(key) != value}
        return {
            "chunks": len(changed),
            "labels": sum(key in chunks and chunks[key][:4] == value[:4] for key, value in changed.items()),
            "vectors": sum(vectors.get(key) != value for key, value in new_vectors.items()),
            "embedded": len(embedder.passages),
            "index": index != new_index,
            "all": len(new_chunks) - 1,
        }  # fmt: skip

    return run


NOT_INDEXED = {
    "importance": {"importance": 1},
    "expiry": {"ttl": 60},
    "payload": {"payload": [1]},
    "metadata without texts": {"metadata": {"n": 1, "flag": True}},
    "kind": {"kind": "note"},
    "scope": {"scope": "a"},
    "session": {"session": "talk", "turn": 1},
    "time": {"created_at": NOW - timedelta(days=1)},
    "the same text": {"text": None},
}


@pytest.mark.parametrize("changes", NOT_INDEXED.values(), ids=NOT_INDEXED)
def test_what_is_not_searched_is_changed_without_touching_an_index(memory, work, changes):
    if "text" in changes:
        changes = {"text": memory.get("long")[0].text}
    did = work(lambda memory: memory.update("long", **changes))
    assert did["all"] > 3
    assert (did["chunks"], did["vectors"], did["embedded"], did["index"]) == (0, 0, 0, False)


def test_a_touch_touches_no_index(work):
    did = work(lambda memory: memory.touch(["long", "short"], importance=1, ttl=60))
    assert (did["chunks"], did["vectors"], did["embedded"], did["index"]) == (0, 0, 0, False)


@pytest.mark.parametrize("changes", [{"tags": ["new"]}, {"metadata": {"k": "word"}}, {"source": "file"}], ids=repr)
def test_labels_are_changed_without_touching_texts_or_vectors(work, changes):
    did = work(lambda memory: memory.update("long", **changes))
    assert did["chunks"] == did["labels"] == did["all"]
    assert (did["vectors"], did["embedded"], did["index"]) == (0, 0, True)


def test_only_the_chunks_whose_text_changes_are_embedded_and_indexed_anew(memory, work):
    text = memory.get("long")[0].text
    did = work(lambda memory: memory.update("long", text=text[:-1] + "It ends here."))
    assert did["embedded"] == did["vectors"] == did["chunks"] <= 2 < did["all"]
