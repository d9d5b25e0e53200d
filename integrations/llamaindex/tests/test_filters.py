"""Filters mean what LlamaIndex's own function for them says, and are checked as they are made."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from conformance import C, O, f, fs
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from recall_core import Record, derive_name
from recall_core.filters import matches
from recall_llamaindex.filters import to_filter

NOW = datetime(2026, 1, 31, tzinfo=UTC)
EQUALITY, ORDER, SETS = (O.EQ, O.NE), (O.GT, O.GTE, O.LT, O.LTE), (O.IN, O.NIN)
numbers = st.integers(0, 3) | st.sampled_from([0.0, 0.5, 1.0])
words = st.text("abB", max_size=3)


def record(metadata, source=None):
    return Record(id="r", text="", metadata=metadata, source=source, created_at=NOW, updated_at=NOW)


def holds(filters, metadata, source=None) -> bool:
    filter = to_filter(filters)
    return filter is None or matches(filter, record(metadata, source))


def holds_upstream(filters, metadata) -> bool:
    """Say what LlamaIndex's function says; it can't nest filters, so that is done here."""
    if isinstance(filters, MetadataFilter):
        return build_metadata_filter_fn(lambda _: metadata, MetadataFilters(filters=[filters]))("r")
    if not filters.filters:
        return True
    held = [holds_upstream(part, metadata) for part in filters.filters]
    return {None: all, C.AND: all, C.OR: any, C.NOT: lambda parts: not any(parts)}[filters.condition](held)


def conditions(key, values, operators):
    """Return filters for one key whose stored values are of the same type as the given ones."""
    one = st.builds(f, st.just(key), st.sampled_from([op for op in operators if op in (*EQUALITY, *ORDER)]), values)
    some = st.builds(f, st.just(key), st.sampled_from(SETS), st.lists(values, max_size=3))
    return one | some | st.just(f(key, O.IS_EMPTY, None))


def list_conditions(key, values):
    some = st.builds(f, st.just(key), st.just(O.ANY), st.lists(values, max_size=3))
    all_of = st.builds(f, st.just(key), st.just(O.ALL), st.lists(values, min_size=1, max_size=3))
    return some | all_of | st.builds(f, st.just(key), st.just(O.CONTAINS), values) | st.just(f(key, O.IS_EMPTY, None))


leaves = st.one_of(
    conditions("number", numbers, (*EQUALITY, *ORDER)),
    conditions("flag", st.integers(0, 1), EQUALITY),
    conditions("word", words, (*EQUALITY, *ORDER)),
    st.builds(f, st.just("word"), st.sampled_from([O.TEXT_MATCH, O.TEXT_MATCH_INSENSITIVE]), words),
    list_conditions("words", words),
    list_conditions("numbers", numbers),
)
filters = st.recursive(
    leaves,
    lambda parts: st.builds(
        lambda held, condition: MetadataFilters(filters=held, condition=condition),
        st.lists(parts, max_size=3),
        st.sampled_from([None, C.AND, C.OR, C.NOT]),
    ),
    max_leaves=6,
).map(lambda made: made if isinstance(made, MetadataFilters) else fs(made))
metadata = st.fixed_dictionaries(
    {},
    optional={
        "number": st.none() | numbers,
        "flag": st.booleans(),
        "word": st.none() | words,
        "words": st.none() | st.lists(words, max_size=3),
        "numbers": st.lists(numbers, max_size=3),
    },
)


@given(filters, metadata)
def test_filters_hold_where_those_of_llamaindex_do(filters, metadata):
    assert holds(filters, metadata) == holds_upstream(filters, metadata)


@pytest.mark.parametrize(
    "operator", [O.EQ, O.GT, O.IN, O.ANY, O.ALL, O.CONTAINS, O.TEXT_MATCH, O.TEXT_MATCH_INSENSITIVE]
)
@pytest.mark.parametrize("stored", [7, ["7", "x"], {"7": 1}, True])
def test_a_value_of_another_type_matches_nothing(operator, stored):
    value = ["7"] if operator in (O.IN, O.ANY, O.ALL) else "7"
    found = operator in (O.ANY, O.ALL, O.CONTAINS) and isinstance(stored, list)
    assert holds(fs(f("key", operator, value)), {"key": stored}) == found


@pytest.mark.parametrize("stored", [True, [True]])
def test_one_stands_for_true_since_a_filter_can_hold_no_boolean(stored):
    operator = O.CONTAINS if isinstance(stored, list) else O.EQ
    assert holds(fs(f("done", operator, 1)), {"done": stored})
    assert not holds(fs(f("done", operator, 0)), {"done": stored})


@pytest.mark.parametrize(("operator", "found"), [(O.EQ, False), (O.NE, True)])
@pytest.mark.parametrize("stored", [{}, {"key": None}, {"key": "x"}])
def test_none_equals_nothing(operator, found, stored):
    assert holds(fs(f("key", operator, None)), stored) == found


def test_of_no_values_all_hold_where_there_is_something():
    assert holds(fs(f("tags", O.ALL, [])), {"tags": ["a"]})
    assert not holds(fs(f("tags", O.ALL, [])), {})


def test_a_key_that_looks_like_a_field_of_a_record_is_metadata():
    assert holds(fs(f("@role", O.EQ, "x")), {"@role": "x"})
    assert not holds(fs(f("@role", O.EQ, "x")), {})


@pytest.mark.parametrize("key", ["ref_doc_id", "doc_id", "document_id"])
def test_a_nodes_document_is_asked_for_unless_its_metadata_has_that_name(key):
    assert holds(fs(f(key, O.EQ, "a")), {}, source="a")
    assert holds(fs(f(key, O.IN, ["a", "b"])), {}, source="b")
    assert holds(fs(f(key, O.NE, "a")), {}, source="b")
    assert holds(fs(f(key, O.EQ, "mine")), {key: "mine"}, source="a")
    assert not holds(fs(f(key, O.EQ, "a")), {key: "mine"}, source="a")
    assert not holds(fs(f(key, O.NE, "mine")), {key: "mine"}, source="a")
    assert holds(fs(f(key, O.GT, 3)), {key: 4}, source="a")
    assert holds(fs(f(key, O.IS_EMPTY, None)), {})
    assert not holds(fs(f(key, O.IS_EMPTY, None)), {}, source="a")


@pytest.mark.parametrize("metadata", [{}, {"x": None}, {"x": 1}])
def test_nothing_is_among_no_value(metadata):
    assert not holds(fs(f("x", O.IN, None)), metadata)
    assert holds(fs(f("x", O.NIN, None)), metadata)


def test_the_id_of_a_document_may_be_of_any_length():
    long = "https://example.org/" + "x" * 600
    assert holds(fs(f("doc_id", O.EQ, long)), {}, source=derive_name(long))


@pytest.mark.parametrize(
    ("filter", "said"),
    [
        (f("key", O.GT, None), "key: gt takes"),
        (f("key", O.GT, ["a"]), "key: gt takes"),
        (f("key", O.TEXT_MATCH, 3), "key: text_match takes"),
        (f("key", O.TEXT_MATCH_INSENSITIVE, 3), "key: text_match takes"),
        (f("key", O.EQ, ["a"]), "key: eq takes"),
    ],
)
def test_a_value_that_can_not_be_compared_is_refused(filter, said):
    with pytest.raises(ValueError, match=said):
        to_filter(fs(filter))
