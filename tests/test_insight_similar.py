"""Groups of records that say the same, or nearly."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from insight_support import ids, open_memory, open_with_vectors, texts
from support import NOW, FixedClock

from recall_core.errors import InvalidInputError
from recall_core.insight.grouping import group_around
from recall_core.insight.pairing import pair_by_vectors, pair_by_words, unite
from recall_core.insight.wording import read_wording

FULL = "Backups run every night at two, stored on S3"
ANIMALS = ["ape", "bee", "cat", "dog", "elk", "owl"]
PART = "backups run every night at two"
pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25)


@pytest.fixture(params=[open_memory, open_with_vectors], ids=["keywords", "vectors"])
def memory(request):
    with request.param() as opened:
        opened.add_many(
            {"text": f"{word} is something else altogether"} for word in ["cat", "dog", "owl", "elk", "ape", "bee"]
        )
        yield opened


def test_duplicates_form_a_group_with_the_one_that_says_most_first(memory):
    memory.add(PART)
    full = memory.add(FULL)
    memory.add(f"{PART}.")
    (group,) = memory.similar(kind="duplicate")
    assert (group.kind, group.survivor, group.reason) == ("duplicate", full.id, "it says most")
    assert texts(group)[0] == FULL
    assert len(group.records) == 3
    assert [likeness.reason for likeness in group.likenesses] == ["part of what the other says"] * 2


def test_of_equal_texts_the_most_important_survives_then_the_newest(memory):
    memory.add(FULL, id="old", created_at="2024-01-01")
    memory.add(FULL, id="new", created_at="2025-01-01")
    (group,) = memory.similar()
    assert (ids(group), group.reason) == (["new", "old"], "of those that say the same, it is the newest")
    memory.add(FULL, id="important", importance=0.9, created_at="2023-01-01")
    (group,) = memory.similar()
    assert ids(group)[0] == group.survivor == "important"
    assert group.reason == "of those that say the same, it is the most important"


def test_what_stands_against_each_other_is_a_conflict_with_the_newest_first(memory):
    memory.add("部署在 8080", id="old", created_at="2024-01-01")
    memory.add("部署在 9090", id="new", created_at="2025-01-01")
    assert memory.similar(kind="duplicate") == []
    (group,) = memory.similar()
    assert (group.kind, ids(group), group.survivor) == ("conflict", ["new", "old"], "new")
    assert group.likenesses[0].reason == "8080 against 9090"


def test_a_group_of_duplicates_conflicts_as_one(memory):
    memory.add_many(
        {"text": text} for text in ["use Redis as cache", "Use Redis as cache.", "never use Redis as cache"]
    )
    kinds = [(group.kind, len(group.records)) for group in memory.similar()]
    assert kinds == [("duplicate", 2), ("conflict", 2)]


def test_records_of_other_scopes_roles_or_kinds_are_not_compared(memory):
    memory.add(FULL)
    memory.add(FULL, scope="a")
    memory.add(FULL, role="user")
    memory.add(FULL, kind="decision")
    assert memory.similar() == []


def test_expired_records_and_other_scopes_never_appear(memory):
    memory.add(FULL, scope="a")
    memory.add(FULL, scope="a", ttl=1)
    memory.add(FULL, scope="ab")
    memory._engine.clock.advance(2)
    assert memory.similar() == memory.scoped("a").similar() == []


def test_a_view_groups_what_lies_below_it(memory):
    for scope in ("a/b", "a/b", "c", "c"):
        memory.add(FULL, scope=scope)
    assert len(memory.similar()) == 2
    assert {record.scope for record in memory.scoped("a").similar()[0].records} == {"a/b"}
    assert memory.scoped("a").similar() == memory.similar(scope="a") == memory.scoped("a").similar(scope="b")


def test_where_chooses_what_is_compared(memory):
    memory.add(FULL, metadata={"k": 1})
    memory.add(FULL, metadata={"k": 2})
    assert memory.similar(where={"k": 1}) == []
    assert len(memory.similar(where={"k": {"$gte": 1}})) == 1


def test_limit_keeps_the_largest_groups(memory):
    for number, text in enumerate([FULL, "用户喜欢喝绿茶，不加糖"]):
        memory.add_many({"text": text} for _ in range(2 + number))
    assert [len(group.records) for group in memory.similar(limit=1)] == [3]
    assert memory.similar(limit=0) == []


@pytest.mark.parametrize(
    "arguments", [{"threshold": 0.4}, {"threshold": 1.1}, {"threshold": "high"}, {"kind": "twin"}, {"limit": -1}]
)
def test_arguments_that_mean_nothing_are_refused(memory, arguments):
    with pytest.raises(InvalidInputError, match=f"{next(iter(arguments))} is "):
        memory.similar(**arguments)


def test_an_empty_memory_has_no_groups():
    with open_memory() as memory:
        assert memory.similar() == []


def test_vectors_find_other_words_for_the_same():
    """Vectors of our own: two texts of which one is said in other words, among others that point elsewhere."""
    directions = np.random.default_rng(1).standard_normal((30, 16))
    directions[1] = directions[0] + 0.01
    subjects = ["用户喜欢喝绿茶", "用户爱喝绿茶", *(f"{number} 号机器的负责人是小{number}" for number in range(28))]
    with open_memory(clock=FixedClock()) as memory:
        for text, vector in zip(subjects, directions.tolist(), strict=True):
            memory.add(text, vector=vector)
        (group,) = memory.similar(kind="duplicate")
    assert texts(group) == subjects[:2]
    assert group.likenesses[0].reason == "the same in other words"
    assert group.likenesses[0].meaning > 0.9


def test_the_order_of_storing_does_not_matter():
    subjects = [FULL, PART, f"{PART}!", "部署在 8080", "部署在 9090", "部署在 9090。", "User prefers tea"]
    found = []
    for seed in range(4):
        shuffled = random.Random(seed).sample(subjects, len(subjects))
        with open_memory() as memory:
            for text in shuffled:
                memory.add(text, id=str(subjects.index(text)), created_at=NOW)
            found.append(memory.similar())
    assert found[0]
    assert all(groups == found[0] for groups in found)


@given(st.permutations(range(10)), pairs)
def test_groups_are_a_partition_around_centres(order, found):
    groups = group_around(order, found)
    assert sorted(item for group in groups for item in group) == list(range(10))
    joined = {frozenset(pair) for pair in found}
    assert all(frozenset((group[0], other)) in joined for group in groups for other in group[1:])


@given(st.permutations(range(10)), pairs, st.randoms())
def test_the_order_of_the_pairs_does_not_matter(order, found, random):
    shuffled = [pair if random.random() < 0.5 else pair[::-1] for pair in random.sample(found, len(found))]
    assert group_around(order, shuffled) == group_around(order, found)


@given(
    st.lists(
        st.lists(st.sampled_from(ANIMALS), min_size=1, max_size=6).map(" ".join),
        max_size=12,
    )
)
@examples(max_examples=50)
def test_texts_that_share_enough_pairs_of_words_are_all_found(texts):
    wordings = [read_wording(text) for text in texts]
    found = {tuple(pair) for pair in pair_by_words(wordings, [0] * len(texts), 0.7).tolist()}
    for one in range(len(texts)):
        for other in range(one + 1, len(texts)):
            left, right = set(wordings[one].pairs), set(wordings[other].pairs)
            if len(left & right) >= 0.7 * min(len(left), len(right)):
                assert (one, other) in found


def test_thousands_of_alike_texts_give_a_bounded_number_of_pairs():
    wordings = [read_wording(f"the job {word} has ended well") for word in (f"w{n}x" for n in range(3_000))]
    assert len(pair_by_words(wordings, [0] * 3_000, 0.7)) < 200_000


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.integers(0, 100))
@examples(max_examples=30)
def test_pairs_by_vector_are_those_of_one_part_that_are_close(parts, seed):
    vectors = np.random.default_rng(seed).standard_normal((len(parts), 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[0] = 0
    found, products = pair_by_vectors(vectors, parts, 0.8)
    expected = {
        (one, other)
        for one in range(len(parts))
        for other in range(one + 1, len(parts))
        if parts[one] == parts[other] and vectors[one] @ vectors[other] >= 0.8
    }
    assert {tuple(pair) for pair in found.tolist()} == expected
    assert (products >= 0.8).all()


def test_pairs_are_united_without_repetitions():
    assert unite(np.array([[2, 3], [0, 1], [2, 3]])).tolist() == [[0, 1], [2, 3]]
