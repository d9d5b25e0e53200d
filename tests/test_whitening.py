"""Cosines after centring and whitening: against a plain eigendecomposition, and fit for any vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from recall_core.vectors import normalize
from recall_core.whitening import (
    BLOCK,
    FULL_FROM,
    PRIOR_WEIGHT,
    RIDGE,
    WHITEN_FROM,
    Statistics,
    compare,
    direct,
    lean_on,
    measure,
    measure_lengths,
    whiten,
)

DIMENSIONS = 12
sizes = st.sampled_from([1, 2, WHITEN_FROM - 1, WHITEN_FROM, WHITEN_FROM + 1, FULL_FROM, FULL_FROM + 50])
seeds = st.integers(0, 2**32 - 1)
few = examples(max_examples=40)


def unit(rows):
    rows = np.asarray(rows, dtype=np.float64)
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def make_cone(seed, count, dimensions=DIMENSIONS):
    """Unit vectors in a narrow cone, some directions wider than others, as embedding models make them."""
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.02, 0.5, dimensions)
    return unit(5 * unit(rng.normal(size=dimensions)) + rng.normal(size=(count, dimensions)) * spread)


def reference(vectors, queries, passages):
    """W = U (Lambda + ridge)^(-1/2) from the eigendecomposition of the covariance, then plain cosines."""
    vectors, queries, passages = (np.asarray(rows, dtype=np.float64) for rows in (vectors, queries, passages))
    count, dimensions = vectors.shape
    mean = vectors.mean(axis=0)
    if count >= WHITEN_FROM:
        values, directions = np.linalg.eigh(np.cov(vectors.T, bias=True))
        ridge = RIDGE * max(1, FULL_FROM / count) * values.mean()
        whiten = directions / np.sqrt(values + ridge)
    else:
        whiten = np.eye(dimensions)
    q, p = (queries - mean) @ whiten, (passages - mean) @ whiten
    return (q / np.linalg.norm(q, axis=1, keepdims=True)) @ (p / np.linalg.norm(p, axis=1, keepdims=True)).T


def cosines(statistics, queries, passages):
    return compare(direct(statistics, queries), passages, measure_lengths(statistics, passages))


# compare


@few
@given(seeds, st.sampled_from([2, 10, WHITEN_FROM, 60, FULL_FROM, 300]))
def test_cosines_are_those_of_the_reference(seed, count):
    vectors, queries = make_cone(seed, count), make_cone(seed + 1, 3)
    found = cosines(measure(vectors), queries, vectors)
    assert found == pytest.approx(reference(vectors, queries, vectors), abs=2e-4)


@few
@given(seeds, sizes)
def test_cosines_are_symmetric(seed, count):
    vectors = make_cone(seed, count)
    statistics = lean_on(None, measure(vectors))
    found = cosines(statistics, vectors, vectors)
    assert found == pytest.approx(found.T, abs=1e-5)


@few
@given(seeds, sizes)
def test_a_vector_is_identical_to_itself(seed, count):
    vectors = make_cone(seed, count)
    statistics = lean_on(None, measure(vectors))
    assert np.diag(cosines(statistics, vectors, vectors)) == pytest.approx(np.ones(count), abs=1e-5)


@few
@given(seeds, sizes, st.sampled_from([0.0, 1e-30, 1e-12, 1e-6, 1.0]))
def test_cosines_are_finite_and_at_most_one(seed, count, scale):
    vectors = make_cone(seed, count)
    statistics = lean_on(None, measure(vectors))
    odd = np.concatenate([vectors, statistics.mean[None, :], np.zeros((1, DIMENSIONS), np.float32), vectors * scale])
    found = cosines(statistics, odd, odd)
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1


@pytest.mark.parametrize("difference", [0.0, 1e-38, 1e-20, 1e-10, 1e-7, 1e-4])
@pytest.mark.parametrize("count", [WHITEN_FROM, 500])
def test_a_scope_of_nearly_the_same_text_gives_finite_cosines(count, difference):
    vectors = np.zeros((count, 4), np.float32)
    vectors[:, 0] = 1
    vectors[: count // 2, 1] = difference
    found = cosines(lean_on(None, measure(vectors)), unit([[1, 1, 0, 0], [0, 0, 1, 0]]), vectors)
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1


def test_the_passages_may_be_none():
    assert cosines(measure(make_cone(1, 5)), make_cone(2, 2), np.zeros((0, DIMENSIONS), np.float32)).shape == (2, 0)


def test_whitening_separates_texts_that_the_raw_cosine_holds_for_alike():
    vectors = make_cone(3, 400)
    raw = vectors[:5] @ vectors.T
    assert raw.min() > 0.9
    assert cosines(measure(vectors), vectors[:5], vectors).min() < -0.2


# measure


@few
@given(seeds, sizes)
def test_the_order_of_the_vectors_does_not_matter(seed, count):
    vectors = make_cone(seed, count)
    one, other = measure(vectors), measure(vectors[::-1])
    assert one.mean == pytest.approx(other.mean, abs=1e-6)
    queries = make_cone(seed + 1, 2)
    assert cosines(one, queries, vectors) == pytest.approx(cosines(other, queries, vectors), abs=1e-3)


def test_no_vectors_have_statistics_that_change_nothing():
    statistics = lean_on(None, measure(np.zeros((0, 3), np.float32)))
    assert cosines(statistics, unit([[1, 1, 0]]), unit([[1, 0, 0]]))[0] == pytest.approx([0.5**0.5])


def test_few_vectors_are_centred_but_not_whitened():
    assert measure(make_cone(1, WHITEN_FROM - 1)).inverse is None
    assert measure(make_cone(1, WHITEN_FROM)).inverse is not None


# lean_on


def test_the_mean_of_a_single_vector_counts_for_nothing():
    vectors = make_cone(1, 1)
    statistics = lean_on(None, measure(vectors))
    queries = make_cone(2, 3)
    assert cosines(statistics, queries, vectors) == pytest.approx(queries @ vectors.T, abs=1e-5)


@given(st.integers(0, 1000))
def test_a_prior_counts_less_the_more_vectors_there_are(count):
    prior, mean = np.zeros(3, np.float32), np.ones(3, np.float32)
    leaning = lean_on(prior, Statistics(count, mean, None))
    assert leaning.mean == pytest.approx(np.full(3, count / (count + PRIOR_WEIGHT)))
    assert leaning.count == count


# direct and measure_lengths


@few
@given(seeds, sizes)
def test_a_dot_product_less_the_offset_is_the_cosine_times_the_length(seed, count):
    """So an index over raw vectors finds what is near, and orders as the cosine does up to each passage's length."""
    vectors, queries = make_cone(seed, count), make_cone(seed + 1, 2)
    statistics = lean_on(None, measure(vectors))
    directions, lengths = direct(statistics, queries), measure_lengths(statistics, vectors)
    products = directions.vectors @ vectors.T - directions.offsets[:, None]
    assert products == pytest.approx(cosines(statistics, queries, vectors) * lengths, abs=1e-5)


@few
@given(seeds, sizes)
def test_lengths_are_those_of_the_centred_and_whitened_vectors(seed, count):
    vectors = make_cone(seed, count)
    statistics = lean_on(None, measure(vectors))
    inverse = np.eye(DIMENSIONS) if statistics.inverse is None else statistics.inverse.astype(np.float64)
    centred = (vectors - statistics.mean).astype(np.float64)
    expected = np.sqrt(np.einsum("ij,jk,ik->i", centred, inverse, centred))
    assert measure_lengths(statistics, vectors) == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_more_passages_than_are_whitened_at_a_time_have_the_same_lengths():
    vectors = make_cone(1, BLOCK + 7)
    statistics = measure(vectors[:200])
    lengths = measure_lengths(statistics, vectors)
    assert len(lengths) == BLOCK + 7
    assert lengths[-9:] == pytest.approx(measure_lengths(statistics, vectors[-9:]), rel=1e-5)


def test_whitened_vectors_have_the_whitened_cosines_as_dot_products():
    vectors = normalize(np.random.default_rng(1).standard_normal((150, 12)).astype(np.float32))
    vectors[7] = 0
    statistics = measure(vectors)
    whitened = whiten(statistics, vectors)
    expected = compare(direct(statistics, vectors[:3]), vectors, measure_lengths(statistics, vectors))
    assert np.allclose(whitened[:3] @ whitened.T, np.where(np.arange(150) == 7, 0, expected), atol=1e-4)
    assert not whitened[7].any()
    assert whiten(statistics, vectors, out=vectors) is vectors
    assert np.array_equal(vectors, whitened)
