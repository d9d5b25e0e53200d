"""What may be given as an embedder, and the checks on any embedder's vectors."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import MEAN, build_model

from recall_core.embedding import DEFAULT, OnnxEmbedder, resolve_embedder
from recall_core.errors import InvalidInputError, ModelNotFoundError, VectorError
from recall_core.vectors import check_vectors


@pytest.fixture
def folder(tmp_path):
    return build_model(tmp_path / "model", pooling=MEAN)


# Choosing an embedder


class OwnEmbedder:
    model_id = "own"
    dimensions = 2

    def embed_passages(self, texts):
        return np.ones((len(texts), 2), np.float32)

    def embed_queries(self, texts):
        return self.embed_passages(texts)


def test_none_means_no_embedder():
    assert resolve_embedder(None) is None


def test_a_path_means_the_model_of_the_folder(folder):
    assert resolve_embedder(str(folder)).model_id == resolve_embedder(folder).model_id == OnnxEmbedder(folder).model_id


def test_a_path_that_is_no_folder_is_said_to_be_one():
    with pytest.raises(ModelNotFoundError, match="there is no folder 'bge-small-zh'"):
        resolve_embedder("bge-small-zh")


def test_an_object_with_the_members_of_an_embedder_is_taken_as_it_is():
    own = OwnEmbedder()
    assert resolve_embedder(own) is own


def test_the_missing_members_of_an_object_are_named():
    class Half:
        model_id = "half"

        def embed_queries(self, texts):
            return []

    with pytest.raises(InvalidInputError, match="Half without dimensions, embed_passages"):
        resolve_embedder(Half())


def test_properties_of_an_embedder_are_not_run_to_recognise_it():
    class Remote(OwnEmbedder):
        @property
        def dimensions(self):
            raise ConnectionError("asks a server")

    remote = Remote()
    assert resolve_embedder(remote) is remote


def test_a_class_in_place_of_an_embedder_is_refused():
    with pytest.raises(InvalidInputError, match="give an instance"):
        resolve_embedder(OwnEmbedder)


def test_the_default_has_a_readable_name():
    assert repr(DEFAULT) == "DEFAULT"


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, recall_core.embedding; print(*{'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


# Checks on vectors


def test_lists_of_numbers_become_float32():
    array = check_vectors([[1, 2.5], [3, 4]], 2, 2)
    assert array.dtype == np.float32
    assert array.tolist() == [[1, 2.5], [3, 4]]


def test_no_vectors_for_no_texts_are_fine():
    assert check_vectors([], 0, 3).shape == (0, 3)


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        ([[1.0, 2.0]], r"\(1, 2\)"),
        ([1.0, 2.0, 3.0], r"\(3,\)"),
        ([[1.0, 2.0, 3.0], [1.0]], "equal length"),
        ([["a", "b", "c"]], "list of floats"),
        ([[True, True, True]], "bool"),
        (None, "list of floats"),
        ([[1.0, float("nan"), 0.0]], "NaN"),
        ([[1.0, float("inf"), 0.0]], "infinity"),
        ([[1e300, 0.0, 0.0]], "too large"),
        ([[0.0, 0.0, 0.0]], "zeros"),
        ([[1e-20, 0.0, 0.0]], "1e-20"),
        ([[1e15, 1e15, 0.0]], "length"),
        (np.ones((1, 3), np.complex64), "complex"),
    ],
)
def test_vectors_that_can_not_be_compared_are_refused(vectors, words):
    with pytest.raises(VectorError, match=words):
        check_vectors(vectors, 1, 3)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=4, max_size=4))
def test_a_vector_is_taken_or_refused_but_never_changed(numbers):
    try:
        [vector] = check_vectors([numbers], 1, 4)
    except VectorError:
        assert np.linalg.norm(numbers) < 1e-11
    else:
        assert vector.tolist() == numbers
