"""The memory files that a process has open: one for all agents of a home, since a gateway has many at once."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from pathlib import Path

from recall_core import DEFAULT, Embedder, Memory, Settings, redact_text
from recall_core.embedding import resolve_embedder
from recall_core.errors import EmbeddingError
from recall_core.forks import Lock
from recall_core.hosting import prepare_search
from recall_core.models import TokenWindow
from recall_core.text.segmenter import load_segmenter

logger = logging.getLogger("recall_hermes")

# A host that ends gives its providers five seconds.
SETTINGS = Settings(embedding="background", close_timeout=2.0, busy_timeout=3.0)
PAUSE = 0.5  # seconds after the first turn was answered, in which it may be stored
PATIENCE = 2.0  # seconds in which a first turn is expected
LOADING = 1.0  # seconds that closing waits for what is being loaded
AT_EXIT = 10.0  # seconds that the end of the process does
PROBE = "warm up 预热"


class OpenFile:
    """An open memory file: how many agents have it, whether its model is loaded, and what that fails with."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.users = 1
        self._process = os.getpid()
        self.model_error: str | None = None
        self._embedder: Embedder | None = None
        try:
            self._embedder = resolve_embedder(DEFAULT)
            self.memory = Memory.open(path, embedder=self._embedder, settings=SETTINGS)
        except EmbeddingError as error:  # another model's vectors, a broken installation: words find without
            self.model_error = str(error)
            self.memory = Memory.open(path, embedder=None, settings=SETTINGS)
        self._warm = threading.Event()
        self._warming = threading.Lock()
        self._answered = threading.Event()
        self._threads: list[threading.Thread] = []
        self._ending = threading.Event()

    @property
    def inherited(self) -> bool:
        """Whether the process that opened the file was forked since, and this is the child: it has to open it anew."""
        return self._process != os.getpid()

    @property
    def warm(self) -> bool:
        """Whether a search by meaning has been made, so that the next one is fast."""
        return self._warm.is_set()

    def warm_up(self, scope: str) -> None:
        """Load what storing and a search by words need, now; and in a thread what one by meaning does."""
        redact_text(PROBE)
        load_segmenter()  # it holds up all threads for a moment, which must not be within a turn
        if isinstance(self._embedder, TokenWindow):
            self._embedder.token_spans(PROBE)
        self.memory.scoped(scope).search(PROBE, mode="keyword", limit=1)
        if self.model_error is None:
            thread = threading.Thread(target=self._load, args=(scope,), name="recall-warm-up", daemon=True)
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
            _loading[:] = [one for one in _loading if one.is_alive()] + [thread]
            thread.start()

    def note_answer(self) -> None:
        """Note that a first turn has been answered, so that loading the model can't slow it down any more."""
        self._answered.set()

    def close(self) -> None:
        """Close the file, once nothing is loaded for it any more."""
        self.stop_loading()
        for thread in self._threads:
            thread.join(LOADING)
        self.memory.close()

    def stop_loading(self) -> None:
        """Load nothing that is not being loaded already."""
        self._ending.set()
        self._answered.set()

    def _load(self, scope: str) -> None:
        self._answered.wait(PATIENCE)
        self._ending.wait(PAUSE)
        with self._warming:
            if self._ending.is_set():
                return
            try:
                view = self.memory.scoped(scope)
                prepare_search(view)
                view.search(PROBE, limit=1)
                self._warm.set()
            except Exception as error:  # status tells it, and words find without
                if self._ending.is_set():
                    return
                self.model_error = str(error)
                logger.warning("recall: the embedding model can't be used: %s", error)


_open: dict[Path, OpenFile] = {}
_lock = Lock()
_parents: list[OpenFile] = []  # what a forked child must neither use nor close


_loading: list[threading.Thread] = []


@atexit.register
def _wait_for_loading() -> None:
    """A model that loads while the interpreter goes away aborts the process."""
    for file in list(_open.values()):
        file.stop_loading()
    for thread in _loading:
        thread.join(AT_EXIT)


def _begin_child() -> None:
    _parents.extend(_open.values())
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


def take(path: Path) -> OpenFile:
    """Return the file at a path, opened (and made) if this process does not have it open. Raises StoreError."""
    path = path.resolve()
    with _lock:
        if path in _open:
            _open[path].users += 1
            return _open[path]
        _open[path] = OpenFile(path)
        return _open[path]


def give_back(file: OpenFile) -> None:
    """Close a file if nobody else has it; what is not embedded by then is when it is opened again."""
    if file.inherited:
        return
    with _lock:
        file.users -= 1
        if file.users > 0:
            return
        _open.pop(file.path, None)
        file.close()
