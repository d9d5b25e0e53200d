"""The parts of an open memory, and the two steps that every write takes: the text is stored, then embedded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from .drafting import check_name, make_record, read_mapping
from .errors import InvalidInputError
from .indexer import Indexer
from .legs import Legs
from .models import Embedder, Json, NewRecord, Record
from .search import Searcher
from .settings import Settings
from .store import OWN_SPACE, Draft, Space, SqliteStore, Stored
from .times import MICROS_PER_SECOND

EXTERNAL_MODEL = "external"  # the model of a space whose vectors are all brought by callers
BATCH = 256  # records in one transaction of a bulk add

Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Engine:
    """Everything that an open memory and its views share."""

    store: SqliteStore
    indexer: Indexer
    legs: Legs
    settings: Settings
    clock: Callable[[], float]
    words: frozenset[str]

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the memory's own space."""
        return self.indexer.embedder

    def now(self) -> int:
        """Return the clock's time in microseconds since 1970 UTC."""
        return int(self.clock() * MICROS_PER_SECOND)

    def searcher(self) -> Searcher:
        """Return what answers searches."""
        return Searcher(self.store, self.legs, self.settings, self.words)


def write_records(
    engine: Engine, base: str, records: Iterable[NewRecord | Mapping[str, Json]], progress: Progress | None = None
) -> list[Record]:
    """Store records below `base`, a transaction for each batch; a batch with a fault in it is not stored at all."""
    written: list[Record] = []
    for batch in _batches(records):
        news = [_read(new, len(written) + place) for place, new in enumerate(batch)]
        written += [stored.record for stored in write_batch(engine, base, news)]
        if progress is not None:
            progress(len(written))
    return written


def write_batch(engine: Engine, base: str, news: Sequence[NewRecord], *, once_per_turn: bool = False) -> list[Stored]:
    """Store records in one transaction, then give their chunks vectors."""
    now = engine.now()
    drafts = [_make_draft(engine, base, new, now, once_per_turn) for new in news]
    with engine.store.records.transaction():
        spaces = {new.space or OWN_SPACE: space_for(engine, new) for new in news if new.vector is not None}
        stored = engine.store.records.write(drafts)
        for new, result in zip(news, stored, strict=True):
            if new.vector is not None and result.chunk_keys:
                save_vector(engine, spaces[new.space or OWN_SPACE], result, new.vector)
        for space in spaces.values():
            engine.store.index.refresh(space)
    engine.indexer.embed([key for result in stored for key in result.chunk_keys])
    return stored


def save_vector(engine: Engine, space: Space, stored: Stored, vector: Sequence[float]) -> None:
    """Store a vector that a caller brought: it stands for the whole record, and lies with its first chunk."""
    from .embedding import check_vectors

    checked = check_vectors([vector], 1, space.dimensions)
    key = stored.chunk_keys[0]
    engine.store.vectors.save(space, {key: checked[0].tobytes()}, settles=space.name == OWN_SPACE, given=True)


def space_for(engine: Engine, new: NewRecord) -> Space:
    """Return the space of a vector that a caller brought, made by the first one."""
    from .embedding import check_vectors

    if new.vector is None or isinstance(new.vector, str) or not hasattr(new.vector, "__len__"):
        raise InvalidInputError(f"vector is a sequence of numbers, not {new.vector!r}")
    name = new.space or OWN_SPACE
    known = engine.store.vectors.find_space(name)
    if known is not None:
        return known
    check_vectors([new.vector], 1, len(new.vector))  # no space for a vector that can't be stored
    if name == OWN_SPACE and engine.embedder is not None:
        return engine.indexer.open_space()
    return engine.store.vectors.ensure_space(name, EXTERNAL_MODEL, len(new.vector))


def _make_draft(engine: Engine, base: str, new: NewRecord, now: int, once_per_turn: bool) -> Draft:
    if new.space is not None:
        check_name(new.space, "space")
        if new.vector is None:
            raise InvalidInputError(f"the space {new.space!r} was given without a vector to put there")
    record = make_record(new, base, now)
    return Draft(
        record=record,
        chunks=engine.indexer.prepare(record),
        base=base,
        on_duplicate=new.on_duplicate,
        once_per_turn=once_per_turn,
        named=new.id is not None,
        dated=new.created_at is not None,
    )


def _read(new: NewRecord | Mapping[str, Json], place: int) -> NewRecord:
    if isinstance(new, NewRecord):
        return new
    if not isinstance(new, Mapping):
        raise InvalidInputError(f"record {place} is a {type(new).__name__}; give NewRecord values or mappings")
    return read_mapping(new)


def _batches(records: Iterable[NewRecord | Mapping[str, Json]]) -> Iterator[list[NewRecord | Mapping[str, Json]]]:
    try:
        iterator = iter(records)
    except TypeError:
        raise InvalidInputError(f"records is an iterable of NewRecord values or mappings, not {records!r}") from None
    while batch := list(islice(iterator, BATCH)):
        yield batch
