"""The parts of an open memory, and the two steps that every write takes: the text is stored, then embedded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, cast

from .causes import Cause
from .chunking import split_pages
from .drafting import check_space, make_record, read_mapping, redact_record
from .errors import InvalidInputError
from .forks import lazy
from .indexer import Indexer
from .models import Embedder, GivenVector, Json, NewRecord, Record
from .query_cache import QueryCache
from .redaction import Redact, choose_redaction
from .settings import Settings
from .store import EXTERNAL_MODEL, OWN_SPACE, Draft, Space, SqliteStore, Stored
from .times import MICROS_PER_SECOND
from .words import LiveDictionary

if TYPE_CHECKING:
    from .search import Searcher

BATCH = 256  # records in one transaction of a bulk add

Progress = Callable[[int], object]


@dataclass
class Engine:
    """Everything that an open memory and its views share. Only its model may change, together with the file's."""

    store: SqliteStore
    indexer: Indexer
    settings: Settings
    clock: Callable[[], float]
    dictionary: LiveDictionary
    cache: QueryCache
    trouble: Cause  # what keeps searches from using vectors

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the memory's own space."""
        return self.indexer.embedder

    def adopt(self, indexer: Indexer) -> Indexer:
        """Go on with another indexer, whose model the file was moved to, and return the old one. Calls that have begun
        end with that, which knows that its model is not the file's any more.
        """
        before, self.indexer = self.indexer, indexer
        self.__dict__.pop("searcher", None)
        return before

    def refresh(self) -> None:
        """Make the statistics of searched scopes anew when they are next wanted."""
        if "searcher" in self.__dict__:
            self.searcher.refresh()

    def now(self) -> int:
        """Return the clock's time in microseconds since 1970 UTC."""
        return int(self.clock() * MICROS_PER_SECOND)

    @lazy
    def searcher(self) -> Searcher:
        """What answers searches; made by the first one, since it is numpy that it is made of."""
        from .legs import Legs
        from .search import Searcher

        legs = Legs(self.store, self.embedder, self.cache, self.settings.embed_failures)
        return Searcher(self.store, legs, self.settings, self.dictionary, self.trouble)


def write_records(
    engine: Engine, base: str, records: Iterable[NewRecord | Mapping[str, Json]], progress: Progress | None = None
) -> list[Record]:
    """Store records below `base`, a transaction for each batch; a batch with a fault in it is not stored at all."""
    written: list[Record] = []
    for batch in _batches(records):
        news, drafts = make_drafts(engine, base, batch, len(written))
        written += [stored.record for stored in store_drafts(engine, news, drafts)]
        if progress is not None:
            progress(len(written))
    return written


def write_record(engine: Engine, base: str, new: NewRecord, *, once_per_turn: bool = False) -> Record:
    """Store one record below `base`."""
    draft = make_draft(engine, base, new, once_per_turn=once_per_turn)
    return store_drafts(engine, [new], [draft])[0].record


def store_drafts(engine: Engine, news: Sequence[NewRecord], drafts: Sequence[Draft]) -> list[Stored]:
    """Store drafts in one transaction with the vectors that came with them, then give their chunks vectors."""
    with engine.store.records.transaction():
        stored = write_drafts(engine, news, drafts)
        keys = [key for result in stored for key in result.chunk_keys]
        claim = engine.indexer.claim(keys)
    engine.indexer.embed(keys, claim)
    return stored


def write_drafts(engine: Engine, news: Sequence[NewRecord], drafts: Sequence[Draft]) -> list[Stored]:
    """Store drafts with the vectors that came with them, inside a transaction of the caller's."""
    spaces = {new.space or OWN_SPACE: space_for(engine, new) for new in news if new.vector is not None}
    renewed = [replace(draft, chunks=engine.indexer.renew(draft.record, draft.chunks)) for draft in drafts]
    stored = engine.store.records.write(renewed)
    for new, draft, result in zip(news, renewed, stored, strict=True):
        if new.vector is not None and result.chunk_keys:
            vectors = _place_vectors(draft, result.chunk_keys, new.vector)
            save_vectors(engine, spaces[new.space or OWN_SPACE], vectors)
    for space in spaces.values():
        engine.store.index.refresh(space)
    return stored


def save_vectors(engine: Engine, space: Space, vectors: Mapping[int, Sequence[float]]) -> None:
    """Store vectors that a caller brought, by the key of the chunk that they lie with."""
    from .vectors import check_vectors

    checked = check_vectors(list(vectors.values()), len(vectors), space.dimensions)
    blobs = {key: vector.tobytes() for key, vector in zip(vectors, checked, strict=True)}
    engine.store.vectors.save(space, blobs, settles=space.name == OWN_SPACE, given=True)


def _place_vectors(draft: Draft, keys: Sequence[int], vector: GivenVector) -> dict[int, Sequence[float]]:
    """Return the vectors that a caller brought by chunk key: one stands for the whole record and lies with its first
    chunk, several lie with the first chunk of each page.
    """
    vectors = _list_vectors(vector)
    if len(vectors) == 1:
        return {keys[0]: vectors[0]}
    pages = [offset for offset, _ in split_pages(draft.record.text)]
    if len(vectors) != len(pages):
        raise InvalidInputError(
            f"{len(vectors)} vectors were given for a text of {len(pages)} pages, which form feeds end"
        )
    begins = [next(place for place, chunk in enumerate(draft.chunks) if chunk.start >= page) for page in pages]
    return {keys[place]: one for place, one in zip(begins, vectors, strict=True)}


def _list_vectors(vector: GivenVector) -> list[Sequence[float]]:
    several = len(vector) > 0 and hasattr(vector[0], "__len__") and not isinstance(vector[0], str)
    return cast("list[Sequence[float]]", list(vector) if several else [vector])


def space_for(engine: Engine, new: NewRecord) -> Space:
    """Return the space of a vector that a caller brought, made by the first one."""
    from .vectors import check_vectors

    if new.vector is None or isinstance(new.vector, str) or not hasattr(new.vector, "__len__"):
        raise InvalidInputError(f"vector is a sequence of numbers, not {new.vector!r}")
    vector = _list_vectors(new.vector)[0]
    name = OWN_SPACE if new.space is None else check_space(new.space)
    known = engine.store.vectors.find_space(name)
    if known is not None and (name != OWN_SPACE or engine.embedder is None):
        return known
    check_vectors([vector], 1, len(vector))  # no space for a vector that can't be stored
    if name == OWN_SPACE and engine.embedder is not None:
        return engine.indexer.open_space()
    return engine.store.vectors.ensure_space(name, EXTERNAL_MODEL, len(vector))


def make_drafts(
    engine: Engine, base: str, records: Sequence[NewRecord | Mapping[str, Json]], before: int = 0
) -> tuple[list[NewRecord], list[Draft]]:
    """Return records as they were meant, and what is to be stored of them; errors count from `before` on."""
    news = [_read(new, before + place) for place, new in enumerate(records)]
    return news, [_make_numbered_draft(engine, base, new, before + place) for place, new in enumerate(news)]


def find_redaction(engine: Engine, wanted: bool | None) -> Redact | None:
    """Return what takes secrets out of what a call stores: as the call wants it, or for None as the settings say."""
    return choose_redaction(engine.settings.redact, wanted)


def make_draft(engine: Engine, base: str, new: NewRecord, *, once_per_turn: bool = False) -> Draft:
    """Return what is to be stored of a new record below `base`. Raises InvalidInputError."""
    if new.space is not None:
        check_space(new.space)
        if new.vector is None:
            raise InvalidInputError(f"the space {new.space!r} was given without a vector to put there")
    record = redact_record(make_record(new, base, engine.now()), find_redaction(engine, new.redact))
    return Draft(
        record=record,
        chunks=engine.indexer.prepare(record),
        on_duplicate=new.on_duplicate,
        once_per_turn=once_per_turn,
        named=new.id is not None,
        dated=new.created_at is not None,
    )


def _make_numbered_draft(engine: Engine, base: str, new: NewRecord, place: int) -> Draft:
    try:
        return make_draft(engine, base, new)
    except InvalidInputError as error:
        raise InvalidInputError(f"record {place}: {error}") from error


def _read(new: NewRecord | Mapping[str, Json], place: int) -> NewRecord:
    if isinstance(new, NewRecord):
        return new
    if not isinstance(new, Mapping):
        raise InvalidInputError(f"record {place} is a {type(new).__name__}; give NewRecord values or mappings")
    try:
        return read_mapping(new)
    except InvalidInputError as error:
        raise InvalidInputError(f"record {place}: {error}") from error


def _batches(records: Iterable[NewRecord | Mapping[str, Json]]) -> Iterator[list[NewRecord | Mapping[str, Json]]]:
    try:
        iterator = iter(records)
    except TypeError:
        raise InvalidInputError(f"records is an iterable of NewRecord values or mappings, not {records!r}") from None
    while batch := list(islice(iterator, BATCH)):
        yield batch
