"""What the conversation around a record adds to what it says itself.

In a conversation an answer often stands beside the words that it answers. The terms and gains are in docs/ranking.md.
Arrays have an entry for each record, whose best chunk speaks for it; records without a session get nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .bm25 import K1, B, Corpus
from .chunk_rows import QUESTION_TOKENS
from .frame import Frame, KeywordScores
from .fusion import Flags, Scores
from .surroundings import Places, Surroundings

BEFORE, AFTER, FURTHER = 0.25, 0.5, 0.25  # share of a neighbouring turn's words: one before, one after, two away
ANSWERED = 1.0  # share of its words, if the turn before asks: an answer leaves out what the question has said
MEANING_SHARE = 0.5  # meanings count half of that
SESSION_SHARE = 0.4  # of the best evidence in the session …
SESSION_SIZE = 40  # … in sessions up to so many records; longer ones say less about each of them
SESSION_TEXT = 0.3  # of how well the whole session covers the words, as one text
CONTEXT_TOKENS = 60  # records up to this length take all of their context; longer ones carry their own
LENGTH_SHARE = 0.04  # a short turn says little: so much for each factor of e below that length
QUESTION_PENALTY = 0.1  # a short question rarely holds the fact that is asked for
SPEAKER_SHARE = 0.05  # of the one speaker whom the question names


@dataclass(frozen=True, slots=True)
class Own:
    """What records say themselves: keyword coverage, meaning and both, weighted; the length of each best chunk."""

    coverage: Scores
    meaning: Scores
    evidence: Scores
    tokens: NDArray[np.int32]


def find_answers(frame: Frame, visible: Flags, around: Surroundings) -> Flags:
    """Return which records stand behind a question."""
    return np.asarray(_shift(frame.asks & visible, around, -1) > 0)


def spread_context(
    frame: Frame, keyword: KeywordScores, own: Own, window: Scores, visible: Flags, around: Surroundings, weight: Scores
) -> Scores:
    """Return what the neighbouring turns and the session add to each record's evidence.

    `window` is what `cover_window` gave, `weight` the keywords' share in each. Only `visible` records give or get any.
    """
    inside = visible & (around.sessions >= 0)
    if not inside.any():
        return np.zeros(len(visible))
    before = np.where(find_answers(frame, visible, around), ANSWERED, BEFORE)
    meanings = np.where(visible, own.meaning, 0.0)
    meaning = before * _shift(meanings, around, -1) + AFTER * _shift(meanings, around, 1)
    meaning += FURTHER * (_shift(meanings, around, -2) + _shift(meanings, around, 2))
    best = np.zeros(int(around.sessions.max()) + 1)
    np.maximum.at(best, around.sessions[inside], own.evidence[inside])
    share = SESSION_SHARE * np.minimum(1.0, SESSION_SIZE / np.maximum(around.sizes, 1))
    texts = cover_sessions(frame, keyword, inside)
    context = weight * (window - own.coverage) + (1.0 - weight) * MEANING_SHARE * meaning
    session = share * best[around.sessions] + SESSION_TEXT * weight * texts[around.sessions]
    context += np.where(around.sizes > 1, session, 0.0)  # a record alone in its session has no context
    return np.asarray(np.where(inside, gate_context(own.tokens) * context, 0.0), dtype=np.float64)


def gate_context(tokens: NDArray[np.int32]) -> Scores:
    """Return the share of its context that a text of so many tokens takes."""
    return np.asarray(np.minimum(1.0, CONTEXT_TOKENS / np.maximum(tokens, 1)), dtype=np.float64)


def cover_window(frame: Frame, keyword: KeywordScores, visible: Flags, around: Surroundings) -> Scores:
    """Return the coverage of the query by each record together with its neighbours: term by term the best of its own
    share and a part of theirs. Zeros if nothing is in a conversation.
    """
    total = np.zeros(len(visible))
    if not len(frame.order):
        return total
    before = np.where(find_answers(frame, visible, around), ANSWERED, BEFORE)
    for term in keyword.terms:
        shares = np.zeros(len(visible))
        np.maximum.at(shares, frame.records[term.rows], term.shares)
        shares[~visible] = 0.0
        further = np.maximum(_shift(shares, around, -2), _shift(shares, around, 2))
        beside = np.maximum(before * _shift(shares, around, -1), AFTER * _shift(shares, around, 1))
        total += term.idf * np.maximum(shares, np.maximum(beside, FURTHER * further))
    return total / max(keyword.highest, 1e-9)


def cover_sessions(frame: Frame, keyword: KeywordScores, inside: Flags) -> Scores:
    """Return the coverage of the query by each session as one text, by statistics of the sessions."""
    count = int(frame.sessions.max()) + 1
    rows = np.flatnonzero(inside[frame.records])
    sessions = frame.sessions[frame.records]
    lengths = np.bincount(sessions[rows], weights=frame.lengths[rows], minlength=count)
    known = lengths > 0
    corpus = Corpus(int(known.sum()), float(lengths.sum()) / max(int(known.sum()), 1), {})
    norms = K1 * (1.0 - B + B * lengths / max(corpus.mean_length, 1.0))
    total, highest = np.zeros(count), 0.0
    for number, term in enumerate(keyword.terms):
        seen = inside[frame.records[term.rows]]
        frequencies = np.bincount(sessions[term.rows[seen]], weights=term.frequencies[seen], minlength=count)
        idf = Corpus(corpus.chunks, 0.0, {str(number): int(np.count_nonzero(frequencies))}).idf(str(number))
        total += idf * frequencies / (frequencies + norms)
        highest += idf
    return total / max(highest, 1e-9)


def weigh_turns(frame: Frame, tokens: NDArray[np.int32], speakers: Flags) -> Scores:
    """Return what turns of conversations gain or lose for what they are: short, a short question, by the speaker whom
    the question names.
    """
    full, none = QUESTION_TOKENS
    length = LENGTH_SHARE * np.log(np.clip(tokens, 1, CONTEXT_TOKENS) / CONTEXT_TOKENS)
    asking = frame.asks * QUESTION_PENALTY * np.clip((none - tokens) / (none - full), 0.0, 1.0)
    return np.asarray(np.where(frame.sessions >= 0, length - asking + SPEAKER_SHARE * speakers, 0.0), dtype=np.float64)


def find_speakers(roles: Sequence[str | None], named: str | None) -> Flags:
    """Return which records are by a speaker."""
    if named is None:
        return np.zeros(len(roles), dtype=bool)
    return np.fromiter((role == named for role in roles), dtype=bool, count=len(roles))


def _shift(values: NDArray[np.float64] | Flags, around: Surroundings, offset: int) -> Scores:
    """Return for each record the value of the one that stands `offset` after it in the conversation, 0 if none does."""
    places: Places = around.at(offset)
    return np.asarray(np.append(values, 0.0)[places], dtype=np.float64)
