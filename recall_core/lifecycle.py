"""The life of memories after they were stored: touched, linked, deleted, restored, forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from . import deletion, drafting, linking
from .engine import Progress
from .errors import InvalidInputError, RecordNotFoundError
from .filters import Selection, restricts_records
from .models import Deleted, Forgotten, Link, Record
from .revision import UNCHANGED
from .scoped import Scoped, Where
from .times import Time, from_micros, to_micros


class Lifecycle(Scoped):
    """What becomes of the memories of one scope. Ids that are not in it are passed over."""

    def delete(self, ids: str | Iterable[str], *, hard: bool = False) -> int:
        """Delete records; return how many were in this scope. From that instant on nothing shows them.

        They can be brought back with `restore` for `Settings.trash_days`. `hard` deletes them for good, from the trash
        too, and clears the file of their text and words; that takes longer the larger the file is.
        """
        selection = self._select(ignores_expiry=True)
        return deletion.delete_records(self._engine, drafting.check_ids(ids), selection, hard=hard)

    def restore(self, ids: str | Iterable[str]) -> list[Record]:
        """Bring deleted records back as they were, with their links, and return them; ids that can't be restored are
        passed over. Of an id that was deleted several times the last one is restored.

        Raises RecordExistsError if an id is taken; then none is restored.
        """
        return deletion.restore_records(self._engine, drafting.check_ids(ids), self._select())

    def deleted(self, *, scope: str = "", limit: int = 100, after: str | None = None) -> list[Deleted]:
        """Return what can be restored, the last deleted first; `after` is the last id of the page before.

        Raises RecordNotFoundError if nothing of the id `after` can be restored any more.
        """
        drafting.check_limit(limit)
        selection, trash = self._select(scope), self._engine.store.trash
        if after is not None and not trash.newest([drafting.check_name(after, "after")], selection):
            raise RecordNotFoundError(f"{after!r} can't be restored any more; begin again without after")
        return [
            Deleted(record=entry.record, deleted_at=from_micros(entry.deleted_at))
            for entry in trash.page(selection, limit, after)
        ]

    def forget(
        self,
        *,
        scope: str = "",
        where: Where | None = None,
        session: str | None = None,
        roles: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        everything: bool = False,
        hard: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Forgotten:
        """Delete all records that the arguments select, as those of `search` do; `dry_run` only counts and shows them.

        `hard` is as in `delete`: what was deleted before is included then. Records that have expired are, too.
        `progress` is called after each batch with the number deleted so far. Raises InvalidInputError if nothing
        restricts what is deleted, unless `everything` says that this is meant.
        """
        selection = self._select(
            scope, where, session, roles=roles, tags=tags, since=since, until=until, ignores_expiry=True
        )
        if not (everything or scope or _says_which(selection)):
            raise InvalidInputError(
                f"forget was given nothing to select by, so it would delete all memories of the scope {self.scope!r}; "
                "give where, scope, session, roles, tags, since or an until that has passed, or everything=True "
                "(recall forget --everything)"
            )
        return deletion.forget_records(self._engine, selection, hard=hard, dry_run=dry_run, progress=progress)

    def touch(
        self,
        ids: str | Iterable[str],
        *,
        importance: float = UNCHANGED,
        expires_at: Time | None = UNCHANGED,
        ttl: float | timedelta | None = UNCHANGED,
    ) -> int:
        """Set when records were last accessed to now, and, if given, their importance or expiry; return how many were
        in this scope. Nothing is indexed again, and `updated_at` stays.
        """
        now = self._engine.now()
        expires = expires_at is not UNCHANGED or ttl is not UNCHANGED
        ends = drafting.find_expiry(
            None if expires_at is UNCHANGED else expires_at, None if ttl is UNCHANGED else ttl, now
        )
        return self._engine.store.access.touch(
            drafting.check_ids(ids),
            self._select(),
            importance=None if importance is UNCHANGED else drafting.check_importance(importance),
            expires=expires,
            expires_at=None if ends is None else to_micros(ends),
        )

    def link(self, source: str, target: str, kind: str = "related") -> Link:
        """Relate two records: `kind` says what the source is to the target, such as "solves". A link that is there
        stays as it is.

        Raises RecordNotFoundError if one of them is not in this scope.
        """
        ids = drafting.check_name(source, "source"), drafting.check_name(target, "target")
        return linking.link_records(self._engine, *ids, drafting.check_name(kind, "kind"), self._select())

    def unlink(self, source: str, target: str, kind: str | None = None) -> int:
        """Delete the links from one record to another, of one kind or of all; return how many there were."""
        ids = drafting.check_name(source, "source"), drafting.check_name(target, "target")
        checked = None if kind is None else drafting.check_name(kind, "kind")
        return linking.unlink_records(self._engine, *ids, checked, self._select())

    def links(self, ids: str | Iterable[str]) -> list[Link]:
        """Return the links from and to records, the oldest first, as far as both ends are in this scope."""
        return self._engine.store.links.find(drafting.check_ids(ids), self._select())


def _says_which(selection: Selection) -> bool:
    """Tell whether a selection says which records of a scope are meant; by an end that is yet to come it does not."""
    coming = selection.until is not None and selection.until > selection.now
    return restricts_records(replace(selection, until=None) if coming else selection)
