"""A memory as seen from one scope: it reads and writes there and below, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Literal, Unpack

from . import drafting
from .context import render_context
from .engine import Progress, find_redaction, write_record, write_records
from .errors import InvalidInputError
from .filters import make_selection
from .hosting import Hosting
from .insight import Insight
from .lifecycle import Lifecycle
from .linking import attach_links
from .models import (
    Fusion,
    GivenVector,
    Hits,
    Json,
    Mode,
    NewRecord,
    OnDuplicate,
    Record,
    SearchArguments,
)
from .revision import UNCHANGED, Revision, revise
from .scoped import Where
from .scopes import join_scopes
from .searching import make_request
from .session import Session
from .text import detect_language
from .times import Time, from_micros
from .transfer import Transfer


class View(Lifecycle, Hosting, Insight, Transfer):
    """What a memory offers in one scope. `scope` arguments are paths below the view's own; records show full paths."""

    def add(
        self,
        text: str,
        *,
        id: str | None = None,
        scope: str = "",
        session: str | None = None,
        turn: int | None = None,
        role: str | None = None,
        kind: str = "memory",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Json] | None = None,
        payload: Json = None,
        source: str | None = None,
        importance: float = 0.5,
        created_at: Time | None = None,
        expires_at: Time | None = None,
        ttl: float | timedelta | None = None,
        vector: GivenVector | None = None,
        space: str | None = None,
        redact: bool | None = None,
        on_duplicate: OnDuplicate = "keep",
    ) -> Record:
        """Store a text and return it as a record; from then on it is durable and found by keyword.

        `metadata` can be filtered by and its strings are found by keyword; `payload` is any JSON, kept as it is.
        `vector` is an embedding made elsewhere, of the vector space named `space` (the memory's own by default), or one
        for each page of a text with form feeds in it, which no chunk crosses; the page most like a query counts.
        `redact` says whether secrets are taken out before anything is stored, None: as `Settings.redact` says.
        The same text twice in one scope is kept twice, unless `on_duplicate` says to `skip` it (the stored one is
        returned), to `touch` the stored one (it counts as updated now) or to `replace` that.

        Raises InvalidInputError, RecordExistsError if `id` is taken (unless on_duplicate is "replace"), and StoreError.
        """
        new = NewRecord(
            text=text, id=id, scope=scope, session=session, turn=turn, role=role, kind=kind, tags=tags,
            metadata=metadata, payload=payload, source=source, importance=importance, created_at=created_at,
            expires_at=expires_at, ttl=ttl, vector=vector, space=space, redact=redact, on_duplicate=on_duplicate,
        )  # fmt: skip
        return write_record(self._engine, self._base, new)

    def add_many(
        self, records: Iterable[NewRecord | Mapping[str, Json]], *, progress: Progress | None = None
    ) -> list[Record]:
        """Store many records, some hundred in a transaction, and return them in their order.

        A mapping has the arguments of `add`. `progress` is called after each batch with the number stored so far. An
        error stops before the batch it lies in; earlier batches stay stored.
        """
        return write_records(self._engine, self._base, records, progress)

    def search(
        self,
        query: str,
        *,
        scope: str = "",
        mode: Mode = "hybrid",
        limit: int = 10,
        where: Where | None = None,
        session: str | None = None,
        roles: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        min_relevance: float | None = None,
        min_similarity: float | None = None,
        fusion: Fusion = "default",
        alpha: float | None = None,
        recency: float | None = None,
        candidates: int | None = None,
        diversify: float | None = None,
        now: Time | None = None,
        vector: Sequence[float] | None = None,
        space: str | None = None,
    ) -> Hits:
        """Return the records that answer a query best, from `scope` and below. Any string is a valid query.

        Filters hold before the best are taken: `where` on metadata and fields, `session`, `roles` and `tags` (any of
        them), `since` <= created_at < `until`. `alpha` is the vector leg's share (1: vectors alone), `recency` that of
        the time decay, `diversify` from 0 to 1 how much repetition is avoided (among the best `candidates`, if given).
        `vector` replaces the query's embedding.
        If the vectors can't be searched, keywords answer, and `.degraded` of the result says why.
        """
        selection = make_selection(
            now=from_micros(self._engine.now()) if now is None else now, scope=join_scopes(self._base, scope),
            where=where, session=session, roles=roles, tags=tags, since=since, until=until,
        )  # fmt: skip
        request = make_request(
            self._engine, query, selection, mode=mode, limit=limit, fusion=fusion, alpha=alpha, recency=recency,
            candidates=candidates, diversify=diversify, min_relevance=min_relevance, min_similarity=min_similarity,
            vector=vector, space=space,
        )  # fmt: skip
        return attach_links(self._engine, self._base, self._engine.searcher.run(request), selection.now)

    def context(
        self,
        query: str,
        *,
        max_chars: int = 2000,
        language: str | None = None,
        nothing: str | None = None,
        **arguments: Unpack[SearchArguments],
    ) -> str:
        """Return a block for a prompt with what is remembered on a query, of at most `max_chars` characters.

        Takes the arguments of `search`; what is less relevant than `Settings.context_relevance` is left out unless
        `min_relevance` says otherwise. Labels are in `language`, "zh" or "en", by default the query's. If nothing is
        relevant, the block says so, or `nothing` is returned in its place.
        """
        if arguments.get("min_relevance") is None:
            arguments["min_relevance"] = self._engine.settings.context_relevance
        hits = self.search(query, **arguments)
        if nothing is not None and not hits:
            return nothing
        keywords_only = self._engine.embedder is not None and hits.degraded is not None and hits.mode == "keyword"
        return render_context(hits, language or detect_language(query), max_chars, keywords_only=keywords_only)

    def get(self, ids: str | Iterable[str]) -> list[Record]:
        """Return the records with these ids, in that order; ids that are not in this scope are passed over."""
        return self._engine.store.records.get(drafting.check_ids(ids), self._select())

    def update(
        self,
        id: str,
        *,
        text: str = UNCHANGED,
        scope: str = UNCHANGED,
        session: str | None = UNCHANGED,
        turn: int | None = UNCHANGED,
        role: str | None = UNCHANGED,
        kind: str = UNCHANGED,
        tags: Sequence[str] = UNCHANGED,
        metadata: Mapping[str, Json] | None = UNCHANGED,
        payload: Json = UNCHANGED,
        source: str | None = UNCHANGED,
        importance: float = UNCHANGED,
        created_at: Time = UNCHANGED,
        expires_at: Time | None = UNCHANGED,
        ttl: float | timedelta | None = UNCHANGED,
        vector: Sequence[float] = UNCHANGED,
        space: str | None = None,
        redact: bool | None = None,
    ) -> Record:
        """Change a record and return it. What is not given stays; metadata is replaced as a whole.

        `redact` concerns what is given, as in `add`.

        Raises RecordNotFoundError if the id is not in this scope.
        """
        revision = Revision(
            text=text, scope=scope, session=session, turn=turn, role=role, kind=kind, tags=tags, metadata=metadata,
            payload=payload, source=source, importance=importance, created_at=created_at, expires_at=expires_at,
            ttl=ttl, vector=vector, space=space, redact=redact,
        )  # fmt: skip
        return revise(self._engine, self._base, drafting.check_name(id, "id"), revision)

    def records(
        self,
        *,
        scope: str = "",
        where: Where | None = None,
        session: str | None = None,
        limit: int = 100,
        after: str | None = None,
        newest_first: bool | Literal["created_at"] = False,
        offset: int = 0,
    ) -> list[Record]:
        """Return records in the order of their ids, which is that of their making unless they were given; `after` is
        the last id of the page before. With `newest_first` those that were changed last come first, with
        `newest_first="created_at"` those that were made last. `offset` passes over so many; a long way into a large
        scope `after` is faster.
        """
        if newest_first not in (False, True, "created_at"):
            raise InvalidInputError(f'newest_first is a bool or "created_at", not {newest_first!r}')
        drafting.check_limit(limit)
        drafting.check_limit(offset, "offset")
        if after is not None:
            drafting.check_name(after, "after")
        return self._engine.store.records.page(
            self._select(scope, where, session), limit, after, newest_first=newest_first, offset=offset
        )

    def count(self, scope: str = "", where: Where | None = None) -> int:
        """Return the number of records."""
        return self._engine.store.records.count(self._select(scope, where))

    def scoped(self, scope: str) -> View:
        """Return a view that can't read or write outside of `scope`."""
        return View(self._engine, join_scopes(self._base, scope))

    def session(self, id: str, *, scope: str = "", title: str | None = None, redact: bool | None = None) -> Session:
        """Return the conversation `id` of exactly this scope; a `title` is stored, redacted as the text of `add` is."""
        session = Session(self._engine, join_scopes(self._base, scope), drafting.check_name(id, "session"))
        if title is not None:
            checked = drafting.redact_string(drafting.check_text(title), find_redaction(self._engine, redact))
            self._engine.store.sessions.save(session.scope, session.id, checked, self._engine.now())
        return session

    def sessions(self, scope: str = "") -> list[Session]:
        """Return the conversations in a scope and below, the last active one first."""
        infos = self._engine.store.sessions.page(self._select(scope))
        return [Session(self._engine, info.scope, info.id) for info in infos]
