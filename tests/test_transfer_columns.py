"""What other programs mean by the values of their columns."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.scopes import check_scope
from recall_core.times import from_micros, to_micros
from recall_core.transfer import columns
from recall_core.transfer.scope_recall import join_parts

SAME = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
SECONDS = SAME.timestamp()
anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=8)


@pytest.mark.parametrize(
    "value",
    [
        int(SECONDS),
        SECONDS,
        int(SECONDS * 1000),
        int(SECONDS * 1_000_000),
        int(SECONDS * 1_000_000_000),
        str(int(SECONDS)),
        str(int(SECONDS * 1000)),
        "2026-01-31T09:30:00",
        "2026-01-31 09:30:00",
        "2026-01-31T09:30:00Z",
        "2026-01-31T17:30:00+08:00",
        "2026-01-31 17:30:00 +0800",
        "2026/01/31 09:30:00",
        " 2026-01-31 09:30 ",
    ],
)
def test_a_time_is_read_in_any_unit_and_without_a_zone_as_utc(value):
    assert from_micros(to_micros(columns.read_time(value))) == SAME


@pytest.mark.parametrize("value", [None, "", "yesterday", True, b"x", [], math.nan, math.inf, 1e300, "1e300"])
def test_what_is_no_time_is_none(value):
    assert columns.read_time(value) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(3600, 3600), ("3600", 3600), ("30d", 2_592_000), ("7d12h", 648_000), ("60m", 3600), ("1.5h", 5400)],
)
def test_a_time_to_live_is_seconds_or_a_text_with_units(value, seconds):
    assert columns.read_ttl(value) == seconds


@pytest.mark.parametrize("value", [None, 0, -1, "", "for ever", True, math.nan, math.inf])
def test_no_time_to_live_is_for_ever(value):
    assert columns.read_ttl(value) is None


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ('["部署", "docker"]', ("部署", "docker")),
        ("部署，docker; ci", ("部署", "docker", "ci")),
        ('["a", "a", "", null, 5]', ("a", "5")),
        ("", ()),
        (None, ()),
        ("[broken", ("[broken",)),
    ],
)
def test_tags_are_a_json_list_or_separated_by_commas(value, tags):
    assert columns.read_tags(value) == tags


@pytest.mark.parametrize(
    ("value", "scale", "importance"),
    [(7, 10, 0.7), (0.7, 1, 0.7), ("0.7", 1, 0.7), ("high", 1, 0.9), (250, 100, 1.0), (-1, 1, 0.0), ("?", 1, None)],
)
def test_an_importance_is_brought_to_0_to_1(value, scale, importance):
    assert columns.read_importance(value, scale) == importance


@pytest.mark.parametrize(
    ("value", "metadata"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": NaN}', {"a": None}),
        ("plain", {"metadata": "plain"}),
        ("[1]", {"metadata": [1]}),
        (None, {}),
        ("{}", {}),
    ],
)
def test_metadata_is_a_json_object_and_anything_else_is_kept(value, metadata):
    assert columns.read_metadata(value) == metadata


@pytest.mark.parametrize(
    ("path", "user", "scope"),
    [
        ("/crew/研究团队/", None, "crew/研究团队"),
        ("telegram:user:42", None, "telegram:user:42"),
        ("/", "42", ""),
        (None, "a/b", "user/a%2Fb"),
        (None, None, ""),
        ("a/../*", None, "a/%2E%2E/%2A"),
    ],
)
def test_a_scope_is_a_path_or_that_of_a_user(path, user, scope):
    assert columns.find_scope(path, user=user) == check_scope(scope)


def test_the_text_of_a_message_is_that_of_its_parts():
    parts = [{"type": "text", "text": "部署"}, {"type": "image", "url": "x"}, {"type": "text", "text": "完成"}]
    assert columns.read_text(json.dumps(parts)) == "部署\n\n完成"
    assert columns.read_text("[1] is a footnote") == "[1] is a footnote"
    assert columns.read_text(b"\xe9\x83\xa8\xff") == "部\ufffd"


@given(anything)
def test_no_value_breaks_a_reader(value):
    columns.read_time(value)
    columns.read_ttl(value)
    columns.read_tags(value)
    columns.read_text(value)
    columns.read_metadata(value)
    columns.read_role(value)
    columns.read_whole(value)
    columns.read_importance(value)
    check_scope(columns.find_scope(value, user=value))


@given(st.text(min_size=40, max_size=300), st.integers(20, 60), st.integers(8, 15))
def test_parts_that_overlap_become_the_text_again_or_lose_nothing(text, size, overlap):
    parts = [text[start : start + size] for start in range(0, max(1, len(text) - overlap), size - overlap)]
    joined = join_parts(parts)
    assert all(part in joined for part in parts)


def test_parts_of_ordinary_text_become_the_text_again():
    text = "部署服务统一使用 Docker Compose，不再使用虚拟机。回滚时先停流量。The rollback tag is v1.4.2, ask Anna."
    parts = [text[start : start + 30] for start in range(0, len(text) - 10, 20)]
    assert join_parts(parts) == text


def test_parts_without_an_overlap_stand_on_lines_of_their_own():
    assert join_parts(["One.", "Two."]) == "One.\nTwo."
