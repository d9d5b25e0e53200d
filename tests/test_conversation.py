"""What the conversation adds to a record: against plain counts, and nothing from who is not there to be seen."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_support import columns, count_term, make_row, measure_length, queries

from recall_core.blocks import build_block
from recall_core.bm25 import K1, B, Corpus
from recall_core.chunk_rows import QUESTION_TOKENS
from recall_core.conversation import (
    AFTER,
    ANSWERED,
    BEFORE,
    CONTEXT_TOKENS,
    FURTHER,
    LENGTH_SHARE,
    MEANING_SHARE,
    QUESTION_PENALTY,
    SESSION_SHARE,
    SESSION_SIZE,
    SPEAKER_SHARE,
    Own,
    cover_sessions,
    cover_window,
    find_answers,
    find_speakers,
    spread_context,
    weigh_turns,
)
from recall_core.frame import make_frame, no_keywords, score_keywords
from recall_core.surroundings import Surroundings, find_surroundings

NOTHING = ["unheard"]


@st.composite
def talks(draw):
    """Rows of records in up to three sessions or none, and who is visible."""
    texts = draw(st.lists(columns, min_size=1, max_size=9))
    session = st.sampled_from([None, "one", "two", "three"])
    rows = [
        make_row(
            key,
            session=draw(session),
            tokens=draw(st.integers(0, 200)),
            asks=draw(st.integers(0, 1)),
            place=key,
            **fields,
        )
        for key, fields in enumerate(texts, start=1)
    ]
    return rows, np.array(draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))


def frame_of(rows):
    return make_frame([build_block(rows)])


def score(frame, query):
    return score_keywords(frame, query, query, frame.describe(query))


def surround(frame, visible):
    return find_surroundings(frame.order, frame.sessions, visible, visible)


def spread(rows, query=NOTHING, *, meaning=None, visible=None, weight=0.5, around=None):
    """Return the context of each record."""
    frame = frame_of(rows)
    visible = np.ones(len(rows), dtype=bool) if visible is None else np.array(visible)
    keyword = score(frame, query)
    coverage = keyword.coverage.astype(np.float64)
    meaning = np.zeros(len(rows)) if meaning is None else np.array(meaning, dtype=np.float64)
    own = Own(coverage, meaning, weight * coverage + (1 - weight) * meaning, frame.tokens)
    around = around or surround(frame, visible)
    window = cover_window(frame, keyword, visible, around)
    return spread_context(frame, keyword, own, window, visible, around, np.full(len(rows), weight))


def talk(size, **fields):
    """Rows of records that follow each other in one session."""
    return [make_row(key, session="talk", place=key, **fields) for key in range(1, size + 1)]


def idf(total, holding):
    return Corpus(total, 0.0, {"t": holding}).idf("t")


# The window


@given(talks(), queries)
def test_a_window_covers_each_term_as_its_best_turn_does(talks, query):
    rows, visible = talks
    frame = frame_of(rows)
    keyword, around = score(frame, query), surround(frame, visible)
    found = cover_window(frame, keyword, visible, around)
    if not len(frame.order):
        assert (found == 0).all()
        return
    answers = find_answers(frame, visible, around)
    corpus = frame.describe(query)

    def share(place, term):
        if place < 0 or not visible[place]:
            return 0.0
        norm = K1 * (1 - B + B * measure_length(rows[place]) / max(corpus.mean_length, 1))
        return count_term(rows[place], term) / (count_term(rows[place], term) + norm)

    for place in range(len(rows)):
        parts = {-1: ANSWERED if answers[place] else BEFORE, 1: AFTER, -2: FURTHER, 2: FURTHER}
        covered = sum(
            corpus.idf(term)
            * max(share(place, term), *(part * share(around.at(offset)[place], term) for offset, part in parts.items()))
            for term in query
        )
        assert found[place] == pytest.approx(covered / sum(map(corpus.idf, query)), rel=1e-5)


@given(talks(), queries)
def test_a_session_is_covered_as_one_text_among_sessions(talks, query):
    rows, visible = talks
    frame = frame_of(rows)
    inside = visible & (frame.sessions >= 0)
    if not inside.any():
        return
    found = cover_sessions(frame, score(frame, query), inside)
    members = {}
    for row, session in zip(rows, frame.sessions.tolist(), strict=True):
        if inside[rows.index(row)]:
            members.setdefault(session, []).append(row)
    lengths = {session: sum(map(measure_length, texts)) for session, texts in members.items()}
    known = [length for length in lengths.values() if length > 0]
    mean = sum(known) / max(len(known), 1)
    counts = {term: {s: sum(count_term(row, term) for row in texts) for s, texts in members.items()} for term in query}
    weights = {term: idf(len(known), sum(count > 0 for count in counts[term].values())) for term in query}
    for session in members:
        norm = K1 * (1 - B + B * lengths[session] / max(mean, 1))
        covered = sum(weights[term] * counts[term][session] / (counts[term][session] + norm) for term in query)
        assert found[session] == pytest.approx(covered / sum(weights.values()), rel=1e-5)


# Context


@given(talks())
def test_an_answer_stands_right_behind_a_visible_question(talks):
    rows, visible = talks
    frame = frame_of(rows)
    answers = find_answers(frame, visible, surround(frame, visible))
    before: dict[str, bool] = {}
    for row, seen, answer in zip(rows, visible, answers, strict=True):
        if row.session is not None and seen:
            assert answer == before.get(row.session, False)
            before[row.session] = bool(row.asks)
        else:
            assert not answer


def test_neighbours_add_their_share_of_meaning():
    context = spread(talk(5), meaning=[0.1, 0.2, 0.0, 0.3, 0.5], weight=0.0)
    session = SESSION_SHARE * 0.5
    beside = BEFORE * 0.2 + AFTER * 0.3 + FURTHER * (0.1 + 0.5)
    assert context[2] == pytest.approx(MEANING_SHARE * beside + session)


def test_an_answer_takes_more_from_the_question_before_it():
    asking, telling = (
        spread([make_row(1, session="talk", asks=asks, place=1), *talk(2)[1:]], meaning=[0.5, 0.0]) for asks in (1, 0)
    )
    assert asking[1] > telling[1]


@given(talks(), queries)
def test_a_record_outside_of_sessions_has_no_context(talks, query):
    rows, visible = talks
    context = spread(rows, query, meaning=[0.5] * len(rows), visible=visible)
    assert all(added == 0 for row, added in zip(rows, context, strict=True) if row.session is None)


@pytest.mark.parametrize("others", [[], [make_row(2)], [make_row(2, session="other"), make_row(3, session="other")]])
def test_a_record_alone_in_its_session_has_no_context(others):
    rows = [make_row(1, session="talk", latin="docker"), *others]
    assert spread(rows, ["docker"], meaning=[0.5] * len(rows))[0] == pytest.approx(0, abs=1e-7)


@given(talks(), queries)
def test_who_is_not_visible_gives_and_gets_nothing(talks, query):
    rows, visible = talks
    quiet = [1.0 if seen else 0.0 for seen in visible]
    one = spread(rows, query, meaning=quiet, visible=visible)
    loud = spread(rows, query, meaning=[1.0] * len(rows), visible=visible)
    assert (one[~visible] == 0).all()
    assert one == pytest.approx(loud)


@given(talks(), queries)
def test_without_negative_evidence_context_only_adds(talks, query):
    rows, visible = talks
    assert (spread(rows, query, meaning=[0.2] * len(rows), visible=visible) >= -1e-6).all()


@given(talks(), queries, st.randoms())
def test_the_order_of_the_records_does_not_matter_to_their_context(talks, query, random):
    rows, visible = talks
    meaning = np.linspace(0, 0.9, len(rows))
    moved = list(range(len(rows)))
    random.shuffle(moved)
    renumbered = [rows[place]._replace(chunk_key=key, record_key=key) for key, place in enumerate(moved)]
    context = spread(renumbered, query, meaning=meaning[moved], visible=visible[moved])
    assert context == pytest.approx(spread(rows, query, meaning=meaning, visible=visible)[moved], abs=1e-9)


def test_long_records_take_less_context():
    lengths = (1, CONTEXT_TOKENS, 2 * CONTEXT_TOKENS, 10 * CONTEXT_TOKENS)
    contexts = [
        spread([make_row(1, session="talk", tokens=tokens, place=1), *talk(2)[1:]], meaning=[0.1, 0.8])[0]
        for tokens in lengths
    ]
    assert contexts[0] == contexts[1] > 0
    assert contexts[2:] == pytest.approx([contexts[0] / 2, contexts[0] / 10])


def test_a_long_session_says_less_about_each_of_its_records():
    apart = np.full((4, 2), -1, dtype=np.int32)

    def context(size):
        around = Surroundings(apart, np.zeros(2, dtype=np.int32), np.full(2, size, dtype=np.int32))
        return spread(talk(2), meaning=[0.0, 0.8], around=around)[0]

    assert context(2) == context(SESSION_SIZE) > 0
    assert context(10 * SESSION_SIZE) == pytest.approx(context(2) / 10)


def test_a_query_without_terms_leaves_what_the_vectors_say():
    frame = frame_of(talk(2))
    visible, zeros = np.ones(2, dtype=bool), np.zeros(2)
    own = Own(zeros, np.array([0.0, 0.8]), np.array([0.0, 0.8]), frame.tokens)
    context = spread_context(frame, no_keywords(frame), own, zeros, visible, surround(frame, visible), zeros)
    assert context[0] == pytest.approx(MEANING_SHARE * AFTER * 0.8 + SESSION_SHARE * 0.8)


# Turns


def weigh(*, speaker=False, **fields):
    frame = frame_of([make_row(1, **{"session": "talk", "tokens": CONTEXT_TOKENS, **fields})])
    return float(weigh_turns(frame, frame.tokens, np.array([speaker]))[0])


def test_a_full_turn_that_asks_nothing_neither_gains_nor_loses():
    assert weigh() == 0
    assert weigh(tokens=10 * CONTEXT_TOKENS) == 0


def test_a_short_question_loses_the_whole_penalty():
    for tokens in (1, QUESTION_TOKENS[0]):
        assert weigh(asks=1, tokens=tokens) - weigh(tokens=tokens) == pytest.approx(-QUESTION_PENALTY)


def test_the_penalty_fades_with_the_length():
    lost = [weigh(tokens=tokens) - weigh(tokens=tokens, asks=1) for tokens in range(1, QUESTION_TOKENS[1] + 5)]
    assert all(one >= other - 1e-9 for one, other in pairwise(lost))
    assert lost[-1] == 0
    assert lost[sum(QUESTION_TOKENS) // 2 - 1] == pytest.approx(QUESTION_PENALTY / 2)


def test_a_short_turn_loses_by_the_logarithm_of_its_length():
    assert weigh(tokens=6) == pytest.approx(LENGTH_SHARE * math.log(6 / CONTEXT_TOKENS))
    assert weigh(tokens=0) == weigh(tokens=1)


def test_the_speaker_whom_the_question_names_gains():
    assert weigh(speaker=True) - weigh() == pytest.approx(SPEAKER_SHARE)


@pytest.mark.parametrize("fields", [{"asks": 1}, {"tokens": 1}, {"speaker": True}], ids=str)
def test_outside_of_sessions_nothing_is_gained_or_lost(fields):
    assert weigh(session=None, **fields) == 0


def test_speakers_are_those_of_exactly_this_name():
    assert find_speakers(["Anna", None, "anna", "Bob", "Anna"], "Anna").tolist() == [True, False, False, False, True]
    assert not find_speakers(["Anna", None], None).any()
