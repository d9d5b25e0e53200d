"""Links between records: made, shown with what is found, kept through the trash, never shown beyond a scope."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import timedelta

import pytest
from store_support import faults
from support import NOW, HashedEmbedder

from recall_core import Memory
from recall_core.errors import InvalidInputError, RecordNotFoundError
from recall_core.linking import MOST_LINKS


@pytest.fixture
def memory(db_path, clock):
    with Memory.open(db_path, embedder=HashedEmbedder(), clock=clock) as memory:
        memory.add("Error 503 from the gateway", id="error", scope="a")
        memory.add("Restart the backend", id="fix", scope="a")
        memory.add("turtles swim", id="other", scope="b")
        yield memory


def ends(links) -> list[tuple[str, str, str]]:
    return [(link.source, link.target, link.kind) for link in links]


def test_a_link_is_shown_from_both_ends(memory):
    link = memory.link("fix", "error", "solves")
    assert (ends([link]), link.created_at) == ([("fix", "error", "solves")], NOW)
    assert memory.links("error") == memory.links("fix") == memory.links(["fix", "error", "unknown"]) == [link]
    assert memory.links("other") == []


def test_a_link_is_made_once(memory, clock):
    first = memory.link("fix", "error")
    clock.advance(60)
    assert memory.link("fix", "error") == first
    memory.link("fix", "error", "solves")
    memory.link("error", "fix")
    assert ends(memory.links("fix")) == [
        ("fix", "error", "related"), ("error", "fix", "related"), ("fix", "error", "solves"),
    ]  # fmt: skip


def test_links_are_deleted_by_their_ends_and_kind(memory):
    for kind in ("one", "two", "three"):
        memory.link("fix", "error", kind)
    assert memory.unlink("error", "fix") == 0
    assert memory.unlink("fix", "error", "two") == 1
    assert memory.unlink("fix", "error") == 2
    assert memory.links("fix") == []


def test_hits_carry_the_links_of_their_records(memory):
    link = memory.link("fix", "error", "solves")
    hits = memory.search("Error 503")
    assert {hit.record.id: hit.links for hit in hits} == {"error": (link,), "fix": (link,), "other": ()}
    assert memory.search("Error 503", scope="a", limit=1)[0].links == (link,)


def test_a_hit_shows_only_the_first_links(memory):
    for number in range(MOST_LINKS + 5):
        memory.link("fix", "error", f"kind {number:02}")
    assert len(memory.search("Error 503", limit=1)[0].links) == MOST_LINKS
    assert len(memory.links("fix")) == MOST_LINKS + 5


def test_a_record_of_another_scope_is_not_shown_by_its_link(memory):
    memory.link("other", "error", "explains")
    view = memory.scoped("a")
    assert view.links(["error", "other"]) == []
    assert all(hit.links == () for hit in view.search("Error 503"))
    assert view.unlink("other", "error") == 0
    assert len(memory.links("error")) == 1
    memory.update("other", scope="a/b")
    assert len(view.links("error")) == 1


@pytest.mark.parametrize(("source", "target"), [("fix", "other"), ("other", "fix"), ("fix", "unknown")])
def test_a_link_beyond_the_scope_can_not_be_made(memory, source, target):
    missing = {source, target} - {"fix"}
    with pytest.raises(RecordNotFoundError, match=missing.pop()):
        memory.scoped("a").link(source, target)
    assert memory.links(["fix", "other"]) == []


@pytest.mark.parametrize(
    "arguments", [("fix", "fix"), ("fix", "error", ""), ("", "fix"), ("fix", 5), ("fix", "error", "x" * 513)]
)
def test_what_is_no_link_is_refused(memory, arguments):
    with pytest.raises(InvalidInputError):
        memory.link(*arguments)


def test_links_of_deleted_records_come_back_with_them(memory):
    memory.link("fix", "error", "solves")
    memory.link("other", "fix")
    for first, second in (("fix", "error"), ("error", "fix")):
        memory.delete(first)
        memory.delete(second)
        assert memory.links(["fix", "error", "other"]) == []
        memory.restore("fix")
        assert ends(memory.links("fix")) == [("other", "fix", "related")]
        memory.restore("error")
        assert len(memory.links("fix")) == 2


def test_links_of_what_is_deleted_for_good_are_gone(memory, db_path, clock):
    memory.link("fix", "error", "solves")
    memory.link("other", "fix")
    memory.delete("error", hard=True)
    assert ends(memory.links("fix")) == [("other", "fix", "related")]
    memory.delete("fix")
    clock.advance(days=31)
    memory.delete("other")
    with contextlib.closing(sqlite3.connect(db_path)) as connection:
        assert connection.execute("SELECT count(*) FROM link").fetchone() == (0,)
    assert faults(db_path) == []


def test_a_link_to_what_has_expired_is_not_shown(memory, clock):
    memory.link("fix", "error", "solves")
    memory.touch("error", ttl=60)
    assert len(memory.links("fix")) == 1
    clock.advance(60)
    assert memory.links("fix") == []
    assert memory.search("Restart the backend", limit=1)[0].links == ()


def test_links_outlive_every_change_of_their_records(memory):
    memory.link("fix", "error", "solves")
    memory.update("fix", text="Restart the backend twice", tags=["x"], created_at=NOW - timedelta(days=1))
    memory.add("Restart it thrice", id="fix", scope="a", on_duplicate="replace")
    assert len(memory.links("fix")) == 1


def test_another_program_that_renames_or_replaces_a_record_leaves_no_loose_links(memory, db_path):
    memory.link("fix", "error", "solves")
    memory.link("other", "fix")
    memory.close()
    with contextlib.closing(sqlite3.connect(db_path)) as connection, connection:
        connection.execute("UPDATE record SET id = 'renamed', key = key + 100 WHERE id = 'error'")
        connection.execute("INSERT OR REPLACE INTO record(id, text) VALUES ('other', 'new')")
    assert faults(db_path) == []
    with Memory.open(db_path, embedder=None) as reopened:
        assert ends(reopened.links(["fix", "other"])) == [("fix", "renamed", "solves")]
