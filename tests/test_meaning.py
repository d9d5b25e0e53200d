"""What the vectors of a frame say: the formula of docs/ranking.md, and statistics that depend on the texts alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from row_support import hash_text, make_row

from recall_core import meaning, whitening
from recall_core.blocks import build_block
from recall_core.frame import make_frame
from recall_core.meaning import FrameVectors, lay_out, measure_frame, measure_rows, sample_texts, score_meaning

DIMENSIONS = 8
FEW, SOME, MANY = 5, whitening.WHITEN_FROM + 5, whitening.FULL_FROM + 50
few = examples(max_examples=40)
seeds = st.integers(0, 2**32 - 1)
sizes = st.sampled_from([2, FEW, SOME, MANY])


def unit(rows):
    rows = np.asarray(rows, dtype=np.float64)
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def make_cone(seed, count):
    """Unit vectors in a narrow cone, some directions wider than others, as embedding models make them."""
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.05, 0.5, DIMENSIONS)
    return unit(3 * unit(rng.normal(size=DIMENSIONS)) + rng.normal(size=(count, DIMENSIONS)) * spread)


def make_vectors(texts, vectors_by_text):
    """Return a frame of these texts in this order, and its vectors."""
    block = build_block([make_row(key, hash=hash_text(text)) for key, text in enumerate(texts, start=1)])
    keys = [key for key, text in enumerate(texts, start=1) if text in vectors_by_text]
    laid, present = lay_out(block, DIMENSIONS, keys, stack([vectors_by_text[texts[key - 1]] for key in keys]))
    return make_frame([block]), FrameVectors((laid,), present)


def stack(vectors):
    return np.array(vectors, dtype=np.float32).reshape(len(vectors), DIMENSIONS)


def name_texts(vectors):
    return {f"text {number}": vector for number, vector in enumerate(vectors)}


def textbook(vectors, queries, prior):
    """The meaning of docs/ranking.md, one pair at a time."""
    vectors = vectors.astype(np.float64)
    n, d = vectors.shape
    mean = vectors.mean(axis=0)
    covariance = (vectors - mean).T @ (vectors - mean) / n
    if prior is None:
        leaning = n * mean / (n + 1) if n > 1 else 0 * mean
    else:
        leaning = (n * mean + whitening.PRIOR_WEIGHT * prior) / (n + whitening.PRIOR_WEIGHT)
    ridge = whitening.RIDGE * max(1, whitening.FULL_FROM / n) * np.trace(covariance) / d
    inverse = np.linalg.inv(covariance + ridge * np.eye(d)) if n >= whitening.WHITEN_FROM else np.eye(d)

    def compare(q, p):
        q, p = q - leaning, p - leaning
        return q @ inverse @ p / np.sqrt((q @ inverse @ q) * (p @ inverse @ p))

    return np.array([[compare(query, vector) for vector in vectors] for query in queries.astype(np.float64)])


def score(frame, vectors, queries, prior=None):
    statistics = whitening.lean_on(prior, measure_frame(frame, vectors))
    return score_meaning(statistics, queries, vectors, measure_rows(statistics, vectors.blocks))


# Scores


@few
@given(seeds, st.sampled_from([1, 2, FEW, SOME, MANY]), st.booleans())
def test_the_meaning_is_that_of_the_textbook(seed, count, has_prior):
    passages, queries = make_cone(seed, count), make_cone(seed + 1, 3)
    prior = unit(passages.mean(axis=0) + 0.1) if has_prior else None
    frame, vectors = make_vectors(list(name_texts(passages)), name_texts(passages))
    assert score(frame, vectors, queries, prior) == pytest.approx(textbook(passages, queries, prior), abs=5e-4)


def test_a_chunk_without_a_vector_means_nothing():
    texts = name_texts(make_cone(1, SOME))
    frame, vectors = make_vectors(["without", *texts], texts)
    scores = score(frame, vectors, make_cone(2, 2))
    assert scores[:, 0].tolist() == [0, 0]
    assert scores.shape == (2, SOME + 1)


def test_a_chunk_without_a_vector_does_not_change_the_others():
    texts = name_texts(make_cone(1, SOME))
    queries = make_cone(2, 2)
    without = score(*make_vectors(["without", *texts, "without too"], texts), queries)
    assert (without[:, 1:-1] == score(*make_vectors(list(texts), texts), queries)).all()


def test_no_vectors_at_all_give_finite_scores():
    assert score(*make_vectors(["one", "other"], {}), make_cone(2, 1)).tolist() == [[0, 0]]


@few
@given(seeds, sizes, st.data())
def test_rows_of_a_second_block_are_scored_like_those_of_the_first(seed, count, data):
    passages, queries = make_cone(seed, count), make_cone(seed + 1, 2)
    frame, vectors = make_vectors(list(name_texts(passages)), name_texts(passages))
    cut = data.draw(st.integers(0, count))
    parts = FrameVectors((vectors.blocks[0][:cut], vectors.blocks[0][cut:]), vectors.present)
    statistics = whitening.lean_on(None, measure_frame(frame, vectors))
    scores = [score_meaning(statistics, queries, one, measure_rows(statistics, one.blocks)) for one in (vectors, parts)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)


# Statistics


@few
@given(seeds, sizes, st.randoms())
def test_statistics_do_not_depend_on_the_order_of_the_rows(seed, count, random):
    texts = name_texts(make_cone(seed, count))
    shuffled = list(texts)
    random.shuffle(shuffled)
    one, other = (measure_frame(*make_vectors(order, texts)) for order in (list(texts), shuffled))
    assert (one.count, one.mean.tolist()) == (other.count, other.mean.tolist())
    assert (one.inverse is None) == (other.inverse is None)
    assert one.inverse is None or (one.inverse == other.inverse).all()


@few
@given(seeds, sizes, st.integers(1, 3))
def test_a_text_that_is_stored_several_times_counts_once(seed, count, times):
    texts = name_texts(make_cone(seed, count))
    once = measure_frame(*make_vectors(list(texts), texts))
    often = measure_frame(*make_vectors([*texts, *[next(iter(texts))] * times], texts))
    assert (often.count, often.mean.tolist()) == (once.count, once.mean.tolist())


@pytest.mark.parametrize("size", [1, 7, 10, 49, 50, 1000])
def test_of_many_texts_a_sample_is_taken_that_does_not_depend_on_their_order(monkeypatch, size):
    monkeypatch.setattr(meaning, "SAMPLE", size)
    texts = name_texts(make_cone(3, 50))
    samples = [sample_texts(*make_vectors(order, texts)) for order in (list(texts), list(texts)[::-1])]
    assert (samples[0] == samples[1]).all()
    assert min(size, 50) / 2 <= len(samples[0]) <= min(size, 50)


def test_the_texts_of_a_second_block_are_not_measured():
    texts = name_texts(make_cone(3, SOME))
    frame, vectors = make_vectors(list(texts), texts)
    added = build_block([make_row(900, latin="new")])
    laid, present = lay_out(added, DIMENSIONS, [900], make_cone(9, 1))
    followed = FrameVectors((vectors.blocks[0], laid), np.concatenate([vectors.present, present]))
    statistics = measure_frame(make_frame([frame.blocks[0], added]), followed)
    assert statistics.mean.tolist() == measure_frame(frame, vectors).mean.tolist()


# Laid out


@given(st.permutations(range(1, 9)), st.sets(st.integers(1, 12)), seeds)
def test_vectors_are_laid_out_in_the_order_of_the_chunks(chunk_keys, known, seed):
    """Chunks are in the order of their records, so their keys may be in any."""
    rows = [make_row(chunk_key, record_key) for record_key, chunk_key in enumerate(chunk_keys, start=1)]
    keys = sorted(known)
    given_vectors = 5 * make_cone(seed, 12)[: len(keys)]
    laid, present = lay_out(build_block(rows), DIMENSIONS, keys, given_vectors)
    assert present.tolist() == [key in known for key in chunk_keys]
    for row, key in enumerate(chunk_keys):
        expected = unit(given_vectors[keys.index(key)]) if key in known else np.zeros(DIMENSIONS)
        assert laid[row] == pytest.approx(expected, abs=1e-6)


def test_an_empty_block_has_no_vectors():
    laid, present = lay_out(build_block([]), DIMENSIONS, [4], make_cone(1, 1))
    assert (laid.shape, present.shape) == ((0, DIMENSIONS), (0,))


def test_rows_are_picked_from_all_blocks():
    blocks = make_cone(1, 3), make_cone(2, 4)
    vectors = FrameVectors(blocks, np.ones(7, dtype=bool))
    rows = np.array([6, 0, 3, 2, 3], dtype=np.int32)
    assert (vectors.pick(rows) == np.concatenate(blocks)[rows]).all()


def test_raw_cosines_are_those_of_all_blocks():
    blocks, query = (make_cone(1, 3), make_cone(2, 4)), make_cone(3, 1)[0]
    vectors = FrameVectors(blocks, np.ones(7, dtype=bool))
    assert vectors.cosines(query) == pytest.approx(np.concatenate(blocks) @ query, abs=1e-6)
