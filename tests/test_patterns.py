"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from recall_core.patterns import compile_late


def test_a_late_pattern_does_what_a_compiled_one_does():
    late, early = compile_late(r"(?P<word>\w)(\d)", re.IGNORECASE), re.compile(r"(?P<word>\w)(\d)", re.IGNORECASE)
    for text in ("a1 B2", "none", ""):
        assert late.findall(text) == early.findall(text)
        assert [match.span() for match in late.finditer(text)] == [match.span() for match in early.finditer(text)]
        assert late.sub("-", text) == early.sub("-", text)
    assert late.groupindex == early.groupindex


def test_a_late_pattern_with_a_fault_says_so_when_it_is_used():
    late = compile_late("(")
    with pytest.raises(re.error):
        late.search("text")


@pytest.mark.parametrize("renew", [copy.copy, copy.deepcopy, lambda pattern: pickle.loads(pickle.dumps(pattern))])
def test_a_late_pattern_can_be_copied_before_and_after_its_first_use(renew):
    late = compile_late("a+")
    assert renew(late).search("baa")[0] == "aa"
    assert late.search("baa")
    assert renew(late).search("baa")[0] == "aa"
