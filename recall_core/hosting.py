"""What adapters ask of a memory: a host's changes as one, and where its records lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import compress
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

from . import drafting
from .deletion import delete_records, erase
from .engine import find_redaction, make_drafts, write_drafts
from .errors import InvalidInputError
from .models import Json, NewRecord, Record
from .revision import Revision, revise_all
from .scoped import Scoped, Where
from .store import OWN_SPACE, SessionKey, Stored
from .times import from_micros

if TYPE_CHECKING:
    from .models import Vectors

NEAR = 10_000  # characters before the end of a part in which a better place to cut is looked for


class Hosting(Scoped):
    """The part of a view that serves the stores of agent frameworks."""

    def change(
        self,
        add: Iterable[NewRecord | Mapping[str, Json]] = (),
        delete: str | Iterable[str] = (),
        *,
        update: Mapping[str, Revision] | None = None,
        if_taken: Literal["raise", "skip"] = "raise",
    ) -> list[Record]:
        """Delete records for good, as `delete(hard=True)` does, store others, and change those whose ids `update` has,
        as the method `update` does, all in one transaction: all of it happens, or nothing. Return what was stored, then
        what was changed, in their order.

        With `if_taken="skip"` what has the id of a stored record is passed over and not returned, so that the same call
        can be made again. Ids to delete that are not in this scope are passed over.

        Raises InvalidInputError, RecordExistsError if an id is taken (unless on_duplicate is "replace"),
        RecordNotFoundError if an id of `update` is not in this scope, StoreError.
        """
        if if_taken not in ("raise", "skip"):
            raise InvalidInputError(f"if_taken is {if_taken!r}; choose raise or skip")
        engine, ids, revisions = self._engine, drafting.check_ids(delete), _check_revisions(update)
        if not isinstance(add, Iterable):
            raise InvalidInputError(f"add is an iterable of NewRecord values or mappings, not {add!r}")
        news, drafts = make_drafts(engine, self._base, list(add))

        def write() -> list[Stored]:
            if ids:
                going_on = {SessionKey(draft.record.scope, draft.record.session or "") for draft in drafts}
                delete_records(engine, ids, self._select(ignores_expiry=True), hard=True, keeping=going_on)
            if if_taken == "raise":
                return write_drafts(engine, news, drafts)
            found = engine.store.records.get([draft.record.id for draft in drafts], self._select())
            taken = {record.id for record in found}
            free = [draft.record.id not in taken for draft in drafts]
            return write_drafts(engine, list(compress(news, free)), list(compress(drafts, free)))

        stored = revise_all(engine, self._base, revisions, write)
        if ids:
            erase(engine)
        return [one.record for one in stored]

    def scopes(self, scope: str = "", where: Where | None = None) -> list[str]:
        """Return the scopes, `scope` and below, that hold records, sorted, as paths below the view's own."""
        found = self._engine.store.records.scopes(self._select(scope, where))
        return [path[len(self._base) :].removeprefix("/") for path in found]

    def period(self, scope: str = "", where: Where | None = None) -> tuple[datetime, datetime] | None:
        """Return when the first and the last record was made (`created_at`), None if there is no record."""
        found = self._engine.store.insight.period(self._select(scope, where))
        return None if found is None else (from_micros(found[0]), from_micros(found[1]))

    def vectors(self, ids: str | Iterable[str], *, space: str | None = None) -> dict[str, Vectors]:
        """Return the vectors of a space (the memory's own by default) by record id, each of shape (dimensions,): that
        of a record's first chunk, where the one that a caller brought for a whole record lies.

        Ids that are not in this scope, or have no vector there, are left out.
        """
        import numpy as np

        name = OWN_SPACE if space is None else drafting.check_space(space)
        seen = [record.id for record in self._engine.store.records.get(drafting.check_ids(ids), self._select())]
        return {
            stored.record_id: np.frombuffer(stored.data, dtype="<f4").copy()
            for stored in reversed(self._engine.store.vectors.of_records(seen))  # in reverse, so that the first stays
            if stored.space.name == name
        }

    def dimensions(self, space: str | None = None) -> int | None:
        """Return the length of the vectors of a space (the memory's own by default), None if there is no such space."""
        name = OWN_SPACE if space is None else drafting.check_space(space)
        found = self._engine.store.vectors.find_space(name)
        return None if found is None else found.dimensions

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors that the memory's own model gives passages, each of shape (dimensions,); none if it was
        opened without a model. Nothing is stored.

        Raises EmbeddingError.
        """
        embedder = self._engine.embedder
        return [] if embedder is None or not texts else list(embedder.embed_passages(texts))


def _check_revisions(update: Any) -> dict[str, Revision]:
    if not isinstance(update, Mapping | NoneType) or not all(
        isinstance(one, Revision) for one in (update or {}).values()
    ):
        raise InvalidInputError(f"update is a mapping of ids to Revision values, not {update!r}")
    return {drafting.check_name(id, "id"): revision for id, revision in (update or {}).items()}


def split_text(view: Hosting, text: str, *, redact: bool | None = None) -> list[str]:
    """Return a text in parts that each fit into a record, cut where a line or a word ends if one does near by. Secrets
    are taken out before, as `add` would: one that is cut in two would not be known.
    """
    if len(text) <= drafting.MAX_TEXT:
        return [text]
    text = drafting.redact_string(text, find_redaction(view._engine, redact))
    parts = []
    while len(text) > drafting.MAX_TEXT:
        near = text[drafting.MAX_TEXT - NEAR : drafting.MAX_TEXT]
        end = drafting.MAX_TEXT - NEAR + (near.rfind("\n") + 1 or near.rfind(" ") + 1 or NEAR)
        parts.append(text[:end])
        text = text[end:]
    return [*parts, text]


def prepare_search(view: Hosting) -> None:
    """Load the model and make what the first search of a view by meaning would wait for, while others search by words.

    Raises EmbeddingError.
    """
    view._engine.searcher.prepare(view.scope)


def count_waiting(view: Hosting) -> int:
    """Return how many chunks of a view's records wait for a vector."""
    return view._engine.store.pending.count_selected(view._select())
