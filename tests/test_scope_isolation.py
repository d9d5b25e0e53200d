"""A scope is a security boundary: whatever is asked of a scoped view, no other scope's records are shown or changed."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import BytesIO
from itertools import product

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from support import NOW, FixedClock, HashedEmbedder
from transfer_support import export_bytes, lines_of

from recall_core import Memory, Record, Session, View
from recall_core.errors import InvalidInputError, RecordExistsError, RecordNotFoundError
from recall_core.insight.markdown import escape

TEXT = "rockets fly on Fridays 火箭周五起飞"
VECTOR = [1.0, 0.0, 0.0]
MODES = ["keyword", "semantic", "hybrid"]
FUSIONS = ["default", "rrf", "plain"]

# Names that begin alike, sort beside each other's subtree ("a/" < "a0"), differ only in case or look like patterns.
segments = st.sampled_from(
    ["a", "ab", "A", "a0", "a.", "a-", "b", "研究团队", "研究", "a%2Fb", "%", "_", "a*", "[ab]", "é", "e\u0301"]
)
scopes = st.lists(segments, min_size=1, max_size=3).map("/".join)
several = st.lists(scopes, min_size=2, max_size=6, unique=True) | st.just(["a", "ab", "a/b", "研究团队", "a%2Fb"])
# The examples of one test share a memory's making, which takes longer than what is tested.
few = examples(max_examples=20)


def is_within(scope: str, outer: str) -> bool:
    return scope.split("/")[: outer.count("/") + 1] == outer.split("/")


def fill(scopes: Iterable[str]) -> Memory:
    """Return a memory with the same words, ids in the same pattern and the same session in every scope."""
    memory = Memory.open(":memory:", embedder=HashedEmbedder(8), clock=FixedClock())
    for scope in scopes:
        memory.add(TEXT, id=f"{scope}#note", scope=scope, tags=["t"], metadata={"k": 1}, vector=VECTOR, space="host")
        talk = memory.session("talk", scope=scope, title=scope)
        for turn, role in enumerate(["user", "assistant"]):
            talk.append(role, TEXT, turn=turn, id=f"{scope}#{turn}", created_at=NOW)
    return memory


def ids_of(scopes: Iterable[str]) -> set[str]:
    return {f"{scope}#{name}" for scope in scopes for name in ("note", "0", "1")}


def every_record(memory: Memory) -> dict[str, Record]:
    return {record.id: record for record in memory.records(limit=1000)}


# Reading. Each way returns the ids that it showed; everything in the scope matches, so all of it should be there.


def search(mode: str, fusion: str, **arguments) -> Callable[[View], set[str]]:
    return lambda view: {
        hit.record.id for hit in view.search(TEXT, mode=mode, fusion=fusion, limit=100, candidates=200, **arguments)
    }


def read_context(view: View) -> set[str]:
    block = view.context(TEXT, max_chars=100_000, limit=100, min_relevance=0)
    return {line[1 : line.index("] ")] for line in block.splitlines() if line.startswith("[")}


def read_sessions(view: View) -> set[str]:
    return {message.id for session in view.sessions() for message in session.messages()}


READS: dict[str, Callable[[View], set[str]]] = {
    **{f"search {mode} {fusion}": search(mode, fusion) for mode, fusion in product(MODES, FUSIONS)},
    "search diversified": search("hybrid", "default", diversify=0.5),
    "search recent": search("hybrid", "default", recency=0.3),
    "search tagged": search("hybrid", "default", tags=["t"]),
    "search filtered": search("hybrid", "default", where={"k": 1}),
    "search in session": search("hybrid", "default", session="talk"),
    "search in roles": search("hybrid", "default", roles=["user"]),
    "search by vector": search("semantic", "plain", vector=VECTOR, space="host"),
    "context": read_context,
    "records": lambda view: {record.id for record in view.records(limit=1000)},
    "records of a session": lambda view: {record.id for record in view.records(session="talk", limit=1000)},
    "records filtered": lambda view: {record.id for record in view.records(where={"k": 1}, limit=1000)},
    "records newest first": lambda view: {record.id for record in view.records(newest_first=True, limit=1000)},
    "records last made": lambda view: {r.id for r in view.records(newest_first="created_at", limit=1000)},
    "sessions": read_sessions,
    "export": lambda view: {line["id"] for line in lines_of(export_bytes(view), "record")},
    "export filtered": lambda view: {line["id"] for line in lines_of(export_bytes(view, where={"k": 1}), "record")},
    "export of a session": lambda view: {line["id"] for line in lines_of(export_bytes(view, session="talk"), "record")},
}
NOTES = {"search tagged", "search filtered", "search by vector", "records filtered", "export filtered"}
USERS = {"search in roles"}
MESSAGES = {"search in session", "records of a session", "sessions", "export of a session"}


def expected_ids(name: str, inside: Iterable[str]) -> set[str]:
    ids = ids_of(inside)
    if name in NOTES:
        return {id for id in ids if id.endswith("#note")}
    if name in USERS:
        return {id for id in ids if id.endswith("#0")}
    return {id for id in ids if not id.endswith("#note")} if name in MESSAGES else ids


@few
@given(several, st.data())
def test_every_way_of_reading_shows_the_whole_scope_and_nothing_else(scopes, data):
    scope = data.draw(st.sampled_from(scopes))
    inside = [other for other in scopes if is_within(other, scope)]
    with fill(scopes) as memory:
        view = memory.scoped(scope)
        assert {name: read(view) for name, read in READS.items()} == {
            name: expected_ids(name, inside) for name in READS
        }


@few
@given(several, st.data())
def test_get_and_count_see_the_scope_alone(scopes, data):
    scope = data.draw(st.sampled_from(scopes))
    inside = [other for other in scopes if is_within(other, scope)]
    with fill(scopes) as memory:
        view = memory.scoped(scope)
        assert {record.id for record in view.get(ids_of(scopes))} == ids_of(inside)
        assert view.count() == memory.count(scope) == 3 * len(inside)
        assert {session.scope for session in view.sessions()} == set(inside)
        assert {f"{scope}/{found}".removesuffix("/") for found in view.scopes()} == set(inside)
        assert set(view.vectors(ids_of(scopes), space="host")) == {f"{other}#note" for other in inside}
        assert view.period() == memory.period(scope)
        assert (view.dimensions("host"), len(view.embed([TEXT]))) == (3, 1)  # of the file and its model, no record's


@few
@given(several, st.data())
def test_insights_are_into_the_scope_alone(scopes, data):
    scope = data.draw(st.sampled_from(scopes))
    inside = {other for other in scopes if is_within(other, scope)}
    with fill(scopes) as memory:
        memory.add_many({"text": TEXT, "scope": other} for other in scopes)
        view = memory.scoped(scope)
        for groups in (view.similar(), memory.similar(scope=scope)):
            assert {record.scope for group in groups for record in group.records} == inside
        for found in (view.breakdown(), memory.breakdown(scope=scope)):
            assert {count.name for count in found.scopes} == {count.scope for count in found.sessions} == inside
            assert found.records == found.by_day[-1].total == memory.count(scope)
        for report in (view.digest(), memory.digest(scope=scope)):
            assert {other for other in scopes if f"({escape(f'{other}#note')})" in report} == inside
        for topics in (view.topics(), memory.topics(scope=scope)):
            ids = {id for topic in topics for id in topic.ids}
            assert {record.scope for record in memory.get(ids)} == inside
            assert {record.scope for topic in topics for record in topic.examples} <= inside


@few
@given(several, st.data())
def test_a_scope_argument_and_a_view_of_a_view_mean_the_same(scopes, data):
    outer, inner = data.draw(st.sampled_from(scopes)), data.draw(st.sampled_from(scopes))
    with fill(scopes) as memory:
        expected = ids_of(scope for scope in scopes if is_within(scope, f"{outer}/{inner}"))
        view = memory.scoped(outer)
        assert {record.id for record in view.scoped(inner).records(limit=1000)} == expected
        assert {record.id for record in view.records(scope=inner, limit=1000)} == expected
        assert {hit.record.id for hit in view.search(TEXT, scope=inner, limit=100)} == expected
        assert view.count(inner) == view.scoped(inner).count() == len(expected)


@few
@given(several, st.data())
def test_a_session_of_a_view_is_the_one_of_exactly_its_scope(scopes, data):
    scope = data.draw(st.sampled_from(scopes))
    with fill(scopes) as memory:
        session = memory.scoped(scope).session("talk")
        assert (session.scope, session.title) == (scope, scope)
        assert [message.id for message in session.messages()] == [f"{scope}#0", f"{scope}#1"]


def test_a_page_of_messages_before_one_of_another_scope_is_refused_like_one_before_none():
    with fill(["a", "b"]) as memory:
        talk = memory.scoped("a").session("talk")
        for mark in ("b#1", "unknown"):
            with pytest.raises(RecordNotFoundError, match=f"{mark}' is no message"):
                talk.messages(before=mark)


# Writing. Each way tries, in a view, to change the record `id`, which may lie outside; it may raise what it should.


def append_by_id(view: View, id: str) -> None:
    view.session("talk").append("user", "overwritten", id=id, on_duplicate="replace")


def append_by_id_in_listed_sessions(view: View, id: str) -> None:
    for session in view.sessions():
        session.append("user", "overwritten", id=id, on_duplicate="replace")


def import_by_id(view: View, id: str) -> None:
    line = json.dumps({"text": "overwritten", "id": id})
    view.import_(BytesIO(line.encode()), on_duplicate="replace")


WRITES: dict[str, Callable[[View, str], object]] = {
    "update": lambda view, id: view.update(id, text="overwritten"),
    "update scope": lambda view, id: view.update(id, scope="taken"),
    "update vector": lambda view, id: view.update(id, vector=[0.0, 1.0, 0.0], space="host"),
    "delete": lambda view, id: view.delete(id),
    "delete many": lambda view, id: view.delete(["missing", id]),
    "delete for good": lambda view, id: view.delete(id, hard=True),
    "restore": lambda view, id: view.restore(id),
    "touch": lambda view, id: view.touch(id, importance=1, ttl=1),
    "forget": lambda view, id: view.forget(everything=True),
    "forget for good": lambda view, id: view.forget(where={"@id": id}, hard=True),
    "link": lambda view, id: [view.link(id, found.id) for found in view.records(limit=1)],
    "unlink": lambda view, id: view.unlink(id, id),
    "add": lambda view, id: view.add("overwritten", id=id),
    "add replacing": lambda view, id: view.add("overwritten", id=id, on_duplicate="replace"),
    "add replacing the text": lambda view, id: view.add(TEXT, tags=["new"], on_duplicate="replace"),
    "add touching the text": lambda view, id: view.add(TEXT, on_duplicate="touch"),
    "add many replacing": lambda view, id: view.add_many([{"text": "new", "id": id, "on_duplicate": "replace"}]),
    "change replacing": lambda view, id: view.change([{"text": "new", "id": id, "on_duplicate": "replace"}]),
    "change skipping": lambda view, id: view.change([{"text": "new", "id": id}], if_taken="skip"),
    "change deleting": lambda view, id: view.change(delete=id),
    "import": import_by_id,
    "append": append_by_id,
    "append in listed sessions": append_by_id_in_listed_sessions,
    "append the same turn": lambda view, id: view.session("talk").append("user", "overwritten", turn=0),
    "delete session": lambda view, id: view.session("talk").delete(),
    "delete session for good": lambda view, id: view.session("talk").delete(hard=True),
    "title session": lambda view, id: view.session("talk", title="new"),
    "update in a view of the view": lambda view, id: view.scoped("b").update(id, text="overwritten"),
    "merge": lambda view, id: view.merge([f"{id[: id.index('#')]}#0", f"{id[: id.index('#')]}#1", id]),
    "delete in a view of the view": lambda view, id: view.scoped("b").delete(id),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@few
@given(several, st.data())
def test_no_way_of_writing_changes_another_scope(write, scopes, data):
    scope, target = data.draw(st.sampled_from(scopes)), data.draw(st.sampled_from(scopes))
    name = data.draw(st.sampled_from(["note", "0", "1"]))
    with fill(scopes) as memory:
        outside = {id: record for id, record in every_record(memory).items() if not is_within(record.scope, scope)}
        titles = {session.scope: session.title for session in memory.sessions() if not is_within(session.scope, scope)}
        with suppress(RecordExistsError, RecordNotFoundError, InvalidInputError):
            write(memory.scoped(scope), f"{target}#{name}")
        after = every_record(memory)
        assert {id: after.get(id) for id in outside} == outside
        assert {id for id in after if not is_within(after[id].scope, scope)} == set(outside)
        assert {s.scope: s.title for s in memory.sessions() if not is_within(s.scope, scope)} == titles
        assert search("semantic", "plain", vector=VECTOR, space="host")(memory) >= {
            id for id in outside if id.endswith("#note")
        }


@pytest.mark.parametrize("method", ["update", "delete"])
def test_a_record_of_another_scope_can_not_be_told_from_one_that_is_not_there(method):
    with fill(["a", "b"]) as memory:
        view = memory.scoped("a")
        if method == "delete":
            assert view.delete("b#note") == view.delete("missing") == 0
            return
        with pytest.raises(RecordNotFoundError, match="'b#note'"):
            view.update("b#note", text="x")


def test_an_id_of_another_scope_can_not_be_replaced():
    with fill(["a", "ab"]) as memory, pytest.raises(RecordExistsError):
        memory.scoped("a").add("mine", id="ab#note", on_duplicate="replace")


def test_a_session_can_not_take_over_a_record_of_another_scope():
    with fill(["a", "ab"]) as memory, pytest.raises(RecordExistsError):
        memory.scoped("a").session("talk").append("user", "mine", id="ab#note", on_duplicate="replace")


def test_an_update_moves_a_record_only_within_the_view():
    with fill(["a"]) as memory:
        assert memory.scoped("a").update("a#note", scope="b").scope == "a/b"


# Paths that are none

NO_SCOPES = [
    "/",
    "a/",
    "/a",
    "a//b",
    "..",
    "a/..",
    "../a",
    "a/../b",
    ".",
    "a/.",
    "*",
    "**",
    "a/*",
    "a\n",
    "a\0",
    "\ud800",
    "a\u2028b",
]

TAKE_SCOPES: dict[str, Callable[[View, str], object]] = {
    "add": lambda view, scope: view.add("x", scope=scope),
    "add_many": lambda view, scope: view.add_many([{"text": "x", "scope": scope}]),
    "change": lambda view, scope: view.change([{"text": "x", "scope": scope}]),
    "search": lambda view, scope: view.search("x", scope=scope),
    "context": lambda view, scope: view.context("x", scope=scope),
    "update": lambda view, scope: view.update("a#note", scope=scope),
    "records": lambda view, scope: view.records(scope=scope),
    "count": lambda view, scope: view.count(scope),
    "scoped": lambda view, scope: view.scoped(scope),
    "session": lambda view, scope: view.session("x", scope=scope, title="x"),
    "sessions": lambda view, scope: view.sessions(scope),
    "similar": lambda view, scope: view.similar(scope=scope),
    "export": lambda view, scope: view.export(BytesIO(), scope=scope),
    "import_": lambda view, scope: view.import_(BytesIO(b'{"text": "x"}'), scope=scope),
    "topics": lambda view, scope: view.topics(scope=scope),
    "breakdown": lambda view, scope: view.breakdown(scope=scope),
    "digest": lambda view, scope: view.digest(scope=scope),
    "scopes": lambda view, scope: view.scopes(scope),
    "period": lambda view, scope: view.period(scope),
    "deleted": lambda view, scope: view.deleted(scope=scope),
    "forget": lambda view, scope: view.forget(scope=scope, everything=True),
}


@pytest.fixture(scope="module")
def one_scope():
    with fill(["a"]) as memory:
        yield memory


@pytest.mark.parametrize("scope", [*NO_SCOPES, None, 5], ids=repr)
@pytest.mark.parametrize("method", TAKE_SCOPES.values(), ids=TAKE_SCOPES)
def test_what_is_no_scope_is_refused_everywhere(one_scope, method, scope):
    before = every_record(one_scope)
    for view in (one_scope, one_scope.scoped("a")):
        with pytest.raises(InvalidInputError, match="scope"):
            method(view, scope)
    assert every_record(one_scope) == before


@few
@given(several, st.data())
def test_the_trash_of_a_view_is_that_of_its_scope_alone(scopes, data):
    scope = data.draw(st.sampled_from(scopes))
    inside = [other for other in scopes if is_within(other, scope)]
    with fill(scopes) as memory:
        memory.delete(ids_of(scopes))
        assert {found.record.id for found in memory.scoped(scope).deleted(limit=1000)} == ids_of(inside)


@few
@given(several, st.data())
def test_a_view_shows_links_between_records_of_its_scope_alone(scopes, data):
    scope = data.draw(st.sampled_from(scopes))
    with fill(scopes) as memory:
        ends = [(one, other) for one in scopes for other in scopes if one != other]
        for one, other in ends:
            memory.link(f"{one}#note", f"{other}#note")
        shown = {(link.source, link.target) for link in memory.scoped(scope).links(ids_of(scopes))}
        within = [pair for pair in ends if all(is_within(end, scope) for end in pair)]
        assert shown == {(f"{one}#note", f"{other}#note") for one, other in within}


# Methods whose answer is no set of ids, with the tests that try them.
TRIED_ELSEWHERE = {
    "deleted": test_the_trash_of_a_view_is_that_of_its_scope_alone,
    "links": test_a_view_shows_links_between_records_of_its_scope_alone,
    "scopes": test_get_and_count_see_the_scope_alone,
    "get": test_get_and_count_see_the_scope_alone,
    "count": test_get_and_count_see_the_scope_alone,
    "vectors": test_get_and_count_see_the_scope_alone,
    "period": test_get_and_count_see_the_scope_alone,
    "dimensions": test_get_and_count_see_the_scope_alone,
    "embed": test_get_and_count_see_the_scope_alone,
    "similar": test_insights_are_into_the_scope_alone,
    "topics": test_insights_are_into_the_scope_alone,
    "breakdown": test_insights_are_into_the_scope_alone,
    "digest": test_insights_are_into_the_scope_alone,
}


def note_calls(monkeypatch, owner: type, called: set[str]) -> None:
    """Note which public methods of a class are called, but not by one another."""
    running = []

    def noting(name, method):
        @functools.wraps(method)
        def call(*arguments, **named):
            if not running:
                called.add(f"{owner.__name__}.{name}")
            running.append(name)
            try:
                return method(*arguments, **named)
            finally:
                running.pop()

        return call

    for name, method in public_methods(owner).items():
        monkeypatch.setattr(owner, name, noting(name, method))


def public_methods(owner: type) -> dict[str, Callable]:
    return {name: method for name, method in inspect.getmembers(owner, inspect.isfunction) if not name.startswith("_")}


def test_every_public_method_of_a_view_and_a_session_is_tried_above(monkeypatch):
    """A new way of reading or writing fails here until it stands in READS or WRITES, or has a test of its own."""
    called: set[str] = set()
    for owner in (View, Session):
        note_calls(monkeypatch, owner, called)
    for read in READS.values():
        with fill(["a", "b"]) as memory:
            read(View(memory._engine, "a"))
    for write in WRITES.values():
        with fill(["a", "b"]) as memory, suppress(RecordExistsError, RecordNotFoundError):
            write(View(memory._engine, "a"), "b#note")
    public = {f"{owner.__name__}.{name}" for owner in (View, Session) for name in public_methods(owner)}
    assert public - called == {f"View.{name}" for name in TRIED_ELSEWHERE}


def test_every_method_that_takes_a_scope_is_tried_above():
    public = {name: method for name, method in inspect.getmembers(View, inspect.isfunction) if not name.startswith("_")}
    taking = {name for name, method in public.items() if "scope" in inspect.signature(method).parameters}
    assert taking | {"context", "add_many", "change"} == set(TAKE_SCOPES)
