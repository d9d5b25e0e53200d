"""Relations between memories: an error and its solution, a decision and what it replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .engine import Engine
from .errors import InvalidInputError, RecordNotFoundError
from .filters import Selection
from .models import Hits, Link

MOST_LINKS = 20  # that a hit shows


def link_records(engine: Engine, source: str, target: str, kind: str, selection: Selection) -> Link:
    """Link two selected records. Raises RecordNotFoundError, and InvalidInputError if they are the same."""
    if source == target:
        raise InvalidInputError(f"{source!r} can't be linked with itself; give two ids")
    with engine.store.records.transaction():
        check_records(engine, [source, target], selection)
        engine.store.links.save(source, target, kind, engine.now())
        found = engine.store.links.find([source], selection)
    return next(link for link in found if (link.source, link.target, link.kind) == (source, target, kind))


def unlink_records(engine: Engine, source: str, target: str, kind: str | None, selection: Selection) -> int:
    """Delete the links from one selected record to another, of one kind or of all; return how many there were."""
    with engine.store.records.transaction():
        if len(engine.store.records.get([source, target], selection)) < 2:
            return 0
        return engine.store.links.delete(source, target, kind)


def check_records(engine: Engine, ids: Sequence[str], selection: Selection) -> None:
    """Raise RecordNotFoundError if one of these records is not selected."""
    known = {record.id for record in engine.store.records.get(ids, selection)}
    missing = next((id for id in ids if id not in known), None)
    if missing is not None:
        raise RecordNotFoundError(
            f"no record with the id {missing!r} in the scope {selection.scope!r}; "
            "list what is there: recall list (View.records)"
        )


def attach_links(engine: Engine, base: str, hits: Hits, now: int) -> Hits:
    """Return hits with the links of their records, as far as both ends lie below `base` and have not expired."""
    if not hits:
        return hits
    links = engine.store.links.find([hit.record.id for hit in hits], Selection(scope=base, now=now))
    if not links:
        return hits
    of: dict[str, list[Link]] = {}
    for link in links:
        of.setdefault(link.source, []).append(link)
        of.setdefault(link.target, []).append(link)
    items = tuple(replace(hit, links=tuple(of.get(hit.record.id, ())[:MOST_LINKS])) for hit in hits)
    return replace(hits, items=items)
