"""An ONNX model at work on the CPU: token ids in, numbers out, or one vector a text."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recall_core.errors import EmbeddingError, InvalidInputError, ModelNotFoundError

from ..forks import Lock
from .spec import ModelSpec

if TYPE_CHECKING:
    from recall_core.models import Vectors

    from .tokens import TokenIds

BATCH_TOKENS = 1024  # of one batch; larger ones are slower and take more memory
_MOST_THREADS = 4
_SHRINK_ARENA = ("memory.enable_memory_arena_shrinkage", "cpu:0")
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings")  # transformers, sentence-transformers


class Network:
    """An ONNX model at work in onnxruntime: token ids in, numbers out. Threads may share it.

    `task` names what such a model is exported for, in the exporters' words. Raises ModelNotFoundError if the model
    can't be loaded, InvalidInputError if it wants inputs that are not known.
    """

    def __init__(self, file: Path, threads: int | None, task: str) -> None:
        self._file = file
        self._threads = threads
        self._lock = Lock()
        self._session: Any = _load(file, threads)
        self._inputs = [node.name for node in self._session.get_inputs()]
        self.outputs = [node.name for node in self._session.get_outputs()]
        _networks.add(self)
        unknown = [name for name in self._inputs if name not in _INPUTS]
        if unknown:
            raise InvalidInputError(
                f"{file} wants the inputs {', '.join(unknown)}; only {', '.join(_INPUTS)} can be given: "
                f"export the model for {task}"
            )

    def run(
        self, output: str, ids: Sequence[TokenIds], types: Sequence[TokenIds] | None = None
    ) -> Iterator[tuple[list[int], Vectors]]:
        """Yield the rows of each batch of texts, and the float32 `output` for them, its first axis the rows.

        `types` are the type ids, all zero if not given. Raises EmbeddingError if the model fails.
        """
        import numpy as np

        lengths = [len(text) for text in ids]
        batches = list(_batch(lengths))
        bulk = sum(lengths) > BATCH_TOKENS
        for number, rows in enumerate(batches, start=1):
            batch = np.stack([ids[row] for row in rows])
            kinds = np.zeros_like(batch) if types is None else np.stack([types[row] for row in rows])
            # The arena keeps all it ever took. After bulk work it gives it back; after a query that would be slower.
            yield rows, self._run(output, batch, kinds, shrink=bulk and number == len(batches))

    def _run(self, output: str, ids: TokenIds, types: TokenIds, shrink: bool) -> Vectors:
        import numpy as np
        from onnxruntime import RunOptions

        feed = dict(zip(_INPUTS, (ids, np.ones_like(ids), types), strict=True))
        options = RunOptions()
        if shrink:
            options.add_run_config_entry(*_SHRINK_ARENA)
        try:
            [given] = self._find_session().run([output], {name: feed[name] for name in self._inputs}, options)
        except Exception as error:  # the library's exceptions have no common base
            raise EmbeddingError(f"{self._file} failed on a batch of shape {ids.shape}: {error}") from error
        return np.asarray(given, np.float32)

    def abandon(self) -> None:
        """In a forked child, where the threads of what was loaded are missing, load it anew when it is next wanted."""
        if self._session is not None:
            # Its destructor would wait for these threads without end, at the latest when the interpreter ends.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._session))
            self._session = None

    def _find_session(self) -> Any:
        with self._lock:
            if self._session is None:
                self._session = _load(self._file, self._threads)
            return self._session


_networks: weakref.WeakSet[Network] = weakref.WeakSet()


def _abandon_all() -> None:
    for network in list(_networks):
        network.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)


class Session:
    """A model at work with the pooling that it wants. Threads may share it. Raises as `Network` does."""

    def __init__(self, spec: ModelSpec, threads: int | None) -> None:
        self._spec = spec
        self._network = Network(spec.model_file, threads, "feature extraction")
        outputs = self._network.outputs
        wanted = (spec.output or "", *_TOKEN_OUTPUTS)
        self._output = next((name for name in wanted if name in outputs), outputs[0])

    def embed(self, texts: Sequence[TokenIds]) -> Vectors:
        """Return the vectors of texts, shape (len(texts), dimensions), in their order and not yet of unit length.

        Raises EmbeddingError if the model fails or gives something of another shape.
        """
        import numpy as np

        vectors = np.zeros((len(texts), self._spec.dimensions), np.float32)
        for rows, output in self._network.run(self._output, texts):
            vectors[rows] = self._pool(output, (len(rows), len(texts[rows[0]])))
        return vectors

    def _pool(self, output: Vectors, shape: tuple[int, int]) -> Vectors:
        import numpy as np

        dimensions = self._spec.dimensions
        if output.shape == (shape[0], dimensions):
            return output  # pooled inside the model
        if output.shape != (*shape, dimensions):
            raise EmbeddingError(
                f"{self._spec.model_file} gave {output.shape} for {shape[0]} texts of {shape[1]} tokens, but the "
                f"folder's config.json says {dimensions} dimensions: they don't belong together"
            )
        return np.asarray(output[:, 0] if self._spec.pooling == "cls" else output.mean(axis=1))


def stay_silent() -> None:
    """Keep onnxruntime from reporting to its maker: since 1.32 it would write to the home folder and to the network.

    It reads the variable when it is imported, so a program that imports it earlier has to set it itself.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def _load(file: Path, threads: int | None) -> Any:
    stay_silent()
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = threads or min(_count_cores(), _MOST_THREADS)
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; warnings about graph optimisations would reach the user's terminal
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads must not burn the CPU
    try:
        return InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's exceptions have no common base
        raise ModelNotFoundError(f"{file} can't be loaded: {error}; download the model again") from error


def _count_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # what the process may use; Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _batch(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the rows of batches of equal length, shortest first, within the token budget.

    Without padding a text goes through the same sums whatever shares its batch, so a model that treats rows
    independently gives the same bits. On a CPU that costs nothing: fewer rows a batch, but no padding to compute.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for length, group in groupby(order, key=lengths.__getitem__):
        rows = list(group)
        size = max(1, BATCH_TOKENS // length)
        for start in range(0, len(rows), size):
            yield rows[start : start + size]
