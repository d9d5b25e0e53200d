"""What a search looks at: all chunks of a scope, or the candidates from a large one, as arrays; and one query's scores.

A frame is a large block that stays and a small one with what was stored or changed since. It is never changed: a write
makes a new one that shares the large block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .blocks import Block, Flags, Floats, Keys, Rows
from .bm25 import K1, B, Corpus, highest_score


@dataclass(frozen=True, slots=True)
class Frame:
    """Blocks end to end. The first arrays have an entry per chunk ("row"), the others one per record.

    `alive` is false for chunks of the large block that were changed or deleted since; `chunks` and
    `mean_length` describe the others. `order` lists the records of sessions in the order of the conversations;
    `sessions` numbers the sessions, -1 for none.
    """

    blocks: tuple[Block, ...]
    chunk_keys: Keys
    records: Rows
    tokens: Rows
    lengths: Floats
    alive: Flags
    starts: Rows
    record_keys: Keys
    record_ids: Sequence[str]
    sessions: Rows
    roles: Sequence[str | None]
    created: Keys
    expires: Keys
    asks: Flags
    order: Rows
    chunks: int
    mean_length: float

    def __len__(self) -> int:
        return len(self.chunk_keys)

    def find(self, term: str) -> tuple[Rows, Floats]:
        """Return the rows that hold a term, and its weighted frequency in each."""
        found_rows, found_frequencies, offset = [], [], 0
        for block in self.blocks:
            rows, frequencies = block.postings.find(term)
            found_rows.append(rows + offset)
            found_frequencies.append(frequencies)
            offset += len(block)
        rows, frequencies = np.concatenate(found_rows), np.concatenate(found_frequencies)
        living = self.alive[rows]
        return rows[living], frequencies[living]

    def describe(self, terms: Sequence[str]) -> Corpus:
        """Return what BM25 has to know of the frame's chunks."""
        counts = {term: len(self.find(term)[0]) for term in terms}
        return Corpus(self.chunks, self.mean_length, counts)


@dataclass(frozen=True, slots=True)
class TermScores:
    """A term of a query: how much it tells (idf), the rows that hold it, how often, and that as a saturated share in
    (0, 1): frequency / (frequency + norm).
    """

    idf: float
    rows: Rows
    frequencies: Floats
    shares: Floats


@dataclass(frozen=True, slots=True)
class KeywordScores:
    """What the keywords say of each row: BM25, and its share of the most that the query could reach; the parts of it by
    term, and the sum of all terms' idf.
    """

    bm25: Floats
    coverage: Floats
    terms: tuple[TermScores, ...]
    highest: float


def make_frame(blocks: Sequence[Block], changed: Keys | None = None) -> Frame:
    """Return a frame over blocks; `changed` are keys of records whose chunks in the first block count no more."""
    stops = np.cumsum([0, *map(len, blocks)])
    starts = np.concatenate([block.starts + stop for block, stop in zip(blocks, stops, strict=False)]).astype(np.int32)
    record_keys = np.concatenate([block.record_keys for block in blocks])
    count = np.diff(starts, append=stops[-1])
    records = np.repeat(np.arange(len(record_keys), dtype=np.int32), count)
    alive = np.ones(len(records), dtype=bool)
    if changed is not None and len(changed):
        first = len(blocks[0])
        alive[:first] = ~np.isin(record_keys[records[:first]], changed)
    sessions = _number_sessions(blocks)
    created = np.concatenate([block.created for block in blocks])
    lengths = np.concatenate([block.lengths for block in blocks])
    chunks = int(np.count_nonzero(alive))
    return Frame(
        blocks=tuple(blocks),
        chunk_keys=np.concatenate([block.chunk_keys for block in blocks]),
        records=records,
        tokens=np.concatenate([block.tokens for block in blocks]),
        lengths=lengths,
        alive=alive,
        starts=starts,
        record_keys=record_keys,
        record_ids=[id_ for block in blocks for id_ in block.record_ids],
        sessions=sessions,
        roles=[role for block in blocks for role in block.roles],
        created=created,
        expires=np.concatenate([block.expires for block in blocks]),
        asks=np.concatenate([block.asks for block in blocks]),
        order=_order_sessions(sessions, np.concatenate([block.places for block in blocks]), created, record_keys),
        chunks=chunks,
        mean_length=float(lengths[alive].sum(dtype=np.float64)) / max(chunks, 1),
    )


def score_keywords(frame: Frame, terms: Sequence[str], whole: Sequence[str], corpus: Corpus) -> KeywordScores:
    """Return the keyword scores of all rows by `terms`, as a share of what all of `whole` could reach.

    BM25: Robertson and Zaragoza 2009, with the weighted frequency over columns as the frequency.
    """
    norms = (K1 * (1.0 - B + B * frame.lengths / max(corpus.mean_length, 1.0))).astype(np.float32)
    coverage = np.zeros(len(frame), dtype=np.float64)
    scored = []
    for term in terms:
        rows, frequencies = frame.find(term)
        shares = frequencies / (frequencies + norms[rows])
        scored.append(TermScores(corpus.idf(term), rows, frequencies, shares))
        coverage[rows] += scored[-1].idf * shares
    highest = highest_score(whole, corpus) / (K1 + 1.0)
    bm25 = (K1 + 1.0) * coverage
    return KeywordScores(bm25.astype(np.float32), (coverage / highest).astype(np.float32), tuple(scored), highest)


def no_keywords(frame: Frame) -> KeywordScores:
    """Return the scores of a query without terms."""
    nothing = np.zeros(len(frame), dtype=np.float32)
    return KeywordScores(nothing, nothing, (), 0.0)


def _number_sessions(blocks: Sequence[Block]) -> Rows:
    numbers: dict[tuple[str, str], int] = {}
    return np.array(
        [
            -1 if session is None else numbers.setdefault(session, len(numbers))
            for block in blocks
            for session in block.sessions
        ],
        dtype=np.int32,
    )


def _order_sessions(sessions: Rows, places: Keys, created: Keys, record_keys: Keys) -> Rows:
    within = np.flatnonzero(sessions >= 0)
    if not len(within):
        return within.astype(np.int32)
    order = np.lexsort((record_keys[within], created[within], places[within], sessions[within]))
    return within[order].astype(np.int32)
