"""What a view of a memory offers in insights; what does the work is imported where it is first used."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ..counts import Breakdown
from ..drafting import check_limit, check_name
from ..errors import InvalidInputError
from ..scoped import Scoped, Where
from ..times import Time, from_micros
from .periods import read_period
from .wording import THRESHOLD

if TYPE_CHECKING:
    from .values import GroupKind, Merge, SimilarGroup, Topic

MOST_DAYS = 36_525


class Insight(Scoped):
    """Insights into the records of one scope. Expired and deleted ones never count."""

    def similar(
        self,
        *,
        scope: str = "",
        where: Where | None = None,
        kind: GroupKind | None = None,
        threshold: float = THRESHOLD,
        limit: int = 20,
    ) -> list[SimilarGroup]:
        """Return groups of records that say the same ("duplicate"), or the same but for other numbers, a negation or
        another word in the same place ("conflict"). Duplicates come first, larger groups before smaller.

        Only records of the same scope, role and kind are compared: by their words, of which the shorter text shares
        `threshold` (0.5 to 1) with the longer in order, and by their vectors, which find other words for the same.
        Nothing is changed; `merge` does that.
        """
        from .similarity import find_similar
        from .values import GroupKind

        if kind not in (None, *get_args(GroupKind)):
            raise InvalidInputError(
                f"kind is {kind!r}; choose one of {', '.join(get_args(GroupKind))}, or None for all"
            )
        if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0.5 <= threshold <= 1:
            raise InvalidInputError(f"threshold is a number from 0.5 to 1, not {threshold!r}")
        selection = self._select(scope, where)
        return find_similar(self._engine.store, selection, kind, threshold, check_limit(limit))

    def merge(self, ids: Iterable[str], *, into: str | None = None, dry_run: bool = False) -> Merge:
        """Make one record of several of the same scope, and return what was done; `dry_run` only tells what would be.

        The record `into` is left, by default the one that says most, of equal ones the most important, then the newest.
        It gains the sentences of the others that it does not say yet, their tags, metadata that it does not have, and
        their links; it is as important as any of them, as old as the oldest, and expires with the last. The entry
        `merged_from` of its metadata says what it was made of. The others are deleted. All of it happens, or nothing.

        Raises RecordNotFoundError for an id that is not in this scope.
        """
        if isinstance(ids, str):
            raise InvalidInputError(f"ids are several ids of records, not the one string {ids!r}")
        wanted = [check_name(id, "id") for id in (*ids, *([] if into is None else [into]))]
        distinct = list(dict.fromkeys(wanted))
        if len(distinct) < 2:
            raise InvalidInputError(f"a merge takes two records or more, not {len(distinct)}")
        from .merging import merge_records

        return merge_records(self._engine, self._base, distinct, into, dry_run)

    def digest(
        self,
        *,
        since: Time | timedelta | None = None,
        until: Time | None = None,
        scope: str = "",
        where: Where | None = None,
        git: str | Path | None = None,
        language: str | None = None,
    ) -> str:
        """Return a report in Markdown on what was remembered from `since` (a time, or how long before `until`; by
        default 7 days) to `until` (now): decisions and errors first, by tag or kind, then by topic, with dates, ids and
        links. `git` is the path of a repository whose commits of the same days are set beside it.

        Labels are in `language`, "zh" or "en", by default that of what is remembered, which is shown as plain text.
        Raises InvalidInputError if there is no git program, or no repository.
        """
        start, end = read_period(since, until, self._engine.now(), timedelta(days=7))
        selection = self._select(scope, where, since=from_micros(start), until=from_micros(end))
        from .digest import check_language, make_digest
        from .git import read_commits

        check_language(language)
        commits = None if git is None else read_commits(git, start, end)
        return make_digest(self._engine, selection, commits, language)

    def breakdown(
        self,
        *,
        scope: str = "",
        where: Where | None = None,
        since: Time | None = None,
        until: Time | None = None,
        days: int = 7,
        limit: int = 1000,
    ) -> Breakdown:
        """Count records by scope, session, role, kind, tag and day: at most `limit` counts of each kind, the largest.

        `days` is the length of the periods whose numbers show the growth.
        """
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MOST_DAYS:
            raise InvalidInputError(f"days is a whole number from 1 to {MOST_DAYS}, not {days!r}")
        selection = self._select(scope, where, since=since, until=until)
        return self._engine.store.insight.count(selection, days, check_limit(limit))

    def topics(
        self,
        *,
        scope: str = "",
        where: Where | None = None,
        since: Time | timedelta | None = None,
        until: Time | None = None,
        limit: int = 20,
    ) -> list[Topic]:
        """Return what the records are about, the largest topic first: clusters by meaning and words, by words alone
        without vectors, named by the words that tell them apart. The same file gives the same answer.

        Topics are made of all records; how many are of the period from `since` to `until`, and of the one before, shows
        their growth. It is the last 30 days unless said otherwise; a timedelta says how long it is. Records that are
        like no other are in no topic.
        """
        period = read_period(since, until, self._engine.now(), timedelta(days=30))
        selection = self._select(scope, where)
        from .topics import find_topics

        return find_topics(self._engine.store, selection, *period, check_limit(limit))
