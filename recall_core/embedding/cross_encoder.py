"""Scores how well texts answer a query, with an ONNX cross-encoder from a folder, on the CPU and without a network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from recall_core.errors import EmbeddingError, InvalidInputError, RerankError

from ..forks import Lock
from .installed import find_folder
from .spec import read_folder, read_max_length

if TYPE_CHECKING:
    from recall_core.models import Vectors

    from .session import Network
    from .tokens import PairTokens

_OUTPUT = "logits"  # transformers' name of it


class CrossEncoder:
    """A `Reranker` over a folder with an ONNX cross-encoder in the layout of the model hubs, as bge-reranker-base.

    A cross-encoder reads the query and a text together and says how well they fit, which is more exact than comparing
    two vectors, and slower: it runs once for each text of each query. The folder needs `config.json`, `tokenizer.json`
    and `model.onnx` (or `onnx/model.onnx`, or `onnx/model_quantized.onnx`). The name of a preset that was downloaded
    (`recall models pull bge-reranker-base`) stands for its folder.

    * `max_length`: tokens that the model takes, query, text and special tokens together; by default what the folder
      says. Less is faster.
    * `file`: the ONNX file, relative to the folder.
    * `threads`: of one call; by default the number of cores, at most 4.

    The constructor reads the small files only; the tokenizer and the model load when they are first needed. Threads may
    share a cross-encoder.

    Raises ModelNotFoundError if a file is missing or damaged, InvalidInputError for a model of another kind or
    arguments that don't fit it, both also on first use.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        max_length: int | None = None,
        file: str | None = None,
        threads: int | None = None,
    ) -> None:
        self._folder = find_folder(folder, "reranker")
        config, (self._model_file, self._tokenizer_file, _) = read_folder(self._folder, file)
        self._max_length = read_max_length(self._folder, config, max_length)
        self._threads = threads
        self._lock = Lock()
        self._tokens: PairTokens | None = None
        self._network: Network | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._folder)!r})"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the logit of each text in the order given, larger is better: of a model with one label that label's,
        of one with two the second minus the first.

        A text over the model's length is cut at its end; a query only if it takes more than half of it. A text has the
        same score whatever it shares the call with, unless the model quantises over the whole batch, as many
        "quantized" files of the hubs do. Raises RerankError if the model fails or gives NaN.
        """
        import numpy as np

        if isinstance(texts, str):
            raise InvalidInputError("one text was given where a list of texts is wanted; put it in brackets")
        if not texts:
            return []
        ids, types = self._load_tokens().encode(query, texts)
        if not all(map(len, ids)):
            raise RerankError("the tokenizer finds no token in the query nor in a text; leave such texts out")
        network = self._load_network()
        output = _OUTPUT if _OUTPUT in network.outputs else network.outputs[0]
        scores = np.zeros(len(texts), np.float32)
        try:
            for rows, logits in network.run(output, ids, types):
                scores[rows] = self._read_logits(logits, len(rows))
        except EmbeddingError as error:
            raise RerankError(str(error)) from error
        bad = np.flatnonzero(~np.isfinite(scores))
        if bad.size:
            raise RerankError(
                f"{self._model_file} gave {scores[bad[0]]} for text {bad[0]} of {len(texts)}; the file may be damaged, "
                "or made for another kind of hardware"
            )
        return [float(score) for score in scores]

    def _read_logits(self, logits: Vectors, count: int) -> Vectors:
        if logits.shape in ((count,), (count, 1)):
            return logits.reshape(count)
        if logits.shape == (count, 2):
            return logits[:, 1] - logits[:, 0]
        raise InvalidInputError(
            f"{self._model_file} gave {logits.shape} for {count} pairs; a reranker gives one label a pair, or two (no "
            "and yes): this is a model of another kind, or exported for another task than text classification"
        )

    def _load_tokens(self) -> PairTokens:
        from .tokens import PairTokens

        if self._tokens is None:
            with self._lock:
                if self._tokens is None:
                    self._tokens = PairTokens(self._tokenizer_file, self._max_length)
        return self._tokens

    def _load_network(self) -> Network:
        from .session import Network

        if self._network is None:
            with self._lock:
                if self._network is None:
                    self._network = Network(self._model_file, self._threads, "text classification")
        return self._network
