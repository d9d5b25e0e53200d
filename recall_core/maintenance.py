"""What keeps a file in shape over the years: cleaned up, small, copied, indexed anew, repaired. What does the work is
imported where it is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from .engine import Engine
from .errors import InvalidInputError
from .filters import Selection, make_selection, parse_where
from .scoped import Where
from .times import Time, from_micros
from .words import check_words

if TYPE_CHECKING:
    from .damage import Repaired
    from .reports import BackedUp, CleanedUp, Reindexed, Vacuumed

Progress = Callable[[int, int], object]


class Maintenance:
    """The part of a `Memory` that looks after its file. `progress` is called with what is done and what there is."""

    _engine: Engine

    def cleanup(
        self,
        *,
        expired: bool = True,
        older_than: timedelta | Time | None = None,
        below_importance: float | None = None,
        idle_sessions: timedelta | Time | None = None,
        per_scope_cap: int | None = None,
        scope: str = "",
        where: Where | None = None,
        dry_run: bool = False,
        hard: bool = False,
        progress: Progress | None = None,
    ) -> CleanedUp:
        """Delete what is not wanted any more, each for a reason that is enough by itself: what has `expired`; what was
        made before `older_than`, a moment or how long ago; what is below an importance; `idle_sessions`, in which
        nothing was said since then; the oldest of each scope that holds more than `per_scope_cap`. `scope` and `where`
        say of which records. A `dry_run` counts, and deletes nothing.

        A session goes as a whole, or not at all: the reason has to hold for all of its messages, and a cap cuts none.
        Only expired messages go one by one. Deleted records go to the trash unless `hard`; expired ones go for good,
        and with them what was in the trash for `Settings.trash_days`. Raises InvalidInputError.
        """
        from .cleaning import Rules, check_rules, clean_up, find_moment

        now = self._engine.now()
        rules = Rules(
            scope=scope,
            where=parse_where(where),
            expired=expired,
            created_before=find_moment(older_than, now, "older_than"),
            idle_since=find_moment(idle_sessions, now, "idle_sessions"),
            below_importance=below_importance,
            per_scope_cap=per_scope_cap,
        )
        return clean_up(self._engine, check_rules(rules), dry_run=dry_run, hard=hard, progress=progress)

    def vacuum(self, *, progress: Progress | None = None) -> Vacuumed:
        """Make the file as small as what it holds: the keyword index is merged, the codes are cleared of what is gone,
        and the file is written anew without free pages.

        Readers go on meanwhile, also in other processes; writers wait for that last step, about a second for each few
        hundred megabytes. It takes as much room again for the log beside the file, and for a temporary file. Raises
        StoreUnavailableError if there is less, before anything is done. `progress` is told of steps.
        """
        from .vacuuming import vacuum

        return vacuum(self._engine, progress)

    def backup(self, path: str | Path, *, force: bool = False, progress: Progress | None = None) -> BackedUp:
        """Copy the memory, as it is at this moment, to the file at `path`, and verify the copy; all others go on.

        The file is readable by its owner only. It appears under its name at the end; one that is there already stays
        unless `force` is set. Whatever interrupts this leaves no half file. `progress` is told of pages. Raises
        InvalidInputError, and StoreUnavailableError if it can't be written or the memory is damaged.
        """
        from .backup import back_up

        return back_up(self._engine, path, force=force, progress=progress)

    def reindex(
        self,
        *,
        keywords: bool = True,
        vectors: bool = True,
        words_only: bool = False,
        scope: str = "",
        where: Where | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Reindexed:
        """Make the indexes anew: that of `keywords` from the texts, with the present segmenter and dictionary, and that
        of `vectors` from those that are stored. No text is embedded. Searches and writers go on meanwhile.

        With `words_only` just the records that hold a word which was added to the dictionary, or removed, since they
        were indexed; with `scope` and `where` just the keywords of those records. A `dry_run` counts the records.
        Killed at any moment, it goes on from there when it is called again. Raises InvalidInputError, StoreError.
        """
        from .reindexing import reindex_keywords, reindex_selected, reindex_vectors, reindex_words
        from .reports import Reindexed

        engine = self._engine
        selection = make_selection(now=from_micros(engine.now()), scope=scope, where=where)
        selection = Selection(scope=scope, where=selection.where, now=selection.now, ignores_expiry=True)
        selects = scope != "" or selection.where is not None
        if words_only and selects:
            raise InvalidInputError("words_only finds its records itself; leave scope and where out")
        if words_only:
            return reindex_words(engine, progress, dry_run=dry_run)
        if dry_run:
            return Reindexed(records=engine.store.records.count(selection) if keywords else 0, dry_run=True)
        found = Reindexed()
        if keywords:
            found = reindex_selected(engine, selection, progress) if selects else reindex_keywords(engine, progress)
        if vectors and not selects:
            found = replace(found, vectors=reindex_vectors(engine, progress).vectors)
        engine.refresh()
        return found

    def repair(self, *, dry_run: bool = False, progress: Callable[[str], object] | None = None) -> Repaired:
        """Make again what is damaged and can be made from the truth: indexes, chunks, codes, what waits for a vector.

        Records, links, the trash, vectors that callers brought and the dictionary are never changed; their damage is
        named in `left`. Each step is told to `progress` and `done`; `dry_run` only says what would be done. Other
        processes may go on meanwhile. Interrupted at any moment, it goes on when it is called again.
        """
        from .integrity import repair_memory

        return repair_memory(self._engine, dry_run=dry_run, note=progress)

    def words(self) -> list[str]:
        """Return the words of the user dictionary, sorted."""
        return sorted(self._engine.dictionary.follow().words)

    def add_words(
        self, words: str | Iterable[str], *, reindex: bool = True, progress: Progress | None = None
    ) -> Reindexed:
        """Add words to the dictionary of the file: each is a term of its own in the keyword index and in queries, from
        now on and in all processes. The records that hold one are indexed anew, no others; with `reindex` False that
        is left to a later `reindex(words_only=True)`. Calling this again finishes what was interrupted.

        Raises InvalidInputError, StoreError.
        """
        return self._change_words(check_words(words), (), reindex, progress)

    def remove_words(
        self, words: str | Iterable[str], *, reindex: bool = True, progress: Progress | None = None
    ) -> Reindexed:
        """Remove words from the dictionary of the file, as `add_words` adds them; unknown ones are passed over."""
        return self._change_words((), check_words(words), reindex, progress)

    def _change_words(
        self, add: tuple[str, ...], remove: tuple[str, ...], reindex: bool, progress: Progress | None
    ) -> Reindexed:
        from .reindexing import reindex_words
        from .reports import Reindexed

        changed = self._engine.store.dictionary.change(add, remove)
        found = reindex_words(self._engine, progress) if reindex else Reindexed()
        return replace(found, added=changed.added, removed=changed.removed)
