"""Who stands beside whom in the conversations: what is visible alone, within one session."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recall_core.surroundings import OFFSETS, find_surroundings

SIZE = 12


@st.composite
def talks(draw):
    """The session of each record (-1: none), who is visible, and the order of the conversations."""
    size = draw(st.integers(1, SIZE))
    sessions = np.array(draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size)), dtype=np.int32)
    visible = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    order = [place for place in draw(st.permutations(range(size))) if sessions[place] >= 0]
    order.sort(key=lambda place: sessions[place])
    return sessions, visible, np.array(order, dtype=np.int32)


def everybody(size):
    return np.ones(size, dtype=bool)


def surround(order, sessions=None, visible=None):
    size = len(order)
    sessions = np.zeros(size, dtype=np.int32) if sessions is None else np.array(sessions, dtype=np.int32)
    visible = everybody(size) if visible is None else np.array(visible)
    return find_surroundings(np.array(order, dtype=np.int32), sessions, visible, everybody(size))


def test_neighbours_are_those_two_and_one_before_and_after():
    around = surround([0, 1, 2, 3])
    assert {offset: around.at(offset).tolist() for offset in OFFSETS} == {
        -2: [-1, -1, 0, 1],
        -1: [-1, 0, 1, 2],
        1: [1, 2, 3, -1],
        2: [2, 3, -1, -1],
    }


def test_neighbours_follow_the_order_of_the_conversation():
    assert surround([2, 0, 1]).at(1).tolist() == [1, -1, 0]


def test_neighbours_are_of_the_same_session():
    assert surround([0, 2, 1, 3], sessions=[0, 1, 0, 1]).at(1).tolist() == [2, 3, -1, -1]


def test_who_is_not_visible_is_passed_over():
    around = surround([0, 1, 2], visible=[True, False, True])
    assert (around.at(1).tolist(), around.at(-1).tolist()) == ([2, -1, -1], [-1, -1, 0])


@given(talks())
def test_neighbours_are_the_nearest_visible_records_of_the_same_session(talks):
    sessions, visible, order = talks
    around = find_surroundings(order, sessions, visible, visible)
    expected = np.full((len(OFFSETS), len(sessions)), -1)
    for session in set(sessions.tolist()) - {-1}:
        row = [place for place in order.tolist() if sessions[place] == session and visible[place]]
        for at, place in enumerate(row):
            for index, offset in enumerate(OFFSETS):
                if 0 <= at + offset < len(row):
                    expected[index, place] = row[at + offset]
    assert (around.beside == expected).all()


@given(talks())
def test_the_size_of_a_session_is_the_number_of_records_that_count(talks):
    sessions, counted, order = talks
    around = find_surroundings(order, sessions, everybody(len(sessions)), counted)
    expected = [int((counted & (sessions == session)).sum()) if session >= 0 else 0 for session in sessions]
    assert around.sizes.tolist() == expected
