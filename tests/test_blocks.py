"""Chunks as columns: postings and lengths against a plain count, records gathered from their chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_support import TERMS, columns, count_term, make_row, measure_length

from recall_core.blocks import NEVER, build_block, build_postings
from recall_core.bm25 import WEIGHTS

rows_of_terms = st.lists(columns, max_size=12).map(
    lambda rows: [make_row(number, **fields) for number, fields in enumerate(rows, start=1)]
)


def found(postings, term):
    rows, frequencies = postings.find(term)
    return dict(zip(rows.tolist(), frequencies.tolist(), strict=True))


# Postings


@given(rows_of_terms)
def test_postings_are_those_of_a_plain_count(rows):
    postings = build_block(rows).postings
    for term in TERMS:
        counted = {number: count_term(row, term) for number, row in enumerate(rows)}
        assert found(postings, term) == pytest.approx({number: count for number, count in counted.items() if count})


@given(rows_of_terms)
def test_the_rows_of_a_term_ascend(rows):
    postings = build_block(rows).postings
    for term in TERMS:
        assert (np.diff(postings.find(term)[0]) > 0).all()


@given(rows_of_terms, st.sets(st.sampled_from([*TERMS, "unheard"])).map(frozenset))
def test_with_given_terms_these_alone_are_indexed(rows, terms):
    some, all_ = build_block(rows, terms).postings, build_block(rows).postings
    for term in [*TERMS, "unheard"]:
        assert found(some, term) == (found(all_, term) if term in terms else {})


def test_each_column_counts_by_its_weight():
    postings = build_postings([("a a", "a", "a a a", "a")])
    assert found(postings, "a") == pytest.approx(
        {0: 2 * WEIGHTS.latin + WEIGHTS.grams + 3 * WEIGHTS.words + WEIGHTS.labels}
    )


def test_a_part_of_another_term_is_no_occurrence():
    postings = build_block([make_row(1, latin="dockerfile c++")]).postings
    assert (found(postings, "docker"), found(postings, "c")) == ({}, {})


def test_a_term_that_occurs_nowhere_has_no_rows():
    assert found(build_block([make_row(1, latin="docker")]).postings, "unheard") == {}


def test_no_chunks_make_an_empty_block():
    block = build_block([])
    assert (len(block), len(block.starts), found(block.postings, "docker")) == (0, 0, {})


# Chunks and records


@given(rows_of_terms)
def test_lengths_are_those_of_a_plain_count(rows):
    assert build_block(rows).lengths.tolist() == [measure_length(row) for row in rows]


@given(st.lists(st.integers(1, 4), max_size=8))
def test_each_record_starts_at_its_first_chunk(sizes):
    rows = [
        make_row(10 * record + place, record) for record, size in enumerate(sizes, start=1) for place in range(size)
    ]
    block = build_block(rows)
    assert block.starts.tolist() == [sum(sizes[:place]) for place in range(len(sizes))]
    assert block.record_keys.tolist() == list(range(1, len(sizes) + 1))
    assert block.chunk_keys.tolist() == [row.chunk_key for row in rows]
    assert block.record_ids == tuple(f"r{record:04}" for record in range(1, len(sizes) + 1))


def test_what_is_known_of_a_record_stands_in_its_columns():
    fields = {"session": "talk", "place": 7, "created_at": -5, "expires_at": 99, "asks": 1}
    block = build_block([make_row(1, **fields), make_row(2), make_row(3, scope="other", session="talk")])
    assert block.sessions == (("user", "talk"), None, ("other", "talk"))
    assert (block.places[0], block.created[0], block.expires[0], block.asks[0]) == (7, -5, 99, True)
    assert (block.expires[1], block.asks[1]) == (NEVER, False)


def test_equal_texts_have_equal_hashes_and_others_do_not():
    hashes = build_block([make_row(1, hash=b"a" * 16), make_row(2, hash=b"a" * 16), make_row(3)]).hashes
    assert hashes[0] == hashes[1] != hashes[2]
