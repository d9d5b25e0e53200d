"""The whole of a file's integrity: what the store finds, and whether the chunks say what the records say."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import islice

from .damage import Damage, Repaired, make_damage
from .engine import Engine
from .models import Record
from .store import MEMORY_PATH, ChunkDraft
from .store.integrity import (
    Access,
    ChunkValues,
    Examined,
    MemoryAccess,
    Names,
    TermsBasis,
    examine_records,
    examine_some,
    find_chunkless,
    find_damage,
    is_current,
    mark_stale,
    open_access,
    present_tables,
    read_terms_basis,
    repair_tables,
)
from .terms import describe_spans, holds_words
from .text import segmenter_version

ROUNDS = 5  # of finding and repairing, since some damage hides other
MARKED = 256  # records that are marked in one transaction
CHUNK_KINDS = frozenset({"chunk-missing", "chunk-wrong"})
# What changes chunks, or keeps them from being read.
HIDING = frozenset(
    {"table-missing", "table-damaged", "index-wrong", "chunk-orphan", "schema-version", "application-id"}
)

Clock = Callable[[], int]
Note = Callable[[str], object]


def find_all(access: Access, clock: Clock, *, quick: bool = False) -> list[Damage]:
    """Examine a file; `clock` gives microseconds. Nothing is written. Raises NotADatabaseError, StoreError."""
    found = list(find_damage(access, clock, quick=quick))
    if not is_current(access):
        return found
    if quick:
        return [*found, *find_chunkless(access, clock)]
    return [*found, *_judge_records(access, examine_records(access))[0]]


def examine_file(path: str, busy_timeout: float, clock: Clock, *, quick: bool = False) -> tuple[list[Damage], bool]:
    """Examine a file that need not be fit to be opened; tell, too, whether all was looked at: not if its schema is an
    older one, which opening it brings up to date. Raises NotADatabaseError, StoreUnavailableError.
    """
    with open_access(path, busy_timeout) as access:
        return find_all(access, clock, quick=quick), is_current(access)


def repair_file(path: str, busy_timeout: float, clock: Clock, note: Note | None = None) -> Repaired:
    """Repair what keeps a file from being opened, and all else that takes no segmenter."""
    with open_access(path, busy_timeout, repairs=True) as access:
        return _repair(access, clock, None, note)


def examine_memory(engine: Engine, *, quick: bool = False) -> list[Damage]:
    """Examine the file of an open memory."""
    with _reach(engine) as access:
        return find_all(access, engine.now, quick=quick)


@contextlib.contextmanager
def _reach(engine: Engine, *, repairs: bool = False) -> Iterator[Access]:
    """Give access to the file of an open memory."""
    if engine.store.path == MEMORY_PATH:
        yield MemoryAccess(engine.store.database)
        return
    engine.store.database.check_open()
    with open_access(engine.store.path, engine.settings.busy_timeout, repairs=repairs) as access:
        yield access


def repair_memory(engine: Engine, *, dry_run: bool = False, note: Note | None = None) -> Repaired:
    """Repair the file of an open memory, or say what would be done."""
    with _reach(engine, repairs=not dry_run) as access:
        if dry_run:
            return plan_repair(find_all(access, engine.now))
        return _repair(access, engine.now, engine, note)


def plan_repair(found: Sequence[Damage]) -> Repaired:
    """Say what a repair would do about damage."""
    plan = tuple(f"{one.problem}: {one.repair}" for one in found if one.repair is not None)
    return Repaired(dry_run=True, done=plan, left=tuple(one for one in found if one.repair is None), pending=-1)


def _repair(access: Access, clock: Clock, engine: Engine | None, note: Note | None) -> Repaired:
    done: list[str] = []

    def tell(lines: Iterator[str]) -> None:
        for line in lines:
            done.append(line)
            if note is not None:
                note(line)

    look = _Look(access, clock)
    found, before = look.find(), list[Damage]()
    for _ in range(ROUNDS):
        kinds = {one.kind for one in found if one.repair is not None}
        if engine is None:
            kinds -= CHUNK_KINDS
        if not kinds or found == before:
            break
        tell(repair_tables(access, kinds, clock))
        if engine is not None and kinds & CHUNK_KINDS:
            tell(_reindex(access, engine, look.wrong))
        before, found = found, look.find_again(kinds)
    if engine is not None:
        engine.refresh()
        engine.indexer.wake()
    pending = -1 if engine is None else engine.store.vectors.count_pending()
    return Repaired(dry_run=False, done=tuple(done), left=tuple(found), pending=pending)


class _Look:
    """Looks at a file again and again while it is repaired, but judges a text only once, and again if its chunks were
    made anew: that takes longest. `wrong` are the keys of the records whose chunks have to be.
    """

    def __init__(self, access: Access, clock: Clock) -> None:
        self.wrong: list[int] = []
        self._access = access
        self._clock = clock
        self._of_records: list[Damage] | None = None

    def find(self) -> list[Damage]:
        """Examine the file."""
        found = list(find_damage(self._access, self._clock))
        if not is_current(self._access):
            return found
        if self._of_records is None:
            self._of_records, self.wrong = _judge_records(self._access, examine_records(self._access))
        return [*found, *self._of_records]

    def find_again(self, repaired: Set[str]) -> list[Damage]:
        """Examine the file after some kinds of damage were repaired."""
        if repaired & HIDING:
            self._of_records = None
        elif repaired & CHUNK_KINDS and self._of_records is not None:
            again, self.wrong = _judge_records(self._access, examine_some(self._access, self.wrong))
            self._of_records = [*(one for one in self._of_records if one.kind not in CHUNK_KINDS), *again]
        return self.find()


def _reindex(access: Access, engine: Engine, wrong: Sequence[int]) -> Iterator[str]:
    """Cut and segment records anew whose chunks are not what they have to be."""
    records = examine_some(access, wrong)
    while some := list(islice(records, MARKED)):
        mark_stale(access, some)
    yield f"cut and segmented {engine.indexer.reindex_stale()} records anew"


def _judge_records(access: Access, records: Iterator[Examined]) -> tuple[list[Damage], list[int]]:
    """Name the records that can't be read or used, and those whose chunks don't say what they say; return the keys of
    the latter, too.
    """
    if "record" not in present_tables(access):
        return [], []
    unreadable, broken, wrong = Names(), Names(), list[int]()
    columns: dict[str, None] = {}
    by_kind = {kind: Names() for kind in sorted(CHUNK_KINDS)}
    basis = read_terms_basis(access)
    for one in records:
        if one.broken == "unreadable":
            unreadable.add(one.id)
        elif one.broken:
            broken.add(one.id)
            columns.update(dict.fromkeys(one.broken.split()))
        elif one.indexed and (kind := _judge(one, basis)) is not None:
            by_kind[kind].add(one.id)
            wrong.append(one.key)
    found = list[Damage]()
    if unreadable.count:
        found.append(make_damage("record-unreadable", unreadable.count, records=unreadable.names))
    if broken.count:
        found.append(make_damage("record-broken", broken.count, detail=", ".join(columns), records=broken.names))
    found += [make_damage(kind, names.count, records=names.names) for kind, names in by_kind.items() if names.count]
    return found, wrong


def _judge(one: Examined, basis: TermsBasis) -> str | None:
    """Return the kind of damage that an indexed record's chunks have."""
    if one.record is None or one.chunks is None:
        return None
    if not one.chunks:
        return "chunk-missing"
    spans = [(chunk.start, chunk.stop) for chunk in one.chunks]
    length = len(one.record.text)
    if not all(isinstance(n, int) for span in spans for n in span):
        return "chunk-wrong"
    if not one.current or not all(0 <= start <= stop <= length for start, stop in spans):
        return "chunk-wrong"
    wanted = describe_spans(one.record, spans, basis.words)
    comparable = basis.segmenter in (None, segmenter_version()) and not holds_words(one.record, basis.changed)
    for chunk, draft in zip(one.chunks, wanted, strict=True):
        if chunk.hash != draft.hash or (comparable and _terms(chunk) != _terms(draft)):
            return "chunk-wrong"
    if not _covers(one.record, spans):
        return "chunk-missing"
    return None if [chunk.place for chunk in one.chunks] == list(range(len(spans))) else "chunk-wrong"


def _covers(record: Record, spans: Sequence[tuple[int, int]]) -> bool:
    """Tell whether no text lies outside of all spans but space."""
    reached = 0
    for start, stop in sorted(spans):
        if record.text[reached:start].strip():
            return False
        reached = max(reached, stop)
    return not record.text[reached:].strip()


def _terms(chunk: ChunkValues | ChunkDraft) -> tuple[object, ...]:
    return chunk.tokens, chunk.latin, chunk.grams, chunk.words, chunk.labels
