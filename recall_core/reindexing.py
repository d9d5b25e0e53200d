"""Makes the indexes of a file anew from its records and vectors, batch by batch, while others read and write.

How far a run has come is noted in the file with each batch, so that one that was killed goes on there. Records that are
added meanwhile are not looked at: whoever writes them uses the present segmenter and dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .engine import Engine
from .filters import Selection
from .reports import Reindexed
from .store import ChunkDraft, Indexed
from .terms import holds_words
from .text import segmenter_version

BATCH = 128  # records that are read, cut and stored together

Progress = Callable[[int, int], object]


def reindex_keywords(engine: Engine, progress: Progress | None = None) -> Reindexed:
    """Cut the texts of all records into terms anew, and note which segmenter has done so."""
    engine.indexer.reindex_stale()
    version = engine.dictionary.follow().version
    by = f"{segmenter_version()} {version}"
    table = engine.store.reindexing
    run = _Run(engine, every_record(engine), progress)
    run.work(table.begin(by), partial(table.advance, by))
    with engine.store.records.transaction():
        table.finish(by)
        engine.store.dictionary.settle(version)
        engine.store.facts.save_segmenter(segmenter_version())
    return Reindexed(records=run.records, changed=run.changed)


def reindex_selected(engine: Engine, selection: Selection, progress: Progress | None = None) -> Reindexed:
    """Cut the selected records into terms anew."""
    engine.indexer.reindex_stale()
    engine.dictionary.follow()
    run = _Run(engine, selection, progress)
    run.work(-(1 << 63), lambda _: None)
    return Reindexed(records=run.records, changed=run.changed)


def reindex_words(engine: Engine, progress: Progress | None = None, *, dry_run: bool = False) -> Reindexed:
    """Cut the records anew that hold a word which was added to the dictionary or removed from it, and no others.

    A dry run counts them.
    """
    records = changed = 0
    dictionary = engine.store.dictionary
    while True:
        engine.dictionary.follow()
        left = dictionary.changed()
        if not left.words:
            break
        run = _Run(engine, every_record(engine), progress, words=left.words, dry_run=dry_run)
        run.work(left.after, partial(dictionary.advance, left.version))
        records, changed = records + run.records, changed + run.changed
        if dry_run or dictionary.settle(left.version):
            break
    return Reindexed(records=records, changed=changed, dry_run=dry_run)


def reindex_vectors(engine: Engine, progress: Progress | None = None) -> Reindexed:
    """Make the codes of all large spaces anew from the vectors."""
    stats = engine.store.facts.stats(segmenter="", notes=())
    total, done = sum(space.vectors for space in stats.spaces), 0
    for space in engine.store.vectors.spaces():
        for taken in engine.store.index.rebuild(space):
            done += taken
            if progress is not None:
                progress(done, max(total, done))
    return Reindexed(vectors=done)


def every_record(engine: Engine) -> Selection:
    """Select all records, expired ones too: their expiry may yet be changed."""
    return Selection(now=engine.now(), ignores_expiry=True)


class _Run:
    """One run over the records that are there when it begins."""

    def __init__(
        self,
        engine: Engine,
        selection: Selection,
        progress: Progress | None,
        *,
        words: frozenset[str] | None = None,
        dry_run: bool = False,
    ) -> None:
        self._engine = engine
        self._selection = selection
        self._progress = progress
        self._words = words
        self._dry_run = dry_run
        self.records = self.changed = 0

    def work(self, after: int, advance: Callable[[int], object]) -> None:
        """Cut the records behind the key `after` anew; `advance` notes a key inside the transaction that reaches it."""
        table = self._engine.store.reindexing
        last = table.last()
        done, total = 0, table.count(self._selection, after, last)
        while page := table.page(self._selection, after, last, BATCH):
            after = page[-1].key
            concerned = [known for known in page if self._concerns(known)]
            self.records += len(concerned)
            if not self._dry_run:
                self._store(
                    [(known, self._engine.indexer.describe(known.record, known.spans)) for known in concerned],
                    after,
                    advance,
                )
            done += len(page)
            if self._progress is not None:
                self._progress(done, max(total, done))

    def _concerns(self, known: Indexed) -> bool:
        return self._words is None or holds_words(known.record, self._words)

    def _store(
        self, prepared: Sequence[tuple[Indexed, Sequence[ChunkDraft]]], after: int, advance: Callable[[int], object]
    ) -> None:
        engine = self._engine
        with engine.store.records.transaction():
            for known, chunks in prepared:
                self.changed += engine.store.reindexing.replace(known, engine.indexer.renew(known.record, chunks))
            advance(after)
