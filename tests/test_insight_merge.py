"""One record made of several: nothing that one of them says is lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from insight_support import open_memory, open_with_vectors
from support import NOW, FixedClock, HashedEmbedder

from recall_core import Memory, Settings
from recall_core.errors import InvalidInputError, RecordNotFoundError
from recall_core.insight.merging import join_texts
from recall_core.insight.wording import covers, read_wording
from recall_core.text import split_sentences

FULL = "Backups run every night at two, stored on S3"
PART = "backups run every night at two"


@pytest.fixture(params=[open_memory, open_with_vectors], ids=["keywords", "vectors"])
def memory(request):
    with request.param() as opened:
        yield opened


def test_the_record_that_says_most_is_left(memory):
    memory.add(PART, id="part")
    memory.add(FULL, id="full")
    done = memory.merge(["part", "full"])
    assert (done.record.id, done.record.text, done.deleted, done.added) == ("full", FULL, ("part",), ())
    assert [record.id for record in memory.records()] == ["full"]
    assert memory.records() == [done.record]


def test_the_caller_may_choose_what_is_left_and_then_loses_no_text(memory):
    memory.add(PART, id="part")
    memory.add(FULL, id="full")
    done = memory.merge(["full"], into="part")
    assert done.record.id == "part"
    assert done.record.text == f"{PART}\n{FULL}"
    assert done.added == (FULL,)
    assert [hit.record.id for hit in memory.search("S3", mode="keyword")] == ["part"]


def test_only_sentences_that_add_something_are_added(memory):
    memory.add(f"{FULL}. Anna looks after them.", id="a")
    memory.add(f"{PART}. They are kept for a month. Anna looks after them.", id="b", created_at="2020-01-01")
    done = memory.merge(["a", "b"])
    assert done.record.id == "a"
    assert done.added == ("They are kept for a month.",)


def test_tags_importance_and_times_are_joined(memory):
    memory.add(FULL, id="a", tags=["x", "y"], importance=0.2, expires_at=NOW + timedelta(days=1))
    memory.add(PART, id="b", tags=["y", "z"], importance=0.9, created_at="2020-01-01", ttl=100)
    record = memory.merge(["a", "b"]).record
    assert record.tags == ("x", "y", "z")
    assert record.importance == 0.9
    assert f"{record.created_at:%Y}" == "2020"
    assert record.expires_at == NOW + timedelta(days=1)
    assert record.updated_at == NOW


def test_what_one_keeps_for_ever_stays_for_ever(memory):
    memory.add(FULL, id="a", ttl=100)
    memory.add(PART, id="b")
    assert memory.merge(["a", "b"]).record.expires_at is None


def test_metadata_is_joined_and_what_differs_is_told(memory):
    memory.add(FULL, id="a", metadata={"port": 1, "host": "h"}, payload={"k": 1}, kind="decision")
    memory.add(PART, id="b", metadata={"port": 2, "owner": "o"}, payload={"k": 2}, source="chat")
    done = memory.merge(["a", "b"])
    joined = {name: value for name, value in done.record.metadata.items() if name != "merged_from"}
    assert joined == {"port": 1, "host": "h", "owner": "o"}
    assert (done.record.payload, done.record.source) == ({"k": 1}, "chat")
    assert {one.name: (one.kept, dict(one.others)) for one in done.disagreements} == {
        "kind": ("decision", {"b": "memory"}),
        "payload": ({"k": 1}, {"b": {"k": 2}}),
        "metadata.port": (1, {"b": 2}),
    }


def test_where_a_record_came_from_stays_known_over_several_merges(memory):
    memory.add(FULL, id="a")
    memory.add(PART, id="b", source="chat", session="s", role="user", turn=3)
    memory.add(f"{FULL}, says Anna", id="c")
    memory.merge(["a", "b"])
    sources = memory.merge(["a", "c"]).record.metadata["merged_from"]
    assert [source["id"] for source in sources] == ["b", "a"]
    assert sources[0] == {
        "id": "b",
        "created_at": "2026-01-31T09:30:00Z",
        "source": "chat",
        "session": "s",
        "turn": 3,
        "role": "user",
    }


def test_texts_that_stand_against_each_other_are_both_kept_and_told(memory):
    memory.add("部署在 8080", id="old", created_at="2024-01-01")
    memory.add("部署在 9090", id="new")
    done = memory.merge(["old", "new"])
    assert done.record.text == "部署在 9090\n部署在 8080"
    assert [(one.name, one.kept, dict(one.others)) for one in done.disagreements] == [
        ("text", "部署在 9090", {"old": "部署在 8080"})
    ]


def test_of_texts_that_stand_against_each_other_the_newest_is_left_however_important_the_other(memory):
    memory.add("部署在 8080 端口", id="old", created_at="2024-01-01", importance=1.0)
    memory.add("部署在 9090 端口", id="new")
    assert memory.merge(["old", "new"], dry_run=True).record.id == memory.similar()[0].survivor == "new"


def test_links_lead_to_the_record_that_is_left(memory):
    for id, text in {"a": FULL, "b": PART, "error": "disk full", "plan": "buy disks"}.items():
        memory.add(text, id=id)
    memory.link("error", "b", "solved by")
    memory.link("b", "plan", "leads to")
    memory.link("a", "plan", "leads to")
    memory.link("a", "b", "repeats")
    assert memory.merge(["a", "b"], dry_run=True).links == 1
    assert memory.merge(["a", "b"]).links == 1
    assert {(link.source, link.kind, link.target) for link in memory.links("a")} == {
        ("a", "leads to", "plan"),
        ("error", "solved by", "a"),
    }


def test_what_was_merged_can_be_restored_with_its_links(memory):
    for id, text in {"a": FULL, "b": PART, "error": "disk full"}.items():
        memory.add(text, id=id)
    memory.link("error", "b", "solved by")
    memory.merge(["a", "b"])
    assert [record.text for record in memory.restore("b")] == [PART]
    assert {link.target for link in memory.links("error")} == {"a", "b"}


def test_without_a_trash_what_was_merged_is_gone():
    with Memory.open(":memory:", embedder=None, settings=Settings(trash_days=0)) as memory:
        memory.add(FULL, id="a")
        memory.add(PART, id="b")
        memory.merge(["a", "b"])
        assert memory.restore("b") == []
        assert memory.deleted() == []


def test_a_dry_run_tells_what_would_be_and_changes_nothing(memory):
    memory.add(PART, id="b", tags=["t"])
    memory.add(FULL, id="a")
    before = memory.records()
    planned = memory.merge(["a", "b"], dry_run=True)
    assert memory.records() == before
    assert planned.dry_run
    assert memory.merge(["a", "b"]) == replace(planned, dry_run=False)


def test_a_merge_that_fails_changes_nothing(memory, monkeypatch):
    memory.add(PART, id="b")
    memory.add(FULL, id="a")
    before = memory.records()

    def fail(*_):
        raise RuntimeError("disk full")

    monkeypatch.setattr(memory._engine.store.trash, "put", fail)
    with pytest.raises(RuntimeError):
        memory.merge(["a", "b"], into="b")
    assert memory.records() == before
    assert [hit.record.id for hit in memory.search("S3", mode="keyword")] == ["a"]


def test_a_record_that_changes_meanwhile_is_read_again(memory, monkeypatch):
    memory.add(PART, id="b")
    memory.add(FULL, id="a")
    prepare = memory._engine.indexer.prepare
    changes = iter([True])

    def change_once(record):
        if next(changes, False):
            memory.update("b", tags=["late"])
        return prepare(record)

    monkeypatch.setattr(memory._engine.indexer, "prepare", change_once)
    assert memory.merge(["a", "b"]).record.tags == ("late",)


def test_a_merged_text_is_found_by_its_vector():
    with open_with_vectors() as memory:
        memory.add(FULL, id="a")
        memory.add("Restores are tried each month", id="b")
        memory.merge(["a", "b"])
        assert memory.stats().pending == 0
        assert [hit.record.id for hit in memory.search("Restores are tried", mode="semantic")] == ["a"]


def test_a_vector_that_the_caller_brought_stays():
    with Memory.open(":memory:", embedder=None, clock=FixedClock()) as memory:
        memory.add(FULL, id="a", vector=[1.0, 0.0])
        memory.add("Restores are tried each month", id="b", vector=[0.0, 1.0])
        memory.merge(["a", "b"])
        (hit,) = memory.search("x", mode="semantic", vector=[1.0, 0.0])
        assert hit.why.similarity == pytest.approx(1.0)


def test_what_is_said_in_other_words_is_not_said_twice():
    class Subjects(HashedEmbedder):
        """Embeds all texts about tea alike."""

        def _embed(self, texts):
            return super()._embed(["tea" if "喝绿茶" in text else text for text in texts])

    with open_memory(Subjects(64)) as memory:
        memory.add_many({"text": f"{number} 号机器的负责人是小{number}"} for number in range(20))
        memory.add("用户喜欢喝绿茶", id="a")
        memory.add("用户爱喝绿茶", id="b")
        assert memory.merge(["a", "b"]).record.text == "用户喜欢喝绿茶"


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ("ab", InvalidInputError, "not the one string"),
        (["a"], InvalidInputError, "two records or more, not 1"),
        (["a", "a"], InvalidInputError, "two records or more, not 1"),
        ([], InvalidInputError, "two records or more, not 0"),
        (["a", 5], InvalidInputError, "id is a string"),
        (["a", "missing"], RecordNotFoundError, "'missing'"),
        (["a", "elsewhere"], InvalidInputError, "move a record first"),
        (["a", "expired"], RecordNotFoundError, "'expired'"),
    ],
)
def test_what_can_not_be_merged_is_refused(memory, ids, error, message):
    memory.add(FULL, id="a")
    memory.add(FULL, id="elsewhere", scope="b")
    memory.add(FULL, id="expired", ttl=1)
    memory._engine.clock.advance(2)
    for dry_run in (True, False):
        with pytest.raises(error, match=message):
            memory.merge(ids, dry_run=dry_run)
    assert memory.count() == 2


def test_a_view_merges_only_what_lies_below_it(memory):
    memory.add(FULL, id="a", scope="x")
    memory.add(PART, id="b", scope="x")
    with pytest.raises(RecordNotFoundError, match="'a'"):
        memory.scoped("y").merge(["a", "b"])
    assert memory.scoped("x").merge(["a", "b"]).record.scope == "x"


texts = st.lists(
    st.lists(st.sampled_from(["Anna leads billing.", "It runs on port 80.", "端口是 80。", "No."]), max_size=4).map(
        " ".join
    ),
    min_size=1,
    max_size=4,
)


@given(texts)
@examples(max_examples=100)
def test_every_sentence_is_still_said_after_joining(found):
    joined, added = join_texts(found[0], found[1:])
    assert joined.startswith(found[0].rstrip())
    assert all(text in joined for text in added)
    wordings = [read_wording(line) for line in joined.splitlines()]
    for text in found:
        for start, end in split_sentences(text):
            sentence = text[start:end].strip()
            said = any(covers(wording, read_wording(sentence), 0.85) for wording in wordings)
            assert said or sentence in joined


@given(texts)
@examples(max_examples=50)
def test_joining_what_was_joined_adds_nothing(found):
    joined, _ = join_texts(found[0], found[1:])
    assert join_texts(joined, found)[1] == ()
