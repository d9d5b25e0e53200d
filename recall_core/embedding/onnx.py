"""Embeds texts with an ONNX model from a folder, on the CPU and without a network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from recall_core.errors import EmbeddingError, InvalidInputError, ModelNotFoundError

from ..forks import Lock
from .spec import ModelSpec, Overrides, Pooling, read_spec

if TYPE_CHECKING:
    from recall_core.models import Span, Vectors

    from .session import Session
    from .tokens import Tokens

MEANS_FILE = "lang_means.npz"


class OnnxEmbedder:
    """An `Embedder` and `TokenWindow` over a folder with an ONNX model: ours, or one in the layout of the model hubs.

    The folder needs `config.json`, `tokenizer.json` and `model.onnx` (or `onnx/model.onnx`, or
    `onnx/model_quantized.onnx`). What the folder says is taken from it, an argument overrides it:

    * `pooling`: "mean" or "cls". A hub folder tells it in `1_Pooling/config.json`; without that file bge models take
      "cls" and all others "mean", with a warning in the log.
    * `query_prefix`, `passage_prefix`: put before each text, as the model was trained.
    * `max_length`: tokens that the model takes, prefix and special tokens included.
    * `model_id`: replaces the identity that is made of the model's files, pooling, prefixes and length.
    * `file`: the ONNX file, relative to the folder.
    * `threads`: of one call; by default the number of cores, at most 4.

    The constructor reads the small files only; the tokenizer and the model load when they are first needed. Threads may
    share an embedder; in a forked child the model is loaded anew.

    Vectors are float32 of length 1. Equal text gives an equal vector only up to rounding where the model quantises over
    the whole batch, as many "quantized" files of the hubs do; with the bundled model it is the same to the bit.

    A text over the model's window is no error: it is cut into windows of equal size, up to 8 of them spread evenly over
    the text, and the mean of their vectors is returned. This is meant for queries; passages are cut to fit beforehand.

    Raises ModelNotFoundError if a file is missing or damaged, InvalidInputError for a model of a kind that can't be run
    here or arguments that don't fit it, both also on first use.
    """

    call_size = 1024
    """How many texts a call is best given: texts of one length run together, and among many there are more of them."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        pooling: Pooling | None = None,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        max_length: int | None = None,
        model_id: str | None = None,
        file: str | None = None,
        threads: int | None = None,
    ) -> None:
        overrides = Overrides(
            pooling=pooling,
            query_prefix=query_prefix,
            passage_prefix=passage_prefix,
            max_length=max_length,
            file=file,
        )
        self._spec: ModelSpec = read_spec(Path(folder), overrides)
        self._model_id = model_id or self._spec.model_id
        self._threads = threads
        self._lock = Lock()
        self._tokens: Tokens | None = None
        self._session: Session | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model_id!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # what is loaded serves all

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tokens": None, "_session": None}

    @property
    def model_id(self) -> str:
        """Return the name, identity, pooling, length and prefixes of the model: what makes vectors comparable."""
        return self._model_id

    @property
    def dimensions(self) -> int:
        """Return the length of a vector."""
        return self._spec.dimensions

    @property
    def window(self) -> int:
        """Return how many tokens of a passage one vector can hold, prefix and special tokens already taken off."""
        return self._load_tokens().window

    def token_spans(self, text: str) -> list[Span]:
        """Return the character offsets of each token of `text`, in order, without prefix and special tokens."""
        return self._load_tokens().spans(text)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to be stored, shape (len(texts), dimensions). Raises EmbeddingError."""
        return self._embed(texts, self._spec.passage_prefix)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to search with, shape (len(texts), dimensions). Raises EmbeddingError."""
        return self._embed(texts, self._spec.query_prefix)

    def _embed(self, texts: Sequence[str], prefix: str) -> Vectors:
        import numpy as np

        from recall_core.vectors import check_vectors, normalize

        if isinstance(texts, str):
            raise InvalidInputError("one text was given where a list of texts is wanted; put it in brackets")
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        tokens = self._load_tokens()
        windows, owners = [], []
        for owner, text in enumerate(texts):
            for ids in tokens.encode(text, prefix):
                windows.append(ids)
                owners.append(owner)
        vectors = self._load_session().embed(windows)
        try:
            vectors = normalize(check_vectors(vectors, len(windows), self.dimensions))
            if len(windows) == len(texts):
                return vectors
            sums = np.zeros((len(texts), self.dimensions), np.float32)
            np.add.at(sums, owners, vectors)
            return normalize(check_vectors(sums, len(texts), self.dimensions))
        except EmbeddingError as error:
            raise EmbeddingError(f"the model {self._model_id} gave no usable vector: {error}") from error

    def _load_tokens(self) -> Tokens:
        from .tokens import Tokens

        if self._tokens is None:
            with self._lock:
                if self._tokens is None:
                    self._tokens = Tokens(self._spec)
        return self._tokens

    def _load_session(self) -> Session:
        from .session import Session

        if self._session is None:
            with self._lock:
                if self._session is None:
                    self._session = Session(self._spec, self._threads)
        return self._session


class OnnxEmbedderWithMeans(OnnxEmbedder):
    """An `OnnxEmbedder` that is a `LanguageMeans` too, over a folder that has `lang_means.npz`.

    The means belong to the pooling and prefixes that the folder names, so nothing can be overridden here. Raises
    ModelNotFoundError if the file is missing or damaged.
    """

    def __init__(self, folder: str | os.PathLike[str], *, threads: int | None = None) -> None:
        super().__init__(folder, threads=threads)
        self._means_file = Path(folder) / MEANS_FILE
        self._means: dict[str, Vectors] | None = None
        if not self._means_file.is_file():
            raise ModelNotFoundError(f"{self._means_file} is missing; open the folder as an OnnxEmbedder without it")

    def language_mean(self, language: str, kind: Literal["passage", "query"]) -> Vectors:
        """Return the mean vector, shape (dimensions,), of texts of a language ("zh" or "en").

        Raises InvalidInputError for a language or kind that the file does not have.
        """
        means = self._load_means()
        try:
            return means[f"{language}_{kind}"]
        except KeyError:
            known = ", ".join(sorted(means))
            raise InvalidInputError(f"no mean vector for {language!r} and {kind!r}; there are {known}") from None

    def _load_means(self) -> dict[str, Vectors]:
        import numpy as np

        from recall_core.vectors import check_vectors

        if self._means is None:
            try:
                with np.load(self._means_file, allow_pickle=False) as archive:
                    means = {name: check_vectors(archive[name][None], 1, self.dimensions)[0] for name in archive.files}
            except (OSError, ValueError) as error:
                raise ModelNotFoundError(f"{self._means_file} is damaged: {error}; install the model again") from error
            for mean in means.values():
                mean.setflags(write=False)
            self._means = means
        return self._means


def open_model(folder: str | os.PathLike[str]) -> OnnxEmbedder:
    """Open the model of a folder as the folder describes it, with its language means where it has some."""
    has_means = (Path(folder) / MEANS_FILE).is_file()
    return OnnxEmbedderWithMeans(folder) if has_means else OnnxEmbedder(folder)
