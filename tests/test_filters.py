import math
from datetime import UTC, date, datetime

import pytest

from recall_core.errors import InvalidInputError
from recall_core.filters import (
    MAX_CONDITIONS,
    MAX_DEPTH,
    And,
    Condition,
    Not,
    Or,
    matches,
    parse_where,
)
from recall_core.models import Record

T = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def make_record(metadata=None, **fields):
    fields = {"id": "r1", "text": "部署 uses Docker", "created_at": T, "updated_at": T, **fields}
    return Record(metadata=metadata or {}, **fields)


def holds(where, metadata=None, **fields):
    filter = parse_where(where)
    return filter is None or matches(filter, make_record(metadata, **fields))


@pytest.mark.parametrize(
    ("stored", "given", "equal"),
    [
        ("zh", "zh", True),
        ("zh", "ZH", False),
        (1, 1.0, True),
        (1, True, False),
        (True, 1, False),
        (True, True, True),
        (0, False, False),
        (1, "1", False),
        (None, None, True),
        (None, "", False),
        (["zh"], "zh", False),
        ({"a": 1}, "a", False),
        (2**53 + 1, float(2**53), False),
        (2**70, float(2**70), True),
        (10**400, 1.5, False),
    ],
)
def test_eq_compares_by_type_and_value(stored, given, equal):
    assert holds({"k": given}, {"k": stored}) is equal
    assert holds({"k": {"$ne": given}}, {"k": stored}) is not equal


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({"k": None}, False),
        ({"k": {"$ne": 1}}, True),
        ({"k": {"$gt": 1}}, False),
        ({"k": {"$lte": ""}}, False),
        ({"k": {"$in": [None, 1]}}, False),
        ({"k": {"$nin": [None, 1]}}, True),
        ({"k": {"$any": [None, 1]}}, False),
        ({"k": {"$all": [1]}}, False),
        ({"k": {"$all": []}}, True),
        ({"k": {"$contains": ""}}, False),
        ({"k": {"$text": ""}}, False),
        ({"k": {"$empty": True}}, True),
        ({"k": {"$empty": False}}, False),
    ],
)
def test_a_missing_key_equals_nothing_and_is_empty(where, found):
    assert holds(where) is found


@pytest.mark.parametrize(
    ("stored", "where", "found"),
    [
        (3, {"$gte": 3, "$lt": 5}, True),
        (5, {"$gte": 3, "$lt": 5}, False),
        ("b", {"$gt": "a"}, True),
        ("Z", {"$gt": "a"}, False),
        ("五", {"$gt": 1}, False),
        (5, {"$lt": "9"}, False),
        (True, {"$gt": 0}, False),
        (None, {"$lt": 1}, False),
        ([5], {"$gt": 1}, False),
        (10**400, {"$gt": 1e300}, True),
        (-(10**400), {"$lt": -1e300}, True),
    ],
)
def test_order_needs_two_numbers_or_two_strings(stored, where, found):
    assert holds({"k": where}, {"k": stored}) is found


@pytest.mark.parametrize(
    ("stored", "where", "found"),
    [
        (["a", "b"], {"$any": ["b", "c"]}, True),
        (["a", "b"], {"$any": []}, False),
        (["a", "b"], {"$all": ["b", "a"]}, True),
        (["a", "b"], {"$all": ["a", "c"]}, False),
        (["a", ["b"]], {"$any": ["b"]}, False),
        ([1, True], {"$all": [1.0, True]}, True),
        ([1], {"$any": [True]}, False),
        ("a", {"$any": ["a"]}, True),
        ("a", {"$all": ["a", "a"]}, True),
        ("a", {"$all": ["a", "b"]}, False),
        (None, {"$any": [None]}, True),
        (["a"], {"$in": ["a"]}, False),
        (["a", None], {"$contains": None}, True),
        (["Docker"], {"$contains": "Dock"}, False),
        ("Docker", {"$contains": "Dock"}, True),
        ("Docker", {"$contains": "dock"}, False),
        ("100%", {"$contains": "_"}, False),
        (12, {"$contains": 1}, False),
        ({"a": 1}, {"$contains": "a"}, False),
    ],
)
def test_lists_are_asked_by_any_all_and_contains(stored, where, found):
    assert holds({"k": where}, {"k": stored}) is found


@pytest.mark.parametrize(
    ("stored", "given", "found"),
    [
        ("Straße 5", "STRASSE", True),
        ("ＡＢＣ", "abc", True),
        ("ﬁle", "FILE", True),
        ("部署服务", "服务", True),
        ("100 %", "%", True),
        ("abc", "_", False),
        (["abc"], "abc", False),
        (123, "2", False),
    ],
)
def test_text_match_folds_case_and_width_and_knows_no_wildcard(stored, given, found):
    assert holds({"k": {"$text": given}}, {"k": stored}) is found


@pytest.mark.parametrize("stored", [None, "", [], {}])
def test_is_empty_holds_for_what_has_nothing_in_it(stored):
    assert holds({"k": {"$empty": True}}, {"k": stored})
    assert not holds({"k": {"$empty": False}}, {"k": stored})


@pytest.mark.parametrize("stored", [0, False, " ", [None], {"a": None}, "[]"])
def test_is_empty_does_not_hold_for_falsy_values_that_say_something(stored):
    assert not holds({"k": {"$empty": True}}, {"k": stored})


@pytest.mark.parametrize("key", ["a.b", "a'b", 'a"b', "$.x", "路径", "x') OR 1=1 --", "0", "", " "])
def test_a_metadata_key_is_taken_verbatim(key):
    condition = Condition(key, "eq", 1)
    assert matches(condition, make_record({key: 1}))
    assert not matches(condition, make_record({"a": {"b": 1}, "x": 1}))


def test_a_key_that_starts_with_an_at_sign_is_written_with_two():
    assert holds({"@@role": "x", "@@@": 1}, {"@role": "x", "@@": 1}, role="user")


def test_a_key_that_starts_with_a_dollar_is_written_with_two():
    assert holds({"$$price": {"$lt": 5}, "$$$and": 1}, {"$price": 3, "$$and": 1})


@pytest.mark.parametrize("field", ["@rolle", "@", "@metadata", "@payload", "@Role"])
def test_an_unknown_field_is_refused_with_the_fields_and_the_way_to_a_key(field):
    with pytest.raises(InvalidInputError, match="@created_at, ") as refusal:
        Condition(field, "eq", "user")
    assert f"write '@{field}'" in str(refusal.value)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({"@role": "user"}, True),
        ({"@session": None}, True),
        ({"@session": {"$ne": "s"}}, True),
        ({"@session": {"$lt": "z"}}, False),
        ({"@turn": {"$gte": 3}}, True),
        ({"@turn": 3.0}, True),
        ({"@importance": {"$in": [0.25, 0.5]}}, True),
        ({"@text": {"$text": "DOCKER"}}, True),
        ({"@text": {"$contains": "DOCKER"}}, False),
        ({"@tags": {"$any": ["x", "deploy"]}}, True),
        ({"@tags": {"$all": ["deploy", "x"]}}, False),
        ({"@tags": {"$contains": "deploy"}}, True),
        ({"@tags": {"$empty": False}}, True),
        ({"@expires_at": {"$empty": True}}, True),
        ({"@source": {"$empty": True}}, True),
        ({"@created_at": T}, True),
        ({"@created_at": {"$gte": "2026-01-31", "$lt": date(2026, 2, 1)}}, True),
        ({"@created_at": {"$gt": T.timestamp()}}, False),
        ({"@created_at": {"$in": ["2026-01-31T10:30+01:00"]}}, True),
        ({"@accessed_at": {"$lt": T}}, False),
    ],
)
def test_record_fields_are_compared_like_metadata(where, found):
    assert holds(where, role="user", turn=3, tags=("deploy",), source="") is found


@pytest.mark.parametrize(
    ("field", "operator", "value"),
    [
        ("k", "equals", 1),
        ("k", "eq", [1]),
        ("k", "eq", {"a": 1}),
        ("k", "eq", math.nan),
        ("k", "lt", math.inf),
        ("k", "in", [math.nan]),
        ("k", "gt", 10**400),
        ("k", "gt", None),
        ("k", "gt", True),
        ("k", "eq", T),
        ("k", "in", "abc"),
        ("k", "in", 1),
        ("k", "any", [["a"]]),
        ("k", "contains", ["a"]),
        ("k", "text_match", 5),
        ("k", "is_empty", "yes"),
        ("k", "eq", b"x"),
        ("k", "eq", "\ud800"),
        ("k", "in", ["a\0"]),
        ("a\0", "eq", 1),
        (5, "eq", 1),
        ("@turn", "eq", "3"),
        ("@turn", "eq", True),
        ("@role", "eq", 1),
        ("@role", "gt", None),
        ("@role", "contains", None),
        ("@importance", "text_match", "0.5"),
        ("@created_at", "eq", "yesterday"),
        ("@created_at", "lt", None),
        ("@created_at", "contains", "2026"),
        ("@tags", "eq", "deploy"),
        ("@tags", "in", ["deploy"]),
        ("@tags", "any", [1]),
        ("@tags", "contains", None),
    ],
)
def test_a_value_that_can_not_be_compared_is_refused(field, operator, value):
    with pytest.raises(InvalidInputError):
        Condition(field, operator, value)


def test_a_condition_can_be_made_from_its_own_value():
    condition = Condition("@created_at", "in", [1_769_851_800, "2026-01-31"])
    assert Condition(condition.field, condition.operator, condition.value) == condition


def test_a_filter_can_be_hashed():
    assert hash(And([Condition("k", "in", ["a", 1]), Or([]), Not(Condition("k", "eq"))]))


def test_is_empty_needs_no_value():
    assert matches(Condition("k", "is_empty"), make_record())


def test_and_of_nothing_holds_and_or_of_nothing_does_not():
    assert matches(And([]), make_record())
    assert not matches(Or([]), make_record())


@pytest.mark.parametrize("wrong", [None, "lang", {"lang": "zh"}, 1])
def test_a_group_takes_only_filters(wrong):
    with pytest.raises(InvalidInputError, match="parse_where"):
        And([Condition("k", "eq", 1), wrong])
    with pytest.raises(InvalidInputError, match="parse_where"):
        Not(wrong)


def test_a_group_needs_a_list():
    with pytest.raises(InvalidInputError, match="Or takes a list of filters"):
        Or(Condition("k", "eq", 1))


def test_a_filter_may_be_as_deep_as_the_limit_and_no_deeper():
    filter = Condition("k", "eq", 1)
    for _ in range(MAX_DEPTH - 1):
        filter = Not(filter)
    assert matches(filter, make_record({"k": 2}))
    with pytest.raises(InvalidInputError, match=f"at most {MAX_DEPTH}"):
        Not(filter)


def test_a_filter_may_have_as_many_conditions_as_the_limit_and_no_more():
    one = Condition("k", "eq", 1)
    full = Or([And([one] * (MAX_CONDITIONS - 1)), Or([])])
    with pytest.raises(InvalidInputError, match=f"at most {MAX_CONDITIONS}"):
        And([full, one])


def test_the_keys_and_operators_of_a_mapping_all_have_to_hold():
    assert parse_where({"lang": "zh", "stars": {"$gte": 3, "$lt": 5}}) == And(
        [Condition("lang", "eq", "zh"), Condition("stars", "gte", 3), Condition("stars", "lt", 5)]
    )


def test_mappings_nest():
    where = {"$or": [{"lang": "zh"}, {"$not": {"stars": {"$in": [1, 2]}}, "@role": "user"}], "$and": [{"a": 1}]}
    assert parse_where(where) == And(
        [
            Or(
                [
                    Condition("lang", "eq", "zh"),
                    And([Not(Condition("stars", "in", [1, 2])), Condition("@role", "eq", "user")]),
                ]
            ),
            And([Condition("a", "eq", 1)]),
        ]
    )


def test_no_mapping_and_an_empty_one_do_not_restrict():
    assert parse_where(None) is None
    assert parse_where({}) is None


@pytest.mark.parametrize(
    ("where", "found"),
    [({"$or": []}, False), ({"$and": []}, True), ({"$or": [{}]}, True), ({"$not": {}}, False)],
)
def test_an_empty_part_of_a_mapping_keeps_its_logical_meaning(where, found):
    assert holds(where) is found


def test_filters_may_stand_in_a_mapping():
    condition = Condition("a", "eq", 1)
    assert parse_where(condition) is condition
    assert parse_where({"$or": [condition, {"b": 2}]}) == Or([condition, Condition("b", "eq", 2)])


@pytest.mark.parametrize(
    "where",
    [
        {"tags": ["a"]},
        {"lang": {"eq": "zh"}},
        {"lang": {"$eq": "zh", "x": 1}},
        {"lang": {"$like": "z%"}},
        {"lang": {}},
        {"address": {"city": "北京"}},
        {"lang": {5: 1}},
        {"$nor": [{"a": 1}]},
        {"$gt": 5},
        {"$or": {"a": 1}},
        {"$and": ["a"]},
        {"$and": None},
        {"$not": [{"a": 1}]},
        {"$not": None},
        {5: 1},
        [("a", 1)],
        "lang = 'zh'",
        lambda record: True,
    ],
)
def test_a_mapping_that_means_nothing_is_refused(where):
    with pytest.raises(InvalidInputError):
        parse_where(where)


def test_an_unknown_operator_is_answered_with_those_there_are():
    with pytest.raises(InvalidInputError, match=r"\$like.*\$eq, \$ne, .*\$empty"):
        parse_where({"lang": {"$like": "z%"}})


def test_a_mapping_nested_without_end_is_refused():
    where = {}
    where["$not"] = where
    with pytest.raises(InvalidInputError, match="nested"):
        parse_where(where)
