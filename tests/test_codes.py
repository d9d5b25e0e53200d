"""Codes find what the vectors they were made from would, and the same rows in whatever order they lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core import codes
from recall_core.codes import code_bytes, encode, find_nearest, make_planes

DIMENSIONS = st.sampled_from([1, 7, 63, 64, 65, 128, 200])


def make_vectors(seed, count, dimensions):
    """Return unit vectors, shape (count, dimensions)."""
    vectors = np.random.default_rng(seed).normal(size=(count, dimensions))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def make_case(seed, count, dimensions):
    """Return the planes of random vectors, their bits, shape (count, dimensions), and a direction."""
    *vectors, direction = make_vectors(seed, count + 1, dimensions)
    vectors = np.array(vectors, dtype=np.float32).reshape(count, dimensions)
    centre = vectors.mean(axis=0) if count else np.zeros(dimensions, np.float32)
    return make_planes(encode(vectors, centre)), vectors > centre, direction


@pytest.fixture
def few(monkeypatch):
    """Let the first pass keep few rows, so that small cases have both passes."""
    monkeypatch.setattr(codes, "FIRST", 8)


# Codes


@given(st.integers(0, 999), st.integers(0, 20), DIMENSIONS)
def test_a_code_has_a_bit_for_each_dimension_and_zeros_after_them(seed, count, dimensions):
    vectors = make_vectors(seed, count + 1, dimensions)[:count]
    centre = np.full(dimensions, 0.01, np.float32)
    found = encode(vectors, centre)
    assert found.shape == (count, code_bytes(dimensions))
    for code, vector in zip(found, vectors, strict=True):
        number = int.from_bytes(code.tobytes(), "little")
        assert number == sum(1 << place for place in range(dimensions) if vector[place] > centre[place])


@pytest.mark.parametrize(("dimensions", "size"), [(1, 8), (64, 8), (65, 16), (384, 48), (385, 56)])
def test_a_code_takes_whole_words(dimensions, size):
    assert code_bytes(dimensions) == size


def test_planes_hold_the_words_of_all_codes_one_after_another():
    found = make_planes(encode(np.array([[1] * 70, [0] * 64 + [1] * 6], np.float32), np.zeros(70, np.float32)))
    assert found.tolist() == [[2**64 - 1, 0], [63, 63]]


# Both passes against plain Python


@given(st.integers(0, 999), st.integers(0, 40), DIMENSIONS)
def test_differing_bits_are_counted_as_one_by_one(seed, count, dimensions):
    planes, bits, direction = make_case(seed, count, dimensions)
    sought = direction > 0
    expected = [sum(bool(a) != bool(b) for a, b in zip(row, sought, strict=True)) for row in bits]
    words = make_planes(encode(direction[None], np.zeros(dimensions, np.float32)))[:, 0]
    assert codes._count_differing(planes, words).tolist() == expected


def test_differing_bits_are_counted_across_blocks(monkeypatch):
    monkeypatch.setattr(codes, "BLOCK", 7)
    planes, bits, direction = make_case(1, 50, 100)
    words = make_planes(encode(direction[None], np.zeros(100, np.float32)))[:, 0]
    assert codes._count_differing(planes, words).tolist() == (bits != (direction > 0)).sum(axis=1).tolist()


@given(st.integers(0, 999), st.integers(0, 40), DIMENSIONS)
def test_bits_are_weighed_as_one_by_one(seed, count, dimensions):
    planes, bits, direction = make_case(seed, count, dimensions)
    step = float(np.abs(direction).max()) / 7.5
    weights = [min(max(round(float(number / np.float32(step))), -8), 7) for number in direction]
    expected = [sum(weight for bit, weight in zip(row, weights, strict=True) if bit) for row in bits]
    assert codes._weigh(planes, direction).tolist() == expected


def test_a_direction_of_zeros_weighs_nothing():
    planes, _, _ = make_case(0, 5, 64)
    assert codes._weigh(planes, np.zeros(64, np.float32)).tolist() == [0] * 5


# Finding


def expect(bits, allowed, direction, count):
    """Return what `find_nearest` has to find and what it may, by sorting plain numbers."""
    rows = [row for row in range(len(bits)) if allowed[row]]
    differing = {row: int((bits[row] != (direction > 0)).sum()) for row in rows}
    first = max(codes.FIRST, 10 * count)
    rows = [row for row in rows if len(rows) <= first or differing[row] <= sorted(differing.values())[first - 1]]
    weights = np.clip(np.rint(direction / np.float32(np.abs(direction).max() / 7.5)), -8, 7)
    summed = {row: int(weights[bits[row]].sum()) for row in rows}
    least = sorted(summed.values())[-count] if len(rows) > count else min(summed.values(), default=0)
    return {row for row in rows if summed[row] > least}, {row for row in rows if summed[row] >= least}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("share", [1.0, 0.8, 0.5, 0.1, 0.03, 0.0])
@pytest.mark.parametrize("count", [1, 2, 5, 60])
def test_the_allowed_rows_that_are_nearest_are_found_whatever_share_is_allowed(share, count):
    for seed in range(5):
        planes, bits, direction = make_case(seed, 300, 100)
        allowed = np.random.default_rng(seed).random(300) < share
        better, good = expect(bits, allowed, direction, count)
        found = find_nearest(planes, allowed, direction, count).tolist()
        assert better <= set(found) <= good
        assert len(found) == min(count, int(allowed.sum()))


@pytest.mark.usefixtures("few")
def test_the_order_of_the_rows_changes_nothing():
    planes, _, direction = make_case(3, 400, 70)
    for share in (1.0, 0.5, 0.05):
        rng = np.random.default_rng(8)
        allowed = rng.random(400) < share
        before = find_nearest(planes, allowed, direction, 3)
        order = rng.permutation(400)
        after = find_nearest(planes[:, order], allowed[order], direction, 3)
        assert sorted(order[after].tolist()) == before.tolist()


def test_copies_do_not_take_the_places_of_others():
    planes, _, direction = make_case(0, 6, 64)
    alone = find_nearest(planes, np.ones(6, bool), direction, 3).tolist()
    for copied in range(6):
        many = np.concatenate([planes, np.repeat(planes[:, copied : copied + 1], 500, axis=1)], axis=1)
        found = find_nearest(many, np.ones(506, bool), direction, 3).tolist()
        assert set(alone) - {copied} <= set(found)
        assert len(found) <= 2 * 3


def test_nothing_is_found_among_nothing():
    planes, _, direction = make_case(0, 0, 64)
    assert find_nearest(planes, np.zeros(0, bool), direction, 5).tolist() == []


def test_the_nearest_of_vectors_in_clusters_are_among_those_that_are_left():
    rng = np.random.default_rng(2)
    topics = rng.normal(size=(200, 128)) * 0.7 + 3  # as those of real models: in one narrow cone
    vectors = np.repeat(topics, 100, axis=0) + rng.normal(size=(20_000, 128)) * 0.5
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    centre = vectors[::5].mean(axis=0)
    planes, every = make_planes(encode(vectors, centre)), np.ones(20_000, bool)
    found = []
    for query in vectors[rng.permutation(20_000)[:30]]:
        direction = query + rng.normal(size=128).astype(np.float32) * 0.02 - centre
        best = set(np.argsort(-(vectors @ direction))[:10].tolist())
        found.append(len(best & set(find_nearest(planes, every, direction, 400).tolist())) / 10)
    assert np.mean(found) >= 0.99
