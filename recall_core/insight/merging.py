"""Makes one record of several: nothing that one of them says is lost, and where it came from stays known."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..deletion import delete_records, erase, is_final
from ..drafting import check_text
from ..engine import Engine
from ..errors import InvalidInputError, RecordNotFoundError
from ..filters import Selection
from ..models import Json, Record
from ..revision import INDEXED_FIELDS
from ..store import OWN_SPACE
from ..text import split_sentences
from ..times import from_micros, to_micros
from .grouping import rank
from .similarity import find_paraphrases
from .values import Disagreement, Merge
from .wording import THRESHOLD, compare, covers, read_wording

SOURCES = "merged_from"  # the entry of the metadata that says what a record was made of
COMPARED_FIELDS = ("role", "kind", "source", "session", "payload")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a merge comes to: the record as it will be, what of other texts it gained, and where the records differ."""

    record: Record
    added: tuple[str, ...]
    disagreements: tuple[Disagreement, ...]


def merge_records(engine: Engine, base: str, ids: Sequence[str], into: str | None, dry_run: bool) -> Merge:
    """Merge records below `base` in one transaction, or only say what that would do."""
    now = engine.now()
    selection = Selection(scope=base, now=now)
    while True:  # chunks are made outside the lock, and made again if a record has changed meanwhile
        before = _find(engine, selection, ids)
        survivor = choose_survivor(before) if into is None else next(one for one in before if one.id == into)
        others = sorted((one for one in before if one.id != survivor.id), key=lambda one: (one.created_at, one.id))
        plan = plan_merge(survivor, others, now, find_paraphrases(engine.store, selection, survivor, others))
        gone = [one.id for one in others]
        if dry_run:
            links = engine.store.insight.links_of(gone, survivor.id)
            return Merge(
                record=plan.record, deleted=tuple(gone), added=plan.added, disagreements=plan.disagreements,
                links=len(links), dry_run=True,
            )  # fmt: skip
        found = _write(engine, selection, before, survivor, plan, gone)
        if found is not None:
            return found


def choose_survivor(records: Sequence[Record]) -> Record:
    """Return which of some records is left when they are merged: the one that says most, of equal ones the most
    important, of these the newest; but the newest of all where another stands against the one that says most.
    """
    wordings = {one.id: read_wording(one.text) for one in records}

    def order(one: Record) -> tuple[float, float, int, str]:
        return rank(len(wordings[one.id].tokens), one.importance, to_micros(one.created_at), one.id)

    best = min(records, key=order)
    compared = [compare(wordings[best.id], wordings[one.id], THRESHOLD) for one in records]
    if any(found is not None and found.conflict for found in compared):
        return min(records, key=lambda one: (-to_micros(one.created_at), order(one)))
    return best


def plan_merge(survivor: Record, others: Sequence[Record], now: int, same: Collection[str] = ()) -> Plan:
    """Return what becomes of a record that takes up others, the oldest first, at `now` (microseconds). `same` are the
    ids of those that say nothing else, though in other words.
    """
    text, added = join_texts(survivor.text, [one.text for one in others if one.id not in same])
    newest_first = others[::-1]
    metadata, disagreements = _join_metadata(survivor, newest_first)
    every = (survivor, *newest_first)
    expiries = [one.expires_at for one in every]
    accessed = [one.accessed_at for one in every if one.accessed_at is not None]
    payloads = [one.payload for one in every if one.payload is not None]
    record = replace(
        survivor,
        text=text,
        tags=tuple(dict.fromkeys(tag for one in every for tag in one.tags)),
        metadata={**metadata, SOURCES: _name_sources(survivor, others)},
        payload=payloads[0] if payloads else None,
        source=next((one.source for one in every if one.source is not None), None),
        importance=max(one.importance for one in every),
        created_at=min(one.created_at for one in every),
        updated_at=from_micros(now),
        accessed_at=max(accessed, default=None),
        expires_at=None if None in expiries else max(time for time in expiries if time is not None),
    )
    fields = [_compare_field(name, record, every) for name in COMPARED_FIELDS]
    against = _compare_texts(survivor, newest_first)
    found = [against, *fields, *disagreements]
    return Plan(record, added, tuple(one for one in found if one is not None))


def join_texts(text: str, others: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return a text with those sentences of others, each text on a line of its own, whose words it does not have yet;
    and what was added.
    """
    added = []
    for other in others:
        if covers(read_wording(text), read_wording(other), THRESHOLD):
            continue
        sentences = [other[start:end].strip() for start, end in split_sentences(other)]
        new = " ".join(sentence for sentence in sentences if sentence and not _holds(text, sentence))
        if new:
            added.append(new)
            text = f"{text.rstrip()}\n{new}"
    return text, tuple(added)


def _holds(text: str, sentence: str) -> bool:
    wording = read_wording(sentence)
    return (
        sentence in text
        or covers(read_wording(text), wording, THRESHOLD)
        or any(covers(read_wording(text[start:end]), wording, THRESHOLD) for start, end in split_sentences(text))
    )


def _find(engine: Engine, selection: Selection, ids: Sequence[str]) -> list[Record]:
    found = engine.store.records.get(ids, selection)
    missing = [id for id in ids if id not in {record.id for record in found}]
    if missing:
        raise RecordNotFoundError(f"no record with the id {missing[0]!r} in the scope {selection.scope!r}")
    scopes = sorted({record.scope for record in found})
    if len(scopes) > 1:
        raise InvalidInputError(
            f"the records lie in the scopes {scopes[0]!r} and {scopes[1]!r}; what is one person's is not merged with "
            "another's: move a record first, with update(id, scope=…)"
        )
    return found


def _write(
    engine: Engine, selection: Selection, before: Sequence[Record], survivor: Record, plan: Plan, gone: Sequence[str]
) -> Merge | None:
    """Write a merge, None if one of the records has changed since they were read."""
    store = engine.store
    check_text(plan.record.text)
    reindex = any(getattr(plan.record, name) != getattr(survivor, name) for name in INDEXED_FIELDS)
    chunks = engine.indexer.prepare(plan.record) if reindex else None
    with store.records.transaction():
        if store.records.get([one.id for one in before], selection) != list(before):
            return None
        # A vector that a caller brought stands for the record. That of the survivor is the best there is, still.
        given = store.insight.given_vectors(survivor.id) if plan.added else []
        stored = store.records.update(plan.record, chunks)
        for space, vector in given if stored.chunk_keys else ():
            store.vectors.save(space, {stored.chunk_keys[0]: vector}, settles=space.name == OWN_SPACE, given=True)
            store.index.refresh(space)
        links = store.insight.links_of(gone, survivor.id)
        store.insight.add_links(links)
        delete_records(engine, gone, selection, hard=False)
        claim = engine.indexer.claim(stored.chunk_keys)
    engine.indexer.embed(stored.chunk_keys, claim)
    if is_final(engine, False):  # without a trash they are gone at once
        erase(engine)
    return Merge(
        record=stored.record, deleted=tuple(gone), added=plan.added, disagreements=plan.disagreements,
        links=len(links), dry_run=False,
    )  # fmt: skip


def _join_metadata(survivor: Record, others: Sequence[Record]) -> tuple[dict[str, Json], list[Disagreement]]:
    """Return the survivor's metadata with what others have besides, and where they say something else."""
    joined = {name: value for name, value in survivor.metadata.items() if name != SOURCES}
    differing: dict[str, dict[str, Json]] = {}
    for other in others:
        for name, value in other.metadata.items():
            if name != SOURCES and joined.setdefault(name, value) != value:
                differing.setdefault(name, {})[other.id] = value
    return joined, [
        Disagreement(name=f"metadata.{name}", kept=joined[name], others=values) for name, values in differing.items()
    ]


def _name_sources(survivor: Record, others: Sequence[Record]) -> list[Json]:
    """Return what is kept of where the texts of merged records came from, with what these were themselves made of."""
    sources: list[Json] = []
    for one in (survivor, *others):
        known = one.metadata.get(SOURCES, [])
        sources += known if isinstance(known, list) else [known]
        if one is not survivor:
            sources.append(_name_source(one))
    return sources


def _name_source(record: Record) -> dict[str, Json]:
    facts: Mapping[str, Any] = {
        "id": record.id,
        "created_at": record.created_at.isoformat().replace("+00:00", "Z"),
        "source": record.source,
        "session": record.session,
        "turn": record.turn,
        "role": record.role,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _compare_field(name: str, kept: Record, every: Sequence[Record]) -> Disagreement | None:
    value = getattr(kept, name)
    others = {one.id: getattr(one, name) for one in every if getattr(one, name) not in (None, value)}
    return Disagreement(name=name, kept=value, others=others) if others else None


def _compare_texts(survivor: Record, others: Sequence[Record]) -> Disagreement | None:
    """Return which texts stand against the survivor's. They are joined all the same: somebody has to decide."""
    wording = read_wording(survivor.text)
    against = {}
    for one in others:
        found = compare(wording, read_wording(one.text), THRESHOLD)
        if found is not None and found.conflict:
            against[one.id] = one.text
    return Disagreement(name="text", kept=survivor.text, others=against) if against else None
