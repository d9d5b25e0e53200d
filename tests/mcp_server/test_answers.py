"""What the tools answer, without a server: how much of it, and what they say of what they did."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from recall_core import Memory
from recall_core.errors import InvalidInputError
from recall_core.mcp_server import texts
from recall_core.mcp_server.answers import Answers
from recall_core.mcp_server.budget import RESULT, find_end, fit, weigh

STORE = {"tags": (), "scope": "", "importance": 0.5, "metadata": None, "ttl_days": None}
CHANGE = {"text": None, "tags": None, "importance": None, "metadata": None, "ttl_days": None}
FIND = {"mode": "keyword", "since": None, "until": None}
LIST = {"scope": "", "tags": None, "session": None, "cursor": None}
LONG = {"zh": "项目部署统一使用容器，不再使用虚拟机。\n" * 300, "en": 'The "deploy" goes\tby containers.\n' * 300}


@pytest.fixture
def memory(db_path):
    with Memory.open(db_path, embedder=None) as memory:
        yield memory


@pytest.fixture
def answers(memory):
    return Answers(lambda: memory, "shared", "tests")


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_result_is_never_larger_than_a_client_takes(answers, memory, language):
    shared = memory.scoped("shared")
    for number in range(50):
        tags = [f"{number} {place} {LONG[language][:15].strip()}" for place in range(60)]
        metadata = {"long": LONG[language][: 40 * number]}
        shared.add(f"{number} {LONG[language]}", tags=tags, metadata=metadata, session=f"{number}" * 200)
    ids = [record.id for record in shared.records()]
    for id in ids[1:]:
        shared.link(ids[0], id, "goes with " + "something" * 50)
    found = answers.search("部署 deploy", limit=50, **FIND)
    assert found.left_out == 50 - len(found.memories) > 0
    assert f"{found.left_out} more" in texts.tell_found(found)
    got = answers.get(ids[0])
    assert got.links_left_out == 49 - len(got.links) > 0
    for result, tell in (
        (found, texts.tell_found), (got, texts.tell_got), (answers.describe(), texts.tell_state),
        (answers.list_page(limit=50, **LIST), texts.tell_listed),
    ):  # fmt: skip
        assert weigh(asdict(result)) <= RESULT
        assert weigh(tell(result)) <= RESULT
    for memory in found.memories:
        assert memory.truncated
        assert memory.tags_left_out == 60 - len(memory.tags) > 0


def test_a_list_goes_on_where_a_full_result_ended(answers, memory):
    shared = memory.scoped("shared")
    ids = [shared.add(f"{number}", session="long" * 100, role="r" * 500).id for number in range(60)]
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        page = answers.list_page(limit=50, **LIST | {"cursor": cursor})
        seen += [memory.id for memory in page.memories]
        cursor, pages = page.next_cursor, pages + 1
    assert sorted(seen) == sorted(ids)
    assert pages > 2


def test_short_memories_leave_their_room_to_long_ones(answers, memory):
    shared = memory.scoped("shared")
    for number in range(12):
        shared.add(f"short {number}")
    shared.add("long " * 300)
    page = answers.list_page(limit=50, **LIST)
    assert len(page.memories) == 13
    assert len(page.memories[0].text) > 1000


@pytest.mark.parametrize("text", [*LONG.values(), "x\x01\x02" * 9000, '\\"\n' * 9000, "🍵" * 9000])
def test_any_text_is_read_in_parts_that_fit(answers, text):
    id = answers.store(text, **STORE).id
    read, offset = "", 0
    while offset is not None:
        got = answers.get(id, offset)
        assert weigh(asdict(got)) <= RESULT
        read, offset = read + got.memory.text, got.memory.next_offset
    assert len(read) == len(text)


def test_the_part_of_a_long_text_that_was_found_is_shown(answers):
    answers.store("nothing of interest\n" * 500 + "the kettle stands in the attic\n" + "nothing else\n" * 500, **STORE)
    (memory,) = answers.search("kettle", limit=5, **FIND).memories
    assert "kettle" in memory.text
    assert memory.offset > 0
    assert memory.truncated


def test_parts_end_where_the_next_character_would_be_too_much():
    for text, tokens in (("茶" * 10, 5.0), ("x" * 100, 5.0), ('"' * 100, 5.0), ("", 5.0), ("茶", 0.0)):
        end = find_end(text, 0, tokens)
        assert weigh(text[:end]) <= tokens or end == 0
        assert end == len(text) or weigh(text[: end + 1]) > tokens
    assert fit(["茶" * 5, "茶", "茶" * 5], 10.0) == ["茶" * 5, "茶"]


def test_who_stores_what_is_stored_already_is_told_what_stays(answers):
    first = answers.store("tea at five", **STORE | {"tags": ["a"], "ttl_days": 1})
    again = answers.store("tea at five", **STORE | {"tags": ["b"]})
    assert (first.existed, again.existed, again.id) == (False, True, first.id)
    assert again.memory.tags == ["a"]
    assert again.memory.expires_at == first.memory.expires_at
    told = texts.tell_stored(again)
    assert "Stored already" in told
    assert f"expires {first.memory.expires_at[:10]}" in told


def test_a_memory_that_would_expire_can_be_kept(answers):
    stored = answers.store("tea at five", **STORE | {"ttl_days": 1})
    assert stored.memory.expires_at is not None
    assert answers.update(stored.id, **CHANGE | {"ttl_days": 0}).memory.expires_at is None


@pytest.mark.parametrize("text", ["", " \n", "\0", "\u200b\ufeff"])
def test_a_memory_can_not_be_made_or_become_empty(answers, text):
    id = answers.store("tea at five", **STORE).id
    with pytest.raises(InvalidInputError, match="text is empty"):
        answers.store(text, **STORE)
    with pytest.raises(InvalidInputError, match="text is empty"):
        answers.update(id, **CHANGE | {"text": text})
    assert answers.get(id).memory.text == "tea at five"


@pytest.mark.parametrize("days", [0, -1, 1e9, float("nan"), float("inf")])
def test_days_that_are_none_are_refused_by_their_name(answers, days):
    with pytest.raises(InvalidInputError, match="ttl_days is"):
        answers.store("tea at five", **STORE | {"ttl_days": days})


def test_a_time_that_ends_before_it_begins_is_refused(answers):
    with pytest.raises(InvalidInputError, match="exchange them"):
        answers.search("tea", limit=5, **FIND | {"since": "2026-02-01", "until": "2026-01-31T23:00:00Z"})


def test_what_others_have_waiting_is_not_counted(answers, memory):
    memory.scoped("private/other").add("not embedded yet")
    assert answers.describe().waiting == 0
    answers.store("not embedded either", **STORE)
    assert answers.describe().waiting == 1


def test_a_file_that_was_replaced_is_opened_anew(db_path, tmp_path):
    with Memory.open(tmp_path / "backup.db", embedder=None) as backup:
        backup.add("from the backup", scope="shared")
    answers = Answers(lambda: Memory.open(db_path, embedder=None), "shared", None)
    answers.store("from before", **STORE)
    for file in tmp_path.glob(f"{db_path.name}*"):
        file.unlink()
    (tmp_path / "backup.db").rename(db_path)
    assert [memory.text for memory in answers.list_page(limit=5, **LIST).memories] == ["from the backup"]
    answers.close()
