import json
import math
from collections import UserDict
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core.errors import InvalidInputError
from recall_core.text.clean import clean_json, clean_text

SURROGATES = st.characters(categories=["Cs"])
ANY_TEXT = st.text(st.one_of(st.characters(), SURROGATES, st.just("\0")))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_each_nul_and_lone_surrogate_is_replaced_visibly():
    assert clean_text("a\0b\ud83d\ud83d") == "a\ufffdb\ufffd\ufffd"


def test_everything_else_is_left_alone():
    text = "表妹\r\n\t\x01\x7f\u200b🚀 ＡＰＩ \ufeff\U0010ffff naïve"
    assert clean_text(text) == text


@given(ANY_TEXT)
def test_clean_text_can_be_encoded_and_keeps_its_length(text):
    cleaned = clean_text(text)
    assert "\0" not in cleaned
    assert len(cleaned.encode().decode()) == len(text)


def test_bytes_are_no_text():
    with pytest.raises(InvalidInputError, match="a text is a string"):
        clean_text(b"abc")


@given(JSON.filter(lambda value: "\0" not in json.dumps(value) and "\\u0000" not in json.dumps(value)))
def test_json_without_bad_characters_stays_as_it_is(value):
    assert clean_json(value) == value


def test_strings_and_keys_are_cleaned_at_every_depth():
    assert clean_json({"a\0": ["\ud800", {"b": ("c\0",)}]}) == {"a\ufffd": ["\ufffd", {"b": ["c\ufffd"]}]}


def test_other_mappings_become_dicts():
    assert clean_json(MappingProxyType({"a": UserDict(b=1)})) == {"a": {"b": 1}}


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, {1: "a"}, {None: 1}, {"a": object()}, [b"bytes"], {1, 2}, 1 + 2j, 10**5000],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises(InvalidInputError):
        clean_json(value)


def test_the_message_names_the_place():
    with pytest.raises(InvalidInputError, match=r"a\.b\[1\] is nan"):
        clean_json({"a": {"b": [1, math.nan]}})


def test_a_value_that_contains_itself_is_refused_at_once():
    loop: list = []
    loop += [loop] * 50
    with pytest.raises(InvalidInputError, match="contains itself"):
        clean_json(loop)


def test_a_value_used_twice_is_no_cycle():
    shared = ["a"]
    assert clean_json([shared, shared]) == [["a"], ["a"]]


def test_nesting_is_limited_to_64_levels():
    def nest(depth):
        value: object = 1
        for _ in range(depth):
            value = [value]
        return value

    assert clean_json(nest(64)) == nest(64)
    with pytest.raises(InvalidInputError, match="deeper than 64"):
        clean_json(nest(65))


def test_two_keys_that_clean_to_one_are_refused():
    with pytest.raises(InvalidInputError, match="two keys"):
        clean_json({"\0": 1, "\ufffd": 2})
