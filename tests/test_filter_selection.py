from datetime import UTC, datetime

import pytest

from recall_core.errors import InvalidInputError
from recall_core.filters import Selection, make_selection, selects
from recall_core.models import Record

T = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def make_record(**fields):
    return Record(**{"id": "r1", "text": "", "created_at": T, "updated_at": T, **fields})


@pytest.mark.parametrize(
    ("inner", "seen"), [("a", True), ("a/b", True), ("ab", False), ("", False), ("A", False), ("a0", False)]
)
def test_a_selection_sees_its_scope_and_what_lies_below(inner, seen):
    assert selects(make_selection(scope="a", now=T), make_record(scope=inner)) is seen


def test_a_filter_never_widens_a_scope():
    selection = make_selection(scope="a", where={"$or": [{"@scope": "b"}, {"$and": []}]}, now=T)
    assert not selects(selection, make_record(scope="b"))


@pytest.mark.parametrize("scope", ["/a", "a/", "a//b", "..", "*", "a\0", {"$ne": ""}, None])
def test_a_selection_of_an_invalid_scope_is_refused(scope):
    with pytest.raises(InvalidInputError):
        Selection(scope=scope, now=0)


@pytest.mark.parametrize(
    "arguments",
    [{"session": {"$ne": ""}}, {"session": 5}, {"roles": [1]}, {"tags": [None]}, {"since": "now"}, {"where": "x"}],
)
def test_a_selection_takes_no_operators_where_it_wants_names(arguments):
    with pytest.raises(InvalidInputError):
        make_selection(now=T, **arguments)


def test_an_empty_session_is_one_that_no_record_has():
    assert not selects(make_selection(session="", now=T), make_record(session="s"))
    assert not selects(make_selection(session="", now=T), make_record())


def test_no_roles_and_no_tags_select_nothing():
    record = make_record(role="user", tags=("a",))
    assert not selects(make_selection(roles=[], now=T), record)
    assert not selects(make_selection(tags=(), now=T), record)


def test_a_string_is_one_role_or_one_tag():
    selection = make_selection(roles="user", tags="deploy", now=T)
    assert (selection.roles, selection.tags) == (("user",), ("deploy",))


def test_any_of_the_tags_is_enough():
    assert selects(make_selection(tags=["x", "b"], now=T), make_record(tags=("a", "b")))


@pytest.mark.parametrize(
    ("since", "until", "seen"),
    [(T, None, True), (None, T, False), (T, "2026-01-31T09:30:00.000001", True), ("2026-02-01", None, False)],
)
def test_a_window_of_time_is_half_open(since, until, seen):
    assert selects(make_selection(since=since, until=until, now=T), make_record()) is seen


def test_a_record_is_invisible_from_the_moment_it_expires():
    record = make_record(expires_at=T)
    assert selects(make_selection(now=T.timestamp() - 0.000001), record)
    assert not selects(make_selection(now=T), record)
    assert selects(Selection(now=0, ignores_expiry=True), record)
