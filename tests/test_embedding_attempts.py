"""Texts are embedded one way or another, and whoever is at fault is found: a text, or the embedder."""

from __future__ import annotations

import numpy as np
import pytest
from indexer_support import WRONG, MoodyEmbedder, WrongEmbedder
from support import HashedEmbedder

from recall_core.embedding import attempt
from recall_core.errors import EmbedderUnavailableError, PartlyEmbeddedError, TextRefusedError

TEXTS = [f"text {number}" for number in range(20)]


class RaisingEmbedder(HashedEmbedder):
    """Raises what `fault` makes of the texts, unless that is None; counts its calls."""

    def __init__(self, fault) -> None:
        super().__init__(16)
        self.fault, self.calls = fault, 0

    def embed_passages(self, texts):
        self.calls += 1
        if (error := self.fault(texts)) is not None:
            raise error
        return super().embed_passages(texts)


def test_all_texts_get_their_vectors():
    found = attempt(HashedEmbedder(16), TEXTS, 16)
    assert np.array_equal([found.vectors[place] for place in range(20)], HashedEmbedder(16).embed_passages(TEXTS))
    assert (found.refused, found.failure) == ({}, None)


def test_no_texts_need_no_call():
    embedder = MoodyEmbedder()
    assert attempt(embedder, [], 16).vectors == {}
    assert embedder.calls == 0


@pytest.mark.parametrize("poison", [["text 0"], ["text 19"], ["text 7", "text 13"]])
def test_a_refused_text_costs_no_other_its_vector(poison):
    found = attempt(MoodyEmbedder(*poison), ["text", *TEXTS[2:], *poison], 16)
    assert {place for place in found.refused if place > 18} == set(range(19, 19 + len(poison)))
    assert len(found.vectors) + len(found.refused) == 19 + len(poison)
    assert all("ValueError: 1 texts are refused" in reason for reason in found.refused.values())
    assert found.failure is None


def test_an_embedder_that_is_down_is_found_out_by_a_harmless_text():
    embedder = MoodyEmbedder()
    embedder.down = True
    found = attempt(embedder, TEXTS, 16)
    assert isinstance(found.failure, ConnectionError)
    assert (found.vectors, found.refused, embedder.calls) == ({}, {}, 2)


def test_an_embedder_that_refuses_nearly_all_texts_is_at_fault_itself():
    found = attempt(MoodyEmbedder("text "), [f"text {number}" for number in range(100)], 16)
    assert isinstance(found.failure, ValueError)


@pytest.mark.parametrize("change", [change for name, change in WRONG.items()], ids=WRONG)
def test_what_is_no_vector_is_stored_by_nobody(change):
    assert not attempt(WrongEmbedder(change), ["one"], 16).vectors


def test_an_embedder_that_is_not_to_be_had_is_asked_once():
    embedder = RaisingEmbedder(lambda texts: EmbedderUnavailableError("no key"))
    found = attempt(embedder, TEXTS, 16)
    assert (str(found.failure), found.refused, embedder.calls) == ("no key", {}, 1)


def test_what_was_embedded_in_part_is_kept():
    made = HashedEmbedder(16).embed_passages(TEXTS)
    failure = EmbedderUnavailableError("quota")
    partly = PartlyEmbeddedError("partly", vectors={0: made[0]}, refused={1: "filtered"}, failure=failure)
    embedder = RaisingEmbedder(lambda texts: partly)
    found = attempt(embedder, TEXTS, 16)
    assert np.array_equal(found.vectors[0], made[0])
    assert (found.refused, found.failure, embedder.calls) == ({1: "filtered"}, failure, 1)


def test_a_single_text_that_is_refused_is_not_doubted():
    embedder = RaisingEmbedder(lambda texts: TextRefusedError("filtered"))
    found = attempt(embedder, ["one"], 16)
    assert (found.refused, embedder.calls) == ({0: "TextRefusedError: filtered"}, 1)
