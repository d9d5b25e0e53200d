"""Frames: keyword scores against the plain formula, and a block that is followed against one that is built afresh."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from row_support import TERMS, columns, count_term, make_row, measure_length, queries, terms

from recall_core.blocks import build_block
from recall_core.bm25 import K1, B, Corpus, highest_score
from recall_core.frame import make_frame, no_keywords, score_keywords
from recall_core.surroundings import find_surroundings

corpora = st.builds(
    Corpus,
    chunks=st.integers(1, 10_000),
    mean_length=st.floats(0, 500),
    counts=st.dictionaries(terms, st.integers(0, 10_000)),
)
fewer = examples(max_examples=40)
CORPUS = Corpus(100, 10.0, {"docker": 3, "deploy": 60})


def frame_of(rows):
    return make_frame([build_block(rows)])


def score_one(query, corpus, **fields):
    """Return the BM25 of one chunk."""
    return float(score_keywords(frame_of([make_row(1, **fields)]), query, query, corpus).bm25[0])


def reference(row, query, corpus):
    """BM25 as in the paper, term by term, on weighted frequencies."""
    norm = K1 * (1 - B + B * measure_length(row) / max(corpus.mean_length, 1))
    total = 0.0
    for term in query:
        n = min(corpus.counts.get(term, 0), corpus.chunks)
        idf = math.log(1 + (corpus.chunks - n + 0.5) / (n + 0.5))
        total += idf * count_term(row, term) * (K1 + 1) / (count_term(row, term) + norm)
    return total


# Keyword scores


@given(st.lists(columns, min_size=1, max_size=6), queries, corpora)
def test_scores_are_those_of_the_reference(texts, query, corpus):
    rows = [make_row(number, **fields) for number, fields in enumerate(texts)]
    scores = score_keywords(frame_of(rows), query, query, corpus)
    expected = np.array([reference(row, query, corpus) for row in rows])
    assert scores.bm25 == pytest.approx(expected, rel=1e-5)
    assert scores.coverage == pytest.approx(expected / highest_score(query, corpus), rel=1e-5)


@given(columns, queries, corpora)
def test_a_coverage_lies_between_0_and_1(fields, query, corpus):
    coverage = score_keywords(frame_of([make_row(1, **fields)]), query, query, corpus).coverage
    assert 0 <= coverage[0] <= 1


@given(columns, queries, corpora)
def test_a_score_is_above_0_just_where_a_term_of_the_query_occurs(fields, query, corpus):
    row = make_row(1, **fields)
    assert (score_one(query, corpus, **fields) > 0) == any(count_term(row, term) for term in query)


@given(columns, queries, corpora, terms, st.sampled_from(["words", "labels"]))
def test_another_occurrence_never_lowers_a_score(fields, query, corpus, term, name):
    more = {**fields, name: f"{fields[name]} {term}".strip()}
    assert score_one(query, corpus, **more) >= score_one(query, corpus, **fields)


@given(columns, queries, corpora, terms)
def test_a_repeated_term_in_a_text_of_the_same_length_never_scores_less(fields, query, corpus, term):
    padded, repeated = ({**fields, "latin": f"{fields['latin']} {word}".strip()} for word in ("padding", term))
    assert score_one(query, corpus, **repeated) >= score_one(query, corpus, **padded)


@given(columns, queries, corpora)
def test_the_order_of_the_terms_does_not_matter(fields, query, corpus):
    assert score_one(query, corpus, **fields) == pytest.approx(score_one(query[::-1], corpus, **fields))


def test_of_two_texts_with_the_term_the_shorter_one_scores_more():
    short, long = (score_one(["docker"], CORPUS, latin="docker" + " word" * more) for more in (1, 40))
    assert short > long


def test_a_term_in_the_text_counts_more_than_in_a_label():
    assert score_one(["docker"], CORPUS, latin="docker") > score_one(["docker"], CORPUS, latin="x", labels="docker")


def test_the_share_is_of_what_the_whole_query_could_reach():
    scores = score_keywords(frame_of([make_row(1, latin="docker")]), ["docker"], ["docker", "unheard"], CORPUS)
    assert scores.coverage[0] == pytest.approx(scores.bm25[0] / highest_score(["docker", "unheard"], CORPUS))


def test_an_empty_corpus_gives_finite_scores():
    assert math.isfinite(score_one(["docker"], Corpus(0, 0.0, {}), latin="docker"))


def test_a_query_without_terms_scores_nothing():
    scores = no_keywords(frame_of([make_row(1, latin="docker"), make_row(2)]))
    assert (scores.bm25.tolist(), scores.coverage.tolist()) == ([0, 0], [0, 0])


# What a frame knows


@given(st.lists(columns, max_size=8))
def test_the_corpus_of_a_frame_is_that_of_a_plain_count(texts):
    rows = [make_row(number, **fields) for number, fields in enumerate(texts)]
    corpus = frame_of(rows).describe(TERMS)
    assert corpus.chunks == len(rows)
    assert corpus.counts == {term: sum(count_term(row, term) > 0 for row in rows) for term in TERMS}
    assert corpus.mean_length == pytest.approx(sum(map(measure_length, rows)) / max(len(rows), 1))


def test_sessions_are_ordered_by_turn_then_time_then_key():
    fields = [(9, 3), (1, 9), (1, 4), (1, 4)]
    rows = [make_row(key, session="s", place=place, created_at=at) for key, (place, at) in enumerate(fields, start=1)]
    assert frame_of([*rows, make_row(9)]).order.tolist() == [2, 3, 1, 0]


def test_a_session_of_the_same_name_in_another_scope_is_another_session():
    rows = [make_row(1, session="s"), make_row(2, session="s", scope="other"), make_row(3), make_row(4, session="s")]
    assert frame_of(rows).sessions.tolist() == [0, 1, -1, 0]


# Followed


@st.composite
def records(draw, keys):
    """Rows by record key: one or two chunks each."""
    rows = {}
    for key in keys:
        fields = {
            "session": draw(st.sampled_from([None, "one", "two"])),
            "place": draw(st.integers(0, 3)),
            "created_at": draw(st.integers(0, 3)),
            "expires_at": draw(st.sampled_from([None, 50])),
            "asks": draw(st.integers(0, 1)),
        }
        version = draw(st.integers(0, 99))
        rows[key] = [
            make_row(1000 * key + 2 * version + place, key, tokens=draw(st.integers(0, 99)), **fields, **texts)
            for place, texts in enumerate(draw(st.lists(columns, min_size=1, max_size=2)))
        ]
    return rows


@st.composite
def histories(draw):
    """Records as they were, and as they are now; the keys of those that were added, changed or deleted."""
    before = draw(records(draw(st.sets(st.integers(1, 9)))))
    changed = draw(st.sets(st.integers(1, 12)))
    left = {key: rows for key, rows in before.items() if key not in changed}
    now = left | draw(records(draw(st.sets(st.sampled_from(sorted(changed)))) if changed else []))
    return before, now, changed


def list_rows(records):
    return [row for key in sorted(records) for row in records[key]]


def describe(frame):
    """Return all that a frame says of its living records, by record id."""
    visible = frame.alive[frame.starts]
    around = find_surroundings(frame.order, frame.sessions, visible, visible)
    members = {}
    for place in np.flatnonzero(visible).tolist():
        members.setdefault(frame.sessions[place], []).append(frame.record_ids[place])
    ids = [*frame.record_ids, None]
    return {
        frame.record_ids[place]: (
            int(frame.record_keys[place]),
            [ids[beside] for beside in around.beside[:, place].tolist()],
            int(around.sizes[place]),
            None if frame.sessions[place] < 0 else sorted(members[frame.sessions[place]]),
            (int(frame.created[place]), int(frame.expires[place]), bool(frame.asks[place])),
        )
        for place in np.flatnonzero(visible).tolist()
    }


def chunks_of(frame, query):
    """Return the tokens and the keyword score of each living chunk."""
    scores = score_keywords(frame, query, query, frame.describe(query))
    return {
        int(frame.chunk_keys[row]): (frame.record_ids[frame.records[row]], int(frame.tokens[row]), scores.bm25[row])
        for row in np.flatnonzero(frame.alive)
    }


@fewer
@given(histories(), queries)
def test_a_block_with_what_has_changed_is_as_good_as_one_built_afresh(history, query):
    before, now, changed = history
    beside = build_block(list_rows({key: rows for key, rows in now.items() if key in changed}))
    followed = make_frame([build_block(list_rows(before)), beside], np.array(sorted(changed), dtype=np.int64))
    fresh = frame_of(list_rows(now))
    assert describe(followed) == describe(fresh)
    assert followed.describe(TERMS).counts == fresh.describe(TERMS).counts
    assert (followed.chunks, followed.mean_length) == (fresh.chunks, pytest.approx(fresh.mean_length))
    scored, expected = chunks_of(followed, query), chunks_of(fresh, query)
    assert {key: row[:2] for key, row in scored.items()} == {key: row[:2] for key, row in expected.items()}
    assert [scored[key][2] for key in expected] == pytest.approx([row[2] for row in expected.values()], rel=1e-5)


@fewer
@given(histories())
def test_rows_that_count_no_more_hold_no_term(history):
    before, now, changed = history
    beside = build_block(list_rows({key: rows for key, rows in now.items() if key in changed}))
    frame = make_frame([build_block(list_rows(before)), beside], np.array(sorted(changed), dtype=np.int64))
    for term in TERMS:
        assert frame.alive[frame.find(term)[0]].all()
