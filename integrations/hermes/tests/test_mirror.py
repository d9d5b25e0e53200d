"""The entries of MEMORY.md and USER.md are mirrored exactly, whoever writes them and however that is told."""

from __future__ import annotations

import json

import pytest
from agents import call, telegram

from recall_core import Memory
from recall_hermes.mirror import KIND
from recall_hermes.names import memory_file


@pytest.fixture
def files(home):
    """Return what writes an entry file as Hermes does."""
    (home / "memories").mkdir()

    def write(name, *entries):
        (home / "memories" / name).write_text("\n§\n".join(entries), "utf-8")

    return write


def mirrored(home):
    with Memory.open(memory_file(home), embedder=None) as memory:
        return sorted(
            (record.source, record.text, record.scope) for record in memory.records(limit=100) if record.kind == KIND
        )


def texts(home):
    return {text for _, text, _ in mirrored(home)}


def tell(manager, **arguments):
    manager.notify_memory_tool_write(
        json.dumps({"success": True}), arguments, build_metadata=lambda: {"session_id": "s1"}
    )
    assert manager.flush_pending(timeout=120)


def test_what_lies_in_the_files_is_taken_over_at_the_start(hosts, home, files):
    files("MEMORY.md", "deploys with Docker", "backups run at night\nand twice on Sundays")
    files("USER.md", "likes tea")
    hosts.start()
    assert mirrored(home) == [
        ("MEMORY.md", "backups run at night\nand twice on Sundays", "profile/default"),
        ("MEMORY.md", "deploys with Docker", "profile/default"),
        ("USER.md", "likes tea", "profile/default"),
    ]


def test_a_mark_that_an_editor_begins_a_file_with_is_no_part_of_an_entry(hosts, home):
    (home / "memories").mkdir()
    (home / "memories" / "MEMORY.md").write_bytes("\ufeffDeploys are on Mondays\r\n§\r\n部署用 Docker\r\n".encode())
    hosts.start()
    assert texts(home) == {"Deploys are on Mondays", "部署用 Docker"}


def test_what_is_written_without_a_word_is_found_in_the_next_turn(hosts, home, files):
    files("MEMORY.md", "one", "two")
    manager = hosts.start()
    files("MEMORY.md", "one", "three and more")
    manager.on_turn_start(2, "hello")
    assert texts(home) == {"one", "three and more"}


def test_an_emptied_file_empties_the_mirror_but_a_missing_one_says_nothing(hosts, home, files):
    files("MEMORY.md", "one")
    files("USER.md", "two")
    manager = hosts.start()
    files("MEMORY.md")
    (home / "memories" / "USER.md").unlink()
    manager.on_turn_start(2, "hello")
    assert texts(home) == {"two"}


def test_a_removed_entry_leaves_nothing_in_the_file(hosts, home, files):
    manager = hosts.start()
    tell(manager, action="add", target="user", content="door code tangerine")
    tell(manager, action="remove", target="user", old_text="tangerine")
    manager.shutdown_all()
    assert texts(home) == set()
    assert not any(b"tangerine" in path.read_bytes() for path in (home / "recall").iterdir())


def test_the_full_entry_that_newer_hosts_give_decides(hosts, home):
    manager = hosts.start()
    for text in ("tea in the morning", "tea"):
        tell(manager, action="add", target="user", content=text)
    manager.recall.on_memory_write("replace", "user", "coffee", metadata={"old_text": "tea", "previous_content": "tea"})
    assert texts(home) == {"tea in the morning", "coffee"}


def test_an_entry_that_can_not_be_told_from_another_is_left_to_the_file(hosts, home, files):
    files("USER.md", "tea in the morning", "tea at night")
    manager = hosts.start()
    files("USER.md", "tea in the morning", "coffee at night")
    tell(manager, action="replace", target="user", old_text="tea", content="coffee at night")
    assert texts(home) == {"tea in the morning", "coffee at night"}


def test_the_same_words_in_the_other_file_are_another_entry(hosts, home):
    manager = hosts.start()
    for target in ("user", "memory"):
        tell(manager, action="add", target=target, content="likes tea")
    tell(manager, action="remove", target="memory", old_text="likes tea")
    assert [(source, text) for source, text, _ in mirrored(home)] == [("USER.md", "likes tea")]


def test_what_a_user_of_the_gateway_wrote_is_theirs_whatever_is_seen_first(hosts, home, files):
    other = hosts.start("o")
    manager = hosts.start("s1", **telegram("1"))
    files("USER.md", "likes tea")
    other.on_turn_start(2, "hello")  # sees the file before the hook tells whose it is
    tell(manager, action="add", target="user", content="likes tea")
    assert [scope for _, _, scope in mirrored(home)] == ["user/default/telegram/1"]
    files("USER.md", "likes coffee")
    tell(hosts.start("s2", **telegram("2")), action="replace", target="user", old_text="tea", content="likes coffee")
    assert [(text, scope) for _, text, scope in mirrored(home)] == [("likes coffee", "user/default/telegram/2")]


def test_secrets_are_taken_out_and_the_entry_is_known_again(hosts, home, files):
    entry = "db: postgres://anna:s3cret@db/shop"
    files("MEMORY.md", entry)
    manager = hosts.start()
    manager.on_turn_start(2, "hello")
    assert texts(home) == {"db: postgres://anna:[redacted: password]@db/shop"}
    files("MEMORY.md", "nothing")
    manager.on_turn_start(3, "hello")
    assert texts(home) == {"nothing"}


def test_a_mirrored_entry_is_removed_with_the_memory_tool_only(hosts, home):
    manager = hosts.start()
    tell(manager, action="add", target="user", content="likes tea")
    with Memory.open(memory_file(home), embedder=None) as memory:
        (record,) = memory.records()
    assert "memory tool" in call(manager, "forget", id=record.id)["error"]
    assert texts(home) == {"likes tea"}


@pytest.mark.parametrize("bad", [b"caf\xe9", None], ids=["not UTF-8", "a folder"])
def test_a_file_that_can_not_be_read_keeps_no_other_out_and_is_told(hosts, home, files, bad):
    files("USER.md", "likes tea")
    path = home / "memories" / "MEMORY.md"
    path.mkdir() if bad is None else path.write_bytes(bad)
    manager = hosts.start()
    assert texts(home) == {"likes tea"}
    assert "Error" in call(manager, "status")["last failure"]
