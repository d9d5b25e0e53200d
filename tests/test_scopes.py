"""A scope is a boundary: what is a path, what lies below what, and how any text becomes one segment."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from recall_core.errors import InvalidInputError
from recall_core.scopes import MAX_LENGTH, ROOT, check_scope, escape_segment, join_scopes, scope_contains

LABELS = st.text(st.characters(), max_size=40)  # lone surrogates too
SCOPES = st.lists(LABELS, max_size=4).map(lambda labels: "/".join(map(escape_segment, labels)))


@given(LABELS)
@example("")
@example("..")
@example("**")
@example("a/../b%2F\x00\ud800\u2028")
def test_any_label_becomes_one_valid_segment(label):
    segment = escape_segment(label)
    assert check_scope(segment) == segment
    assert "/" not in segment
    assert segment != ROOT


@given(LABELS, LABELS)
@example("", "%")
@example("/", "%2F")
@example(".", "%2E")
@example("\u2028", "%2028")
def test_different_labels_become_different_segments(one, other):
    assume(one != other)
    assert escape_segment(one) != escape_segment(other)


@given(st.text(st.characters(exclude_characters="/%*.", exclude_categories=["C", "Z"]), min_size=1))
def test_a_plain_label_stays_as_it_is(label):
    assert escape_segment(label) == label


@given(SCOPES, SCOPES)
def test_a_joined_scope_lies_below_its_base(base, scope):
    assume(len(base) + len(scope) < MAX_LENGTH)
    assert scope_contains(base, join_scopes(base, scope))


@given(SCOPES, SCOPES)
@example("user/4", "user/42")
@example("user/42", "user/4")
@example("user", "User")
def test_a_scope_contains_another_if_its_segments_begin_it(outer, inner):
    outer_segments = outer.split("/") if outer else []
    inner_segments = inner.split("/") if inner else []
    assert scope_contains(outer, inner) == (inner_segments[: len(outer_segments)] == outer_segments)


@given(SCOPES)
def test_the_root_contains_everything_and_lies_only_below_itself(scope):
    assert scope_contains(ROOT, scope)
    assert scope_contains(scope, ROOT) == (scope == ROOT)


@given(st.text(max_size=30))
def test_any_string_is_a_scope_or_an_error_of_ours(text):
    try:
        assert check_scope(text) == text
    except InvalidInputError:
        return


@pytest.mark.parametrize("scope", ["", "user/42", "用户/四十二", "a b/c.d", "user/42/project/..x", "100%", "a*b"])
def test_ordinary_paths_are_scopes(scope):
    assert check_scope(scope) == scope


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        ("/user", "empty segment"),
        ("user/", "empty segment"),
        ("user//42", "empty segment"),
        ("user/../admin", "absolute path"),
        (".", "absolute path"),
        ("user/*", "wildcard"),
        ("**", "wildcard"),
        ("user\x00", "not printable"),
        ("user\n42", "not printable"),
        ("user\ud800", "not printable"),
        ("x" * (MAX_LENGTH + 1), "at most 1024"),
        (42, "a scope is a string"),
        (None, "a scope is a string"),
    ],
)
def test_what_is_no_path_is_refused_with_the_reason(scope, words):
    with pytest.raises(InvalidInputError, match=words):
        check_scope(scope)


@pytest.mark.parametrize("scope", ["../user/43", "/", "a//b"])
def test_a_join_leads_nowhere_outside(scope):
    with pytest.raises(InvalidInputError):
        join_scopes("user/42", scope)


def test_a_join_that_grows_too_long_is_refused():
    with pytest.raises(InvalidInputError, match="at most 1024"):
        join_scopes("x" * MAX_LENGTH, "y")


def test_joining_the_root_changes_nothing():
    assert join_scopes(ROOT, "user/42") == join_scopes("user/42", ROOT) == "user/42"
