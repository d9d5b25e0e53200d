"""Stores what a source finds, batch by batch; what can't be stored costs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from ..drafting import check_name, check_text, make_record, redact_string
from ..embedding_queue import Claim
from ..engine import Engine, Progress, find_redaction, make_draft, write_drafts
from ..errors import InvalidInputError, RecallError, RecordExistsError, VectorError
from ..filters import Selection
from ..ids import derive_dated_id
from ..models import NewRecord, OnDuplicate
from ..reindexing import reindex_words
from ..scopes import join_scopes
from ..store import Draft, Taken
from ..times import from_micros, to_micros
from ..words import check_words
from .entries import Damaged, Entry, Item, LinkEntry, Skipped, TitleEntry, VectorEntry, WordEntry
from .formats import find_source
from .input import Input, open_input
from .lines import LineSource
from .report import Imported, Tally
from .restoring import Restoring

MAX_BATCH = 256  # records in one transaction
EXPIRED = "expired"
TOO_OLD = "older than asked for"
DELETED = "deleted since, restore them with recall restore"
WHOLE_FILE = "dictionary words, which only a whole memory takes"
NO_END = "links to records that are not here"
ELSEWHERE = "the id is taken by a record outside of the scope"

OnTaken = Literal[OnDuplicate, "error"]
Notice = Callable[[Damaged], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to import. `strict_ids`: a record whose own id is taken fails, though `on_duplicate` would keep the stored
    one, and one without an id is compared by its text where `on_duplicate` says so.
    """

    on_duplicate: OnTaken = "keep"
    since: int | None = None  # microseconds
    dry_run: bool = False
    batch: int = MAX_BATCH
    redact: bool | None = None
    keeps_extra: bool = False
    strict_ids: bool = False


@dataclass(frozen=True, slots=True)
class Hooks:
    """What is called on the way: after each batch, with what can't be stored, and when it is interrupted."""

    progress: Progress | None = None
    notice: Notice | None = None
    stopped: Callable[[Imported], object] | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """An entry as it is to be stored."""

    entry: Entry
    draft: Draft


def import_file(
    engine: Engine, base: str, target: str | Path | BinaryIO | Input, format: str, options: Options, hooks: Hooks
) -> Imported:
    """Store what a file holds below `base`. Raises InvalidInputError if nothing of it can be read."""
    _check(options)
    with nullcontext(target) if isinstance(target, Input) else open_input(target) as file:
        source = find_source(file, format, keeps_extra=options.keeps_extra)
        options = replace(options, strict_ids=source.name == LineSource.name)
        running = Import(engine, base, options, hooks, Tally(source.name, options.dry_run))
        try:
            return running.run(source.read(file))
        except BaseException:
            if hooks.stopped is not None:
                hooks.stopped(running.tally.report())
            raise


def _check(options: Options) -> None:
    choices = (*get_args(OnDuplicate), "error")
    if options.on_duplicate not in choices:
        raise InvalidInputError(f"on_duplicate is {options.on_duplicate!r}; choose one of {', '.join(choices)}")
    batch = options.batch
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= MAX_BATCH:
        raise InvalidInputError(f"batch is a number from 1 to {MAX_BATCH}, not {batch!r}")


@dataclass(slots=True)
class Import:
    """One import into a scope of a memory, running."""

    engine: Engine
    base: str
    options: Options
    hooks: Hooks
    tally: Tally
    _flying: Sequence[_Ready] = ()  # what is being stored, and not counted yet
    _titled: set[tuple[str, str]] = field(default_factory=set)
    _restoring: Restoring = field(init=False)
    _words: list[str] = field(default_factory=list)  # not added to the dictionary yet
    _links: list[LinkEntry] = field(default_factory=list)  # whose records are not all there yet
    _pretended: set[str] = field(default_factory=set)  # ids that a dry run has counted

    def __post_init__(self) -> None:
        self._restoring = Restoring(self.engine)

    def run(self, items: Iterable[Item]) -> Imported:
        """Store all items and say what became of them."""
        batch: list[Entry] = []
        try:
            for item in self._until_damage(items):
                self._take(item, batch)
                if len(batch) >= self.options.batch:
                    self._settle(batch)
                    batch = []
            self._settle(batch)
            self._add_words()
            self._save_links()
            if self.tally.words and not self.options.dry_run:
                reindex_words(self.engine)  # the records that were here before
        except BaseException:
            self._count_flying()
            raise
        return self.tally.report()

    def _until_damage(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items; if the rest of a file can't be read, that is damage as any other. Raises InvalidInputError if
        all of it can't.
        """
        try:
            yield from items
        except InvalidInputError as error:
            if not (self.tally.read or self.tally.failed):
                raise
            yield Damaged(str(error))

    def _take(self, item: Item, batch: list[Entry]) -> None:
        match item:
            case Entry():
                self.tally.read += 1
                self._add_words()
                if (entry := self._identify(item)) is not None:
                    batch.append(entry)
            case TitleEntry():
                self._save_title(item)
            case WordEntry():
                self._words.append(item.word)
            case LinkEntry():
                self._links.append(item)
            case Skipped():
                self.tally.read += 1
                self.tally.skip(item.reason)
            case Damaged():
                self._fail(item)

    def _identify(self, entry: Entry) -> Entry | None:
        """Return an entry with the id that it is known by, None if it is left out, or can't be stored."""
        self.tally.ignored.update(dict.fromkeys(entry.ignored))
        new = replace(entry.record, on_duplicate=_draft_choice(self.options.on_duplicate), redact=self.options.redact)
        try:
            created = None if new.created_at is None else to_micros(new.created_at, "created_at")
            scope = join_scopes(self.base, new.scope)
            if _has_expired(entry, self.engine.now()):
                self.tally.skip(EXPIRED)
                return None
        except InvalidInputError as error:
            self._fail(Damaged(str(error), entry.line))
            return None
        if created is not None and self.options.since is not None and created < self.options.since:
            self.tally.skip(TOO_OLD)
            return None
        if new.id is None and entry.key is not None and not self._goes_by_text():
            new = replace(new, id=derive_dated_id(created, self.tally.format, scope, entry.key))
        return replace(entry, record=new)

    def _goes_by_text(self) -> bool:
        """Tell whether lines without ids are compared with what is stored by their texts."""
        return self.options.strict_ids and self.options.on_duplicate in ("skip", "touch", "replace")

    def _settle(self, batch: Sequence[Entry]) -> None:
        """Store a batch, apart from what is there."""
        replaces = self.options.on_duplicate == "replace"
        taken = self.engine.store.records.find_taken(
            [entry.record.id for entry in batch if entry.record.id is not None]
        )
        seen = dict(taken)
        left = []
        for entry in batch:
            id, here = entry.record.id, Taken(join_scopes(self.base, entry.record.scope), deleted=False)
            if id in seen and not (replaces and seen[id] == here):
                self._settle_taken(entry, here.scope, seen[id])
            elif (ready := self._prepare(entry)) is not None:
                left.append(ready)
                if id is not None:
                    seen[id] = here  # of two in a file the first one counts, unless the second is to replace it
        if self.options.dry_run:
            self._pretend(left, taken)
        elif left:
            self._store(left, taken)
        if self.hooks.progress is not None and batch:
            self.hooks.progress(self.tally.read)

    def _prepare(self, entry: Entry) -> _Ready | None:
        """Return an entry ready to be stored, None if it can't be."""
        try:
            draft = self._make_draft(entry.record)
            record = draft.record
            if entry.updated_at is not None:
                record = replace(record, updated_at=from_micros(to_micros(entry.updated_at, "updated_at")))
            if entry.accessed_at is not None:
                record = replace(record, accessed_at=from_micros(to_micros(entry.accessed_at, "accessed_at")))
        except InvalidInputError as error:
            self._fail(Damaged(str(error), entry.line))
            return None
        return _Ready(entry, replace(draft, record=record))

    def _make_draft(self, new: NewRecord) -> Draft:
        if not self.options.dry_run:
            return make_draft(self.engine, self.base, new)
        # What takes long, cutting and segmenting, is left out.
        return Draft(record=make_record(new, self.base, self.engine.now()), chunks=(), named=new.id is not None)

    def _settle_taken(self, entry: Entry, scope: str, taken: Taken) -> None:
        choice = self.options.on_duplicate
        if taken.deleted:
            self.tally.skip(DELETED)
        elif choice == "error" or (self.options.strict_ids and entry.key is None and choice != "skip"):
            self._fail(Damaged(f"the id {entry.record.id!r} is taken (see --on-duplicate)", entry.line))
        elif taken.scope == scope:
            self.tally.present += 1
        else:
            self.tally.skip(ELSEWHERE)

    def _pretend(self, batch: Sequence[_Ready], taken: Mapping[str, Taken]) -> None:
        """Count what would be stored."""
        for ready in batch:
            id = ready.draft.record.id
            if id in self._pretended:
                self.tally.present += 1
            elif self.options.on_duplicate == "replace" and id in taken:
                self.tally.replaced += 1
            else:
                self.tally.added += 1
            if ready.draft.named:
                self._pretended.add(id)

    def _store(self, batch: Sequence[_Ready], taken: Mapping[str, Taken]) -> None:
        """Store entries in one transaction. If one of them is refused, the halves are tried, down to that one."""
        try:
            self._flying = batch
            keys, claim = self._write(batch, taken)
        except (InvalidInputError, RecordExistsError, VectorError) as error:
            self._flying = ()
            if len(batch) > 1:
                middle = len(batch) // 2
                self._store(batch[:middle], taken)
                self._store(batch[middle:], taken)
            elif isinstance(error, RecordExistsError):  # by another process, since we looked
                record = batch[0].draft.record
                taken_now = self.engine.store.records.find_taken([record.id])
                self._settle_taken(batch[0].entry, record.scope, taken_now[record.id])
            else:
                self._fail(Damaged(str(error), batch[0].entry.line))
            return
        self.engine.indexer.embed(keys, claim)  # what takes long comes when all is counted

    def _write(self, batch: Sequence[_Ready], taken: Mapping[str, Taken]) -> tuple[list[int], Claim]:
        """Store entries with their vectors and titles in one transaction, and count them."""
        engine = self.engine
        with engine.store.records.transaction():
            stored = write_drafts(engine, [ready.entry.record for ready in batch], [ready.draft for ready in batch])
            vectors = 0
            for ready, result in zip(batch, stored, strict=True):
                self._save_title_of(ready)
                vectors += self._restoring.save(ready.draft, result, self._usable_vectors(ready))
            self._restoring.refresh()
            keys = [key for result in stored for key in result.chunk_keys]
            claim = engine.indexer.claim(keys)
        self._flying = ()
        self.tally.vectors += vectors
        for ready, result in zip(batch, stored, strict=True):
            id = ready.draft.record.id
            if result.record.id == id and id not in taken:
                self.tally.added += 1
            elif result.record.id != id and self.options.on_duplicate == "skip":
                self.tally.present += 1
            else:
                self.tally.replaced += 1
        return keys, claim

    def _save_title_of(self, ready: _Ready) -> None:
        record, title = ready.draft.record, ready.entry.title
        if title and record.session is not None:
            self._add_title(record.scope, record.session, title, to_micros(record.created_at))

    def _save_title(self, entry: TitleEntry) -> None:
        try:
            scope = join_scopes(self.base, entry.scope)
            session = check_name(entry.session, "session")
            now = self.engine.now()
            created_at = now if entry.created_at is None else to_micros(entry.created_at, "created_at")
            if not self.options.dry_run:
                self._add_title(scope, session, entry.title, created_at)
        except InvalidInputError as error:
            self._fail(Damaged(str(error), entry.line))

    def _add_title(self, scope: str, session: str, title: str, created_at: int) -> None:
        """Store a title, unless the session has one."""
        if (scope, session) in self._titled:
            return
        self._titled.add((scope, session))
        title = redact_string(check_text(title), find_redaction(self.engine, self.options.redact))
        if title:
            self.engine.store.sessions.add(scope, session, title, created_at, self.options.on_duplicate == "replace")
            self.tally.sessions += 1

    def _usable_vectors(self, ready: _Ready) -> Sequence[VectorEntry]:
        """Return the vectors of an entry, none if its text was changed on the way."""
        return ready.entry.vectors if ready.draft.record.text == ready.entry.record.text else ()

    def _add_words(self) -> None:
        """Add words to the dictionary, before the records that hold them are indexed."""
        if not self._words:
            return
        words, self._words = self._words, []
        if self.base:
            for _ in words:
                self.tally.skip(WHOLE_FILE)
        elif self.options.dry_run:
            self.tally.words += len(set(words) - self.engine.dictionary.follow().words)
        else:
            self.tally.words += len(self.engine.store.dictionary.change(check_words(words), ()).added)

    def _save_links(self) -> None:
        """Store the links whose records are both there, in the scope."""
        selection = Selection(scope=self.base, now=self.engine.now())
        while self._links and not self.options.dry_run:
            page, self._links = self._links[:MAX_BATCH], self._links[MAX_BATCH:]
            ids = sorted({id for link in page for id in (link.source, link.target)})
            with self.engine.store.records.transaction():
                there = {record.id for record in self.engine.store.records.get(ids, selection)}
                for link in page:
                    self._save_link(link, there)

    def _save_link(self, link: LinkEntry, there: Set[str]) -> None:
        if not {link.source, link.target} <= there or link.source == link.target:
            self.tally.skip(NO_END)
            return
        try:
            created_at = to_micros(link.created_at, "created_at")
            self.engine.store.links.save(link.source, link.target, check_name(link.kind, "kind"), created_at)
            self.tally.links += 1
        except InvalidInputError as error:
            self._fail(Damaged(str(error), link.line))

    def _count_flying(self) -> None:
        """Count what was stored, though the import was interrupted before it could say so."""
        flying = {ready.draft.record.id: ready.draft.record for ready in self._flying}
        with suppress(RecallError):
            everything = Selection(now=0, ignores_expiry=True)
            for found in self.engine.store.records.get(list(flying), everything):
                written = flying[found.id]
                self.tally.added += (found.text, found.updated_at) == (written.text, written.updated_at)

    def _fail(self, damage: Damaged) -> None:
        self.tally.fail(damage)
        if self.hooks.notice is not None:
            self.hooks.notice(damage)


def _has_expired(entry: Entry, now: int) -> bool:
    expires_at = entry.record.expires_at
    return expires_at is not None and to_micros(expires_at, "expires_at") <= now


def _draft_choice(choice: OnTaken) -> OnDuplicate:
    """Return what the store is to do; that an id is taken is settled before."""
    return "keep" if choice == "error" else choice
