"""Moves a whole file to another model, while searches go on with the vectors of the old one.

The vectors of the new model are gathered in a space of their own, batch by batch, each in a short transaction. What is
left to do is asked of the file, not remembered: chunks that other processes add or change meanwhile are found again,
and so is everything after the process was killed. Once nothing is left, the new space takes the old one's place in one
transaction.
"""

from __future__ import annotations

import logging
import random
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence

from .embedding import attempt
from .engine import Engine
from .errors import EmbedderMismatchError, EmbeddingError, InvalidInputError
from .filters import Selection
from .indexer import Indexer
from .models import Embedder, Record, Reembedded, Stats, TokenWindow
from .speakers import describe_speaker
from .store import NEXT_SPACE, OLD_SPACE, OWN_SPACE, RETRY_AFTER, ChunkDraft, MissingChunk, Space

logger = logging.getLogger("recall_core")

BATCH = 128  # chunks embedded and stored together, unless the embedder says what it likes best (`call_size`)
MOST_BATCH = 4096
MOST_PASSES = 8  # over the chunks that fit; what others go on adding is left to the end
PATIENCE = 4  # passes at the end, after which a batch may be left over, and with each further one twice as much
EVERY_RECORD = Selection(now=0, ignores_expiry=True)

Progress = Callable[[int, int], object]


class _OvertakenError(Exception):
    """The new space is no more what is being filled: another process has switched, or given up."""


def reembed(
    engine: Engine, indexer: Indexer, *, progress: Progress | None = None, batch: int | None = None
) -> tuple[Reembedded, list[int]]:
    """Move the file of an open memory to the model of `indexer`; return what was done, and the keys of a few chunks
    that others added last, which wait for a vector of the new model.

    The vectors of the old model are left to `MoveTable.clear`. Raises EmbedderMismatchError if the file is on its way
    to another model, EmbeddingError if the embedder fails, StoreError. Whatever is raised, the file works as before,
    and calling this again goes on where it ended.
    """
    store, embedder = engine.store, indexer.embedder
    if embedder is None:
        raise InvalidInputError("embedder is None; give the model that the file shall move to")
    if batch is None:
        batch = max(1, min(MOST_BATCH, int(getattr(embedder, "call_size", BATCH))))
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= MOST_BATCH:
        raise InvalidInputError(f"batch is a whole number from 1 to {MOST_BATCH}, not {batch!r}")
    model, dimensions = embedder.model_id, embedder.dimensions
    store.moves.clear()  # what a killed process has left of an old space
    space, is_new = store.moves.begin(model, dimensions)
    if space is None:
        return Reembedded(model=model, dimensions=dimensions), []
    if (space.model, space.dimensions) != (model, dimensions):
        raise EmbedderMismatchError(describe_unfinished(store.path, space, model))
    indexer.reindex_stale()
    move = _Move(engine, indexer, embedder, space, batch, progress)
    try:
        left = move.run(first=0 if is_new else random.randint(0, store.moves.last_chunk()))
    except _OvertakenError:
        own = store.vectors.find_space(OWN_SPACE)
        if own is None or (own.model, own.dimensions) != (model, dimensions):
            raise EmbeddingError(
                f"the move of {store.path} to {model} was dropped by another process (recall reembed --abort); "
                "its vectors are gone, and the file has those of the old model"
            ) from None
        left = []
    return move.report(), left


def describe_unfinished(path: str, space: Space, model: str) -> str:
    """Say that a file is on its way to another model than the one that was given, and both ways out."""
    return (
        f"{path} is on its way to the model {space.model} ({space.dimensions} dimensions), which is not finished, and "
        f"can't be moved to {model} before. Either go on: recall reembed with that model, or drop what it has done: "
        "recall reembed --abort (Memory.abort_reembed)"
    )


def describe_moves(stats: Stats) -> Iterator[str]:
    """Say which moves to another model are unfinished, and what is left of those that are over."""
    for space in stats.spaces:
        if space.name == NEXT_SPACE:
            yield (
                f"on its way to the model {space.model}: {space.vectors} chunks have its vectors. recall reembed with "
                "that model goes on, recall reembed --abort drops them"
            )
        elif space.name.startswith(OLD_SPACE):
            yield f"{space.vectors} vectors of {space.model} are left over; the next recall reembed deletes them"


class _Move:
    """One process's part in filling the new space."""

    def __init__(
        self,
        engine: Engine,
        indexer: Indexer,
        embedder: Embedder,
        space: Space,
        batch: int,
        progress: Progress | None,
    ) -> None:
        self._engine = engine
        self._store = engine.store
        self._indexer = indexer
        self._embedder = embedder
        self._window = embedder if isinstance(embedder, TokenWindow) else None
        self._space = space
        self._batch = batch
        self._progress = progress
        self._done = self._chunks = 0
        self._embedded = self._recut = 0
        self._refused: dict[int, str] = {}
        self._told: tuple[int, int] | None = None

    def report(self) -> Reembedded:
        """Return what was done so far."""
        return Reembedded(
            model=self._space.model,
            dimensions=self._space.dimensions,
            chunks=self._done,
            embedded=self._embedded,
            recut=self._recut,
            refused=len(self._refused),
        )

    def run(self, first: int) -> list[int]:
        """Fill the new space, beginning behind the chunk key `first`, and switch; return what is left to others.

        Chunks that are too large for the new model come last: once they are cut anew, they have no vector of the old
        one. A process that joins another begins anywhere, so that they meet late.
        """
        for _ in range(MOST_PASSES):
            if self._pass(first, recuts=False) <= self._batch:
                break
            first = 0
        number = 0
        while True:
            self._pass(0, recuts=True)
            left = self._switch(self._batch << (number - PATIENCE) if number >= PATIENCE else 0)
            if left is not None:
                self._done, _ = self._store.moves.count(self._space)
                self._tell(finished=True)
                return self._cut_left(left)
            number += 1

    def _pass(self, first: int, *, recuts: bool) -> int:
        """Embed the missing chunks from behind a key on; return how many were embedded."""
        self._done, self._chunks = self._store.moves.count(self._space)
        self._tell()
        filled, after, last = 0, first, self._store.moves.last_chunk()  # who goes on adding keeps no pass from ending
        while after < last and (missing := self._store.moves.missing(self._space, after, self._batch)):
            after = missing[-1].key
            open_ = [chunk for chunk in missing if chunk.key not in self._refused]
            fitting = [chunk for chunk in open_ if self._fits(chunk)]
            self._fill(fitting)
            filled += len(fitting)
            if recuts and len(fitting) < len(open_):
                self._cut_anew(list({chunk.record_id for chunk in open_} - {chunk.record_id for chunk in fitting}))
            self._tell()
        return filled + (self._batch + 1 if first else 0)  # what lies before the first one is yet to be seen

    def _fits(self, chunk: MissingChunk) -> bool:
        """Tell whether the model reads the whole of a chunk; of a short one without asking the tokenizer."""
        if self._window is None:
            return True
        text, window = _speak(chunk.role, chunk.text), self._window.window
        if len(text) < window and len(unicodedata.normalize("NFKD", text).encode("utf-8")) < window:
            return True
        return len(self._window.token_spans(text)) <= window

    def _fill(self, chunks: Sequence[MissingChunk]) -> None:
        if not chunks:
            return
        vectors, refused, failure = self._embed({chunk.hash: _speak(chunk.role, chunk.text) for chunk in chunks})
        rows = [(chunk.key, chunk.hash, vectors[chunk.hash]) for chunk in chunks if chunk.hash in vectors]
        self._refused |= {chunk.key: refused[chunk.hash] for chunk in chunks if chunk.hash in refused}
        with self._store.records.transaction():
            self._check_open()
            self._store.moves.fill(self._space, rows)
        self._finish_batch(len(rows), failure)

    def _cut_anew(self, record_ids: Sequence[str]) -> None:
        """Cut records to the new model's window and embed them. Vectors that callers brought stay with their record."""
        records = self._store.records.get(record_ids, EVERY_RECORD)
        prepared = [(record, self._indexer.prepare(record)) for record in records]
        texts = {
            draft.hash: _speak(record.role, record.text[draft.start : draft.end])
            for record, drafts in prepared
            for draft in drafts
            if draft.embeds
        }
        vectors, refused, failure = self._embed(texts)
        stored = 0
        with self._store.records.transaction():
            self._check_open()
            for record, drafts in prepared:
                if failure is not None and not vectors.keys() >= {draft.hash for draft in drafts if draft.embeds}:
                    continue
                if self._store.records.get([record.id], EVERY_RECORD) == [record]:  # else it is found again
                    keys = self._replace(record, drafts)
                    pairs = list(zip(keys, drafts, strict=True))
                    rows = [(key, draft.hash, vectors[draft.hash]) for key, draft in pairs if draft.hash in vectors]
                    self._store.moves.fill(self._space, rows)
                    self._refused |= {key: refused[draft.hash] for key, draft in pairs if draft.hash in refused}
                    stored += len(rows)
        self._finish_batch(stored, failure)

    def _replace(self, record: Record, drafts: Sequence[ChunkDraft]) -> tuple[int, ...]:
        """Give a record other chunks and return their keys; vectors that callers brought go to the first one."""
        given = self._store.moves.given(record.id)
        keys = self._store.records.update(record, self._indexer.renew(record, drafts)).chunk_keys
        for space, vector in given:
            self._store.vectors.save(space, {keys[0]: vector}, settles=space.name == OWN_SPACE, given=True)
        self._recut += 1
        return keys

    def _cut_left(self, chunks: Sequence[MissingChunk]) -> list[int]:
        """After the switch, cut those records anew that others added last; return the keys of all that is to embed."""
        keys = [chunk.key for chunk in chunks if self._fits(chunk)]
        large = list({chunk.record_id for chunk in chunks if not self._fits(chunk)})
        for record in self._store.records.get(large, EVERY_RECORD):
            drafts = self._indexer.prepare(record)
            with self._store.records.transaction():
                if self._store.records.get([record.id], EVERY_RECORD) == [record]:
                    keys += self._replace(record, drafts)
        return keys

    def _embed(self, texts: Mapping[bytes, str]) -> tuple[dict[bytes, bytes], dict[bytes, str], Exception | None]:
        """Return vectors and refusals by text hash, and what stopped the rest. What the file has is not made again."""
        vectors = self._store.vectors.known(self._space, list(texts))
        hashes = [hash_ for hash_ in texts if hash_ not in vectors]
        made = attempt(self._embedder, [texts[hash_] for hash_ in hashes], self._space.dimensions)
        self._embedded += len(made.vectors)
        vectors.update((hashes[place], vector.astype("<f4").tobytes()) for place, vector in made.vectors.items())
        return vectors, {hashes[place]: reason for place, reason in made.refused.items()}, made.failure

    def _finish_batch(self, stored: int, failure: Exception | None) -> None:
        self._done += stored
        while self._store.index.refresh(self._space):  # one by one, so that other writers have their turn
            pass
        if isinstance(failure, EmbeddingError):
            raise failure
        if failure is not None:
            raise EmbeddingError(f"the embedder failed: {type(failure).__name__}: {failure}") from failure

    def _switch(self, most_left: int) -> list[MissingChunk] | None:
        """Put the new space in the place of the old one, unless more than so many chunks are missing. None: they are.

        All that is missing is looked for inside the transaction, in which nobody else writes.
        """
        with self._store.records.transaction():
            self._check_open()
            left = self._store.moves.missing(self._space, 0, most_left + 1, self._refused)
            if len(left) > most_left:
                return None
            if self._refused and not self._done:
                raise EmbeddingError(f"{self._space.model} refused all texts: {next(iter(self._refused.values()))}")
            self._store.moves.switch(self._space, self._refused, self._engine.now() + RETRY_AFTER)
        if self._refused:
            logger.warning(
                "%s: %s refused %d chunks; they are found by keywords only", self._store.path, self._space.model,
                len(self._refused),
            )  # fmt: skip
        return left

    def _check_open(self) -> None:
        known = self._store.vectors.find_space(self._space.name)
        if known is None or known.id != self._space.id:
            raise _OvertakenError

    def _tell(self, *, finished: bool = False) -> None:
        told = (self._done, self._done if finished else max(self._chunks, self._done))
        if self._progress is not None and told != self._told:
            self._told = told
            self._progress(*told)


def _speak(role: str | None, text: str) -> str:
    return describe_speaker(role) + text
