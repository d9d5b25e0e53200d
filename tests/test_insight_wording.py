"""What two texts have to do with each other: the same, part of, against each other, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.insight.wording import align, compare, count_in_order, covers, read_wording

THRESHOLD = 0.85
tokens = st.lists(st.sampled_from("abcd"), max_size=12)


def judge(one, other, meaning=None):
    found = compare(read_wording(one), read_wording(other), THRESHOLD, meaning)
    return None if found is None else ("conflict" if found.conflict else "duplicate")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The deploy runs on port 8080.", "Deploy runs on port 8080"),
        ("Deploys run nightly on host seven", "deploy runs nightly on host 7"),
        ("會議改到週三下午三點", "会议改到周三下午3点"),
        ("價格是一百二十元", "价格是120元"),
        ("部署端口是 8080", "我们的部署端口是 8080，由运维负责"),
        ("Use Redis for sessions.", "Use Redis for sessions. Do not use Memcached."),
        ("我喜欢喝茶", "我非常喜欢喝茶"),
        ("这家店不错", "这家店很不错"),
        ("The budget is 1,000 euros", "the budget is 1000 euros"),
    ],
)
def test_what_differs_only_in_how_it_is_said_is_a_duplicate(one, other):
    assert judge(one, other) == judge(other, one) == "duplicate"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("部署在 8080", "部署在 9090"),
        ("use X", "don't use X"),
        ("Use Redis for the cache", "Never use Redis for the cache"),
        ("我喜欢喝茶", "我不喜欢喝茶"),
        ("这个方案可行", "这个方案不可行"),
        ("会议改到周三下午三点", "会议改到周四下午三点"),
        ("用户有三个孩子", "用户有两个孩子"),
        ("web on 8080, api on 9090", "web on 9090, api on 8080"),
        ("deployed 3 replicas to staging", "deployed 5 replicas with 3 retries to staging"),
        ("enable the cache for staging", "disable the cache for staging"),
        ("生产环境启用缓存", "生产环境禁用缓存"),
        ("the review is on Monday at ten", "the review is on Tuesday at ten"),
        ("the release was great 👍", "the release was great 👎"),
        ("plan A is approved", "plan B is approved"),
        ("Outside it is 5 degrees cold", "Outside it is -5 degrees cold"),
        (
            "Anna came from Berlin in May, leads the billing team and reports to Carla every second week",
            "Anna came from Berlin in May, leads the billing team and reports to Diana every second week",
        ),
    ],
)
@pytest.mark.parametrize("meaning", [None, 0.99])
def test_values_negations_and_words_in_one_place_stand_against_each_other(one, other, meaning):
    assert judge(one, other, meaning) == judge(other, one, meaning) == "conflict"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User prefers tea", "User prefers coffee"),
        ("Is the server on port 8080?", "The server is on port 8080"),
        ("Alice depends on Bob", "Bob depends on Alice"),
        ("小王喜欢小李", "小李喜欢小王"),
        ("部署", "我们每周五部署订单服务到生产环境"),
        ("", "anything"),
        ("No.", "Never."),
        ("👍", "👎"),
        ("…", "!"),
        ("8080", "9090"),
    ],
)
def test_what_says_something_else_is_neither(one, other):
    assert judge(one, other) is judge(other, one) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("用户喜欢喝绿茶", "用户爱喝绿茶", "duplicate"),
        ("The database has port 5432", "Port 5432 is that of the database", None),  # the order may matter
        ("deploys run on port 8080", "the deployment port is 8080", "duplicate"),
        ("deploys run on port 8080", "the deployment port is 9090", "conflict"),
        ("Alice depends on Bob", "Bob depends on Alice", None),
        ("wholly other words", "用户喜欢喝绿茶", None),
    ],
)
def test_vectors_find_other_words_for_the_same_unless_values_or_the_order_differ(one, other, expected):
    assert judge(one, other, meaning=0.95) == judge(other, one, meaning=0.95) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 GB RAM is required", "5 MB RAM is required"),
        ("The timeout is 30 seconds", "The timeout is 30 minutes"),
        ("The report is due daily", "The report is due weekly"),
        ("The build takes an hour", "The build takes a minute"),
        ("超时时间是30秒", "超时时间是30分钟"),
        ("每天凌晨备份数据库", "每周凌晨备份数据库"),
        ("预算是5万元", "预算是5万美元"),
        ("meeting at 9am", "meeting at 9 pm"),
        ("Prod server has 8 cores", "Staging server has 8 cores"),
    ],
)
def test_another_unit_or_environment_is_no_other_word_for_the_same(one, other):
    assert judge(one, other, meaning=0.95) == judge(other, one, meaning=0.95) == "conflict"


def test_vectors_that_are_not_close_find_nothing():
    assert judge("用户喜欢喝绿茶", "用户爱喝绿茶", meaning=0.8) is None


def test_words_that_stand_only_aside_in_a_longer_text_are_no_duplicate_of_it():
    short, long = (
        "What gave you the idea?",
        "Congrats, that is awesome! What gave you the idea to open the online store?",
    )
    assert judge(short, long) == judge(short, long, meaning=0.5) == "duplicate"
    assert judge(short, long, meaning=0.28) is None


def test_a_text_covers_what_is_part_of_it_and_not_the_other_way_round():
    long, short = read_wording("Backups run every night at two, on S3"), read_wording("backups run every night at 2")
    assert covers(long, short, THRESHOLD)
    assert not covers(short, long, THRESHOLD)


def test_a_text_does_not_cover_what_contradicts_it():
    assert not covers(read_wording("Backups run at two every night"), read_wording("Backups run at 3 every night"), 0.5)


@given(st.text(), st.text(), st.none() | st.floats(-1, 1))
def test_any_two_texts_are_compared_alike_in_either_order(one, other, meaning):
    first, second = read_wording(one), read_wording(other)
    assert compare(first, second, THRESHOLD, meaning) == compare(second, first, THRESHOLD, meaning)


@given(st.text())
def test_a_text_is_a_duplicate_of_itself(text):
    wording = read_wording(text)
    assert len(wording.tokens) == len(wording.said)
    found = compare(wording, wording, 1.0)
    assert found is not None
    assert (found.similarity, found.conflict) == (1.0, False)


@given(tokens, tokens)
def test_the_longest_common_subsequence_is_that_of_the_textbook(one, other):
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, left in enumerate(one):
        for j, right in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if left == right else max(table[i][j + 1], table[i + 1][j])
    assert count_in_order(one, other) == table[-1][-1]


@given(tokens, tokens)
def test_an_alignment_pairs_equal_tokens_in_order(one, other):
    same = align(one, other).same
    assert all(one[i] == other[j] for i, j in same)
    assert list(same) == sorted(same)
    assert len({i for i, _ in same}) == len({j for _, j in same}) == len(same)
