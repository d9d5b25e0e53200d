"""A cause that lasts is told in the log once, however often it is met."""

from __future__ import annotations

import logging

import pytest

from recall_core.causes import SILENCE, Cause


@pytest.fixture
def cause(clock, caplog):
    caplog.set_level(logging.INFO)
    return Cause(clock)


def test_a_cause_is_told_once_while_it_lasts(cause, caplog, clock):
    for number in range(50):
        cause.note(f"no route (request {number})", "down: %d", number)
        clock.advance(SILENCE / 5)
    assert caplog.messages == ["down: 0"]


def test_the_last_cause_and_its_time_are_known_until_it_is_cleared(cause, clock):
    cause.note("no route (request 1)", "down")
    clock.advance(5)
    cause.note("no route (request 2)", "down")
    assert cause.present == ("no route (request 2)", clock())
    cause.clear("up")
    assert cause.present is None


def test_another_cause_is_told(cause, caplog):
    cause.note("no route", "down")
    cause.note("no key", "locked out")
    assert caplog.messages == ["down", "locked out"]


def test_what_comes_and_goes_does_not_fill_the_log(cause, caplog):
    for _ in range(50):
        cause.note("no route", "down")
        cause.clear("up")
    assert caplog.messages.count("down") == 1


def test_what_comes_back_after_a_while_is_told_again(cause, caplog, clock):
    cause.note("no route", "down")
    cause.clear("up")
    clock.advance(SILENCE)
    cause.note("no route", "down")
    assert caplog.messages == ["down", "up", "down"]


def test_that_all_is_well_is_not_told_if_it_was(cause, caplog):
    cause.clear("up")
    assert caplog.messages == []
