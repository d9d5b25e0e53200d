"""How memories go: into the trash and back, or for good, so that nothing of them is left in the file."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from .engine import Engine, Progress
from .errors import ClosedError, StoreError
from .filters import Selection, restricts_records
from .models import Forgotten, Record
from .store import SessionKey
from .times import MICROS_PER_DAY

logger = logging.getLogger("recall_core")

BATCH = 256  # records that are deleted in one transaction
PURGED = 256  # records whose time in the trash is over that a deletion takes along at least, if there are so many
SAMPLE = 10  # records that `forget` shows
# Up to so many chunks the terms of deleted and changed texts are cleared when a memory is closed: it takes 0.2 s then.
CLEARED_AT_CLOSE = 20_000


def delete_records(
    engine: Engine, ids: Sequence[str], selection: Selection, *, hard: bool, keeping: Iterable[SessionKey] = ()
) -> int:
    """Delete the selected ones of these records, into the trash or for good (from there, too); return how many ids. The
    titles of sessions that hold no record any more go with them, but for those worth `keeping`.
    """
    store = engine.store
    if not is_final(engine, hard):
        with store.records.transaction():
            sessions = store.sessions.holding(ids)
            moved = store.trash.put(ids, selection, engine.now())
            store.sessions.drop_bare(set(sessions) - set(keeping))
            purge_trash(engine, max(PURGED, moved))
        return moved
    with store.records.transaction():
        count = store.trash.count_ids(ids, selection)
        sessions = store.sessions.holding(ids)
        store.records.delete(ids, selection)
        store.sessions.drop_bare(set(sessions) - set(keeping))
        while store.trash.delete(selection, BATCH, ids):
            pass
    if count or store.remains.count():  # what an interrupted call has left
        erase(engine)
    return count


def delete_session(engine: Engine, scope: str, session: str, *, hard: bool) -> int:
    """Delete a session with its messages, into the trash or for good (from there, too); return how many messages."""
    store = engine.store
    if not is_final(engine, hard):
        with store.records.transaction():
            moved = store.trash.put_session(scope, session, engine.now())
            purge_trash(engine, max(PURGED, moved))
        return moved
    with store.records.transaction():
        deleted = store.sessions.delete(scope, session)
        store.trash.delete_session(scope, session)
    erase(engine)
    return deleted


def forget_records(
    engine: Engine, selection: Selection, *, hard: bool, dry_run: bool, progress: Progress | None = None
) -> Forgotten:
    """Delete all selected records, some hundred in a transaction, or only say which those are."""
    store, hard = engine.store, is_final(engine, hard)
    sample = tuple(store.records.page(selection, SAMPLE, None))
    if dry_run:
        count = store.records.count(selection) + (store.trash.count(selection) if hard else 0)
        return Forgotten(count=count, sample=sample, hard=hard, dry_run=True)
    count, after = 0, None
    while page := store.records.page(selection, BATCH, after):
        ids, after = [record.id for record in page], page[-1].id
        with store.records.transaction():
            sessions = store.sessions.holding(ids)
            if hard:
                count += store.records.delete(ids, selection)
            else:
                count += store.trash.put(ids, selection, engine.now())
                purge_trash(engine, PURGED)
            store.sessions.drop_bare(sessions)
        if progress is not None:
            progress(count)
    if hard:
        store.sessions.drop_bare(store.trash.sessions(selection))
        if not restricts_records(selection):  # of sessions that never held a message, too
            store.cleaning.drop_titles(selection.scope, engine.now() + 1)
        while deleted := store.trash.delete(selection, BATCH):
            count += deleted
        erase(engine)
    return Forgotten(count=count, sample=sample, hard=hard, dry_run=False)


def restore_records(engine: Engine, ids: Sequence[str], selection: Selection) -> list[Record]:
    """Bring the selected ones of these records back from the trash, all or none; raises RecordExistsError."""
    store = engine.store
    entries = store.trash.newest(ids, selection)
    prepared = [(entry, engine.indexer.prepare(entry.record)) for entry in entries]  # takes long: outside the lock
    with store.records.transaction():
        renewed = [(entry, engine.indexer.renew(entry.record, chunks)) for entry, chunks in prepared]
        restored = [store.trash.restore(entry, chunks) for entry, chunks in renewed]
        stored = [one for one in restored if one is not None]
        keys = [key for one in stored for key in one.chunk_keys]
        claim = engine.indexer.claim(keys)
    engine.indexer.embed(keys, claim)
    return [one.record for one in stored]


def purge_trash(engine: Engine, limit: int) -> int:
    """Delete for good up to `limit` records whose time in the trash is over; return how many."""
    return engine.store.trash.purge(engine.now() - int(engine.settings.trash_days * MICROS_PER_DAY), limit)


def is_final(engine: Engine, hard: bool) -> bool:
    """Tell whether a deletion is for good."""
    return hard or engine.settings.trash_days == 0


def erase(engine: Engine) -> None:
    """Clear what deleted records have left in the file. A warning says so if that has to wait."""
    store = engine.store
    if store.database.is_writing():  # part of somebody's transaction: it is noted in the file that this is to be done
        return
    engine.cache.clear()
    try:
        if not store.remains.clear_terms():
            logger.warning("%s: words of deleted texts stay until recall doctor --repair has been finished", store.path)
        if store.remains.has_codes():
            for space in store.vectors.spaces():
                while store.index.refresh(space, at_once=True):
                    pass
        store.remains.clear_log()
    except StoreError as error:
        logger.warning(
            "%s: what was deleted is not yet overwritten everywhere in the file (%s); later deletions do it",
            store.path,
            error,
        )


def tidy(engine: Engine, timeout: float) -> None:
    """Before a file is closed, clear the terms of deleted and changed texts if that takes no time to speak of, and for
    at most `timeout` seconds.
    """
    remains = engine.store.remains
    try:
        if remains.count() and remains.count_chunks(CLEARED_AT_CLOSE + 1) <= CLEARED_AT_CLOSE:
            remains.clear_terms(timeout)
    except ClosedError:  # in a forked child, whose parent has the file
        return
    except StoreError as error:
        logger.info("%s: the words of deleted texts stay in the keyword index for now (%s)", engine.store.path, error)
