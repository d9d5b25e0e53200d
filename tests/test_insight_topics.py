"""What a memory is about: topics with names, sizes, growth and thin spots."""

from __future__ import annotations

import random
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from insight_support import open_memory, open_with_vectors
from support import NOW

from recall_core.errors import InvalidInputError
from recall_core.insight import topics as topics_module
from recall_core.insight.clusters import cut, link_average
from recall_core.insight.features import count_terms, make_features
from recall_core.insight.labels import find_terms
from recall_core.text import analyse

DATABASE = [
    "订单服务的数据库迁移到五号机",
    "数据库迁移之前先备份",
    "数据库迁移失败时用备份回滚",
    "数据库迁移的窗口是周日凌晨",
]
COFFEE = [
    "Anna takes her coffee without sugar",
    "the coffee machine on the second floor is broken",
    "coffee beans are ordered every Monday",
]
CATS = ["the cat sleeps on the sofa", "a cat needs a vet", "our cat is called Momo", "cats like boxes"]
SUBJECTS = {"数据库": DATABASE, "coffee": COFFEE, "cat": CATS}


@pytest.fixture(params=[open_memory, open_with_vectors], ids=["keywords", "vectors"])
def memory(request):
    with request.param() as opened:
        yield opened


def fill(memory, **arguments):
    for texts in SUBJECTS.values():
        memory.add_many({"text": text, **arguments} for text in texts)


def members(memory, topics):
    return [{record.text for record in memory.get(topic.ids)} for topic in topics]


def test_records_about_the_same_form_a_topic(memory):
    fill(memory)
    memory.add("wholly unrelated")
    topics = memory.topics()
    assert sorted(map(len, members(memory, topics))) == [3, 4, 4]
    assert {frozenset(found) for found in members(memory, topics)} == {frozenset(texts) for texts in SUBJECTS.values()}


def test_a_topic_is_named_by_whole_words(memory):
    fill(memory)
    named = {topic.terms[0] for topic in memory.topics()}
    assert named == {"数据库", "coffee", "cat"}
    assert all(len(term) > 1 for topic in memory.topics() for term in topic.terms)


def test_the_period_and_the_one_before_show_the_growth(memory):
    for days, count in ((1, 3), (8, 1), (30, 2)):
        made = NOW - timedelta(days=days)
        memory.add_many({"text": f"coffee for {days} and {n}", "created_at": made} for n in range(count))
    (topic,) = memory.topics(since=timedelta(days=7))
    assert (topic.size, topic.recent, topic.before, topic.growth) == (6, 3, 1, 2)
    assert topic.first_at == NOW - timedelta(days=30)
    assert topic.last_at == NOW - timedelta(days=1)
    (earlier,) = memory.topics(since=NOW - timedelta(days=31), until=NOW - timedelta(days=9))
    assert (earlier.recent, earlier.before) == (2, 0)


def test_what_was_long_not_spoken_of_is_stale(memory):
    fill(memory, created_at=NOW - timedelta(days=100))
    assert {topic.thin for topic in memory.topics()} == {("stale",)}
    assert {topic.thin for topic in memory.topics(until=NOW - timedelta(days=50))} == {()}


def test_what_is_asked_more_often_than_told_is_thin(memory):
    memory.add_many({"text": text} for text in ["How do we restore a backup?", "Who may restore a backup?", COFFEE[0]])
    (topic,) = memory.topics()
    assert (topic.size, topic.questions, topic.thin) == (2, 2, ("asked",))


def test_what_others_mention_more_often_than_is_stored_is_thin(memory):
    memory.add_many({"text": f"{text}, Grafana"} for text in DATABASE)
    memory.add_many({"text": f"Grafana dashboards need an owner: {name}"} for name in ("Anna", "Bob"))
    found = {topic.size: (topic.mentions, topic.thin) for topic in memory.topics()}
    assert found == {4: (2, ()), 2: (4, ("few",))}


def test_the_order_of_storing_does_not_matter():
    texts = [text for subject in SUBJECTS.values() for text in subject]
    found = []
    for seed in range(3):
        with open_with_vectors() as memory:
            for text in random.Random(seed).sample(texts, len(texts)):
                memory.add(text, id=f"r{texts.index(text)}", created_at=NOW)
            found.append(memory.topics())
    assert found[0] == found[1] == found[2]


def test_the_same_file_gives_the_same_answer(memory):
    fill(memory)
    assert memory.topics() == memory.topics()


def test_topics_are_of_the_view_alone_and_expired_records_in_none(memory):
    fill(memory, scope="a")
    memory.add_many({"text": text, "scope": "ab"} for text in COFFEE)
    memory.add_many({"text": text, "scope": "a", "ttl": 1} for text in COFFEE)
    memory._engine.clock.advance(2)
    topics = memory.scoped("a").topics()
    assert sum(topic.size for topic in topics) == 11
    assert {record.scope for topic in topics for record in topic.examples} == {"a"}
    assert topics == memory.topics(scope="a")


def test_where_and_limit_restrict_what_is_shown(memory):
    fill(memory, tags=["x"])
    memory.add_many({"text": text, "tags": ["y"]} for text in COFFEE)
    assert [topic.size for topic in memory.topics(where={"@tags": {"$any": ["y"]}})] == [3]
    assert len(memory.topics(limit=1)) == 1
    assert memory.topics(limit=0) == []


def test_no_records_are_no_topics(memory):
    assert memory.topics() == []
    memory.add("alone")
    assert memory.topics() == []


def test_a_period_that_ends_before_it_begins_is_refused(memory):
    with pytest.raises(InvalidInputError, match="is not before until"):
        memory.topics(since="2026-01-02", until="2026-01-01")


def test_of_many_records_a_sample_is_clustered_and_the_others_join(memory, monkeypatch):
    monkeypatch.setattr(topics_module, "SAMPLE", 9)
    monkeypatch.setattr(topics_module, "BLOCK", 3)
    fill(memory)
    fill(memory)
    topics = memory.topics()
    assert sum(topic.size for topic in topics) > 9
    for found in members(memory, topics):
        assert any(found <= set(texts) for texts in SUBJECTS.values())


def test_a_name_is_written_as_in_the_texts_and_no_part_of_another():
    texts = ["The HTTP servers of 灰度发布 are restarted", "an HTTP server of 灰度发布 fails", "restart 灰度发布"]
    terms = [[*found.latin, *found.words] for found in (analyse(text, {"灰度发布"}) for text in texts)]
    named = find_terms(texts, terms, count_terms([*terms, ["other"], ["words"]]))
    assert next(iter(named.values())) == "灰度发布"
    assert "HTTP" in named.values()
    assert not {"灰度", "发布"} & set(named.values())


def test_words_of_grammar_and_numbers_are_no_names():
    texts = ["这个 42 the of what", "这个 42 the of what"]
    terms = [[*found.latin, *found.words] for found in map(analyse, texts)]
    assert find_terms(texts, terms, count_terms(terms)) == {}


@st.composite
def similarities(draw):
    count = draw(st.integers(1, 12))
    vectors = np.random.default_rng(draw(st.integers(0, 1000))).standard_normal((count, 4)).astype(np.float32)
    return (vectors @ vectors.T).astype(np.float32)


@given(similarities())
@examples(max_examples=50)
def test_average_linkage_is_that_of_the_definition(matrix):
    """Merge the two clusters with the highest mean similarity, again and again."""
    clusters = [[row] for row in range(len(matrix))]
    heights = []
    while len(clusters) > 1:
        means = {
            (i, j): matrix[np.ix_(one, other)].mean()
            for i, one in enumerate(clusters)
            for j, other in enumerate(clusters)
            if i < j
        }
        (i, j), height = max(means.items(), key=lambda item: item[1])
        heights.append(height)
        clusters[i] += clusters.pop(j)
    merges = link_average(matrix.copy())
    assert np.allclose(merges[:, 2], heights, atol=1e-3)


@given(similarities(), st.floats(-2, 2))
@examples(max_examples=50)
def test_a_cut_is_a_partition_numbered_by_first_rows(matrix, least):
    numbers = cut(link_average(matrix.copy()), len(matrix), least)
    firsts = [int(np.flatnonzero(numbers == number)[0]) for number in range(numbers.max() + 1)]
    assert firsts == sorted(firsts)
    assert cut(link_average(matrix.copy()), len(matrix), np.inf).tolist() == list(range(len(matrix)))


@given(st.lists(st.lists(st.sampled_from(["a", "b", "数据", "c"]), max_size=5), min_size=1, max_size=8))
def test_features_are_at_most_of_length_one(texts):
    features = make_features(texts, count_terms(texts), None)
    assert (np.linalg.norm(features, axis=1) <= 1 + 1e-5).all()
