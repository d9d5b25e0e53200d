"""Groups of records that say the same, or the same but for something that stands against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..filters import Condition, Selection
from ..models import Record
from ..store import OWN_SPACE, SqliteStore, TextRow
from ..vectors import normalize
from ..whitening import lean_on, measure, whiten
from .grouping import group_around, rank
from .pairing import pair_by_vectors, pair_by_words, unite
from .values import GroupKind, Likeness, SimilarGroup
from .wording import THRESHOLD, Comparison, Wording, compare, least_meaning, read_wording

if TYPE_CHECKING:
    from ..models import Vectors

MEANING_FROM = 20  # different texts with vectors; of fewer it can't be said what they have in common
SAMPLE = 4_096  # vectors that the statistics are made from

SAYS_MOST = "it says most"
MORE_IMPORTANT = "of those that say the same, it is the most important"
NEWEST = "of those that say the same, it is the newest"
LATER = "it is the newest: what was said last may hold"


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts to group, each different one once: the rows that hold it, best first, its wording, and its part (records of
    one scope, role and kind: others are not compared). `vectors` are whitened, zeros where there is none.
    """

    rows: Sequence[TextRow]
    holders: Sequence[Sequence[int]]
    wordings: Sequence[Wording]
    parts: Sequence[int]
    vectors: Vectors | None
    has_vector: Sequence[bool]

    def best(self, text: int) -> TextRow:
        """Return the record that stands for a text."""
        return self.rows[self.holders[text][0]]

    def meaning(self, one: int, other: int) -> float | None:
        """Return the whitened cosine of two texts, None if one has no vector."""
        if self.vectors is None or not (self.has_vector[one] and self.has_vector[other]):
            return None
        return max(-1.0, min(1.0, float(np.vecdot(self.vectors[one], self.vectors[other]))))


@dataclass(frozen=True, slots=True)
class Found:
    """A group of texts around its centre, which comes first, with what each has to do with that."""

    kind: GroupKind
    texts: Sequence[int]
    comparisons: Sequence[Comparison]  # of the texts after the first


def find_similar(
    store: SqliteStore, selection: Selection, kind: GroupKind | None, threshold: float, limit: int
) -> list[SimilarGroup]:
    """Return groups of selected records: duplicates before conflicts, the larger groups first."""
    texts = read_texts(store, selection)
    duplicates, conflicts = group_texts(texts, threshold)
    found = [group for group in (*duplicates, *conflicts) if kind in (None, group.kind)]
    chosen = sorted(found, key=lambda group: _order(texts, group))[:limit]
    return list(_describe(store, selection, texts, chosen))


def read_texts(store: SqliteStore, selection: Selection) -> Texts:
    """Read the selected records and make them ready to be compared."""
    with store.database.read():
        rows = store.insight.texts(selection)
        raw = _read_raw(store, selection, rows)
    numbers: dict[tuple[str, str | None, str], int] = {}
    places: dict[tuple[int, Wording], list[int]] = {}
    for place, row in enumerate(rows):
        part = numbers.setdefault((row.scope, row.role, row.kind), len(numbers))
        places.setdefault((part, read_wording(row.text)), []).append(place)
    wordings = [wording for _, wording in places]
    holders = [
        sorted(found, key=lambda place: _rank(rows[place], wording))
        for wording, found in zip(wordings, places.values(), strict=True)
    ]
    order = sorted(range(len(wordings)), key=lambda text: (wordings[text].tokens, wordings[text].said))
    vectors = None if raw is None else _whiten(raw[[found[0] for found in holders]], order)
    has_vector = [] if vectors is None else np.any(vectors, axis=1).tolist()
    return Texts(rows, holders, wordings, [part for part, _ in places], vectors, has_vector)


def read_vectors(store: SqliteStore, selection: Selection, rows: Sequence[TextRow]) -> Vectors | None:
    """Return the whitened vectors of selected records, zeros for those without one; None if too few have any."""
    raw = _read_raw(store, selection, rows)
    return None if raw is None else _whiten(raw, sorted(range(len(rows)), key=lambda row: (rows[row].text, row)))


def find_paraphrases(store: SqliteStore, selection: Selection, survivor: Record, others: Sequence[Record]) -> set[str]:
    """Return the ids of those records that say the same as `survivor` in other words, as far as vectors tell."""
    space = store.vectors.find_space(OWN_SPACE)
    if space is None:
        return set()
    chosen = Condition("@id", "in", tuple(record.id for record in (survivor, *others)))
    among = replace(selection, scope=survivor.scope, where=chosen)
    with store.database.read():
        _, sample = store.vectors.sample(space, survivor.scope, SAMPLE)
        rows = store.insight.texts(among)
        vectors = store.insight.vectors(space, among, [row.key for row in rows])
    if len(sample) < MEANING_FROM:
        return set()
    whitened = whiten(lean_on(None, measure(normalize(sample))), vectors)
    products = {row.id: vector for row, vector in zip(rows, whitened, strict=True)}
    kept = read_wording(survivor.text)
    found = set()
    for record in others:
        meaning = float(products[survivor.id] @ products[record.id]) if record.id in products else 0.0
        comparison = compare(kept, read_wording(record.text), THRESHOLD, meaning)
        if comparison is not None and not comparison.conflict and comparison.by_meaning:
            found.add(record.id)
    return found


def group_texts(texts: Texts, threshold: float) -> tuple[list[Found], list[Found]]:
    """Return the groups of duplicates and those of conflicts. A text is in at most one group of either kind."""
    compared = _compare_pairs(texts, threshold)
    alike = [pair for pair, comparison in compared.items() if not comparison.conflict]
    order = sorted(range(len(texts.wordings)), key=lambda text: _rank_text(texts, text))
    groups = group_around(order, alike)
    duplicates = [
        Found("duplicate", group, [_lookup(compared, group[0], other) for other in group[1:]])
        for group in groups
        if len(group) > 1 or len(texts.holders[group[0]]) > 1
    ]
    centres = {member: group[0] for group in groups for member in group}
    against = _find_conflicts(texts, compared, centres, threshold)
    concerned = {text for pair in against for text in pair}
    by_time = sorted(concerned, key=lambda text: (-texts.best(text).created_at, _rank_text(texts, text)))
    conflicts = [
        Found("conflict", group, [_lookup(against, group[0], other) for other in group[1:]])
        for group in group_around(by_time, against)
        if len(group) > 1
    ]
    return duplicates, conflicts


def _find_conflicts(
    texts: Texts, compared: Mapping[tuple[int, int], Comparison], centres: Mapping[int, int], threshold: float
) -> dict[tuple[int, int], Comparison]:
    """Return the pairs that stand against each other: the centres of groups where that can be said of them."""
    against: dict[tuple[int, int], Comparison] = {}
    for pair, comparison in compared.items():
        centre = _sorted_pair(centres[pair[0]], centres[pair[1]])
        if not comparison.conflict or centre[0] == centre[1] or centre in against:
            continue
        between = compared.get(centre) or _compare(texts, *centre, threshold)
        if between is not None and between.conflict:
            against[centre] = between
        else:
            against[pair] = comparison
    return against


def _compare_pairs(texts: Texts, threshold: float) -> dict[tuple[int, int], Comparison]:
    pairs = pair_by_words(texts.wordings, texts.parts, max(2 * threshold - 1, 0.0))
    if texts.vectors is not None:
        near, _ = pair_by_vectors(texts.vectors, texts.parts, least_meaning(threshold))
        pairs = unite(np.concatenate([pairs, near]))
    found = {}
    for one, other in pairs.tolist():
        comparison = _compare(texts, one, other, threshold)
        if comparison is not None:
            found[one, other] = comparison
    return found


def _compare(texts: Texts, one: int, other: int, threshold: float) -> Comparison | None:
    return compare(texts.wordings[one], texts.wordings[other], threshold, texts.meaning(one, other))


def _read_raw(store: SqliteStore, selection: Selection, rows: Sequence[TextRow]) -> Vectors | None:
    space = store.vectors.find_space(OWN_SPACE)
    return None if space is None else store.insight.vectors(space, selection, [row.key for row in rows])


def _whiten(vectors: Vectors, order: Sequence[int]) -> Vectors | None:
    """Whiten vectors in their place by their own statistics; None if too few texts have any. Of many every n-th in this
    order is measured.
    """
    rows = np.array(order, dtype=np.int64)
    present = rows[np.any(vectors[rows], axis=1)]
    if len(present) < MEANING_FROM:
        return None
    statistics = measure(vectors[present[:: -(-len(present) // SAMPLE)]])
    return whiten(lean_on(None, statistics), vectors, out=vectors)


def _rank(row: TextRow, wording: Wording) -> tuple[float, float, int, str]:
    return rank(len(wording.tokens), row.importance, row.created_at, row.id)


def _rank_text(texts: Texts, text: int) -> tuple[float, float, int, str]:
    return _rank(texts.best(text), texts.wordings[text])


def _sorted_pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _lookup(compared: Mapping[tuple[int, int], Comparison], one: int, other: int) -> Comparison:
    return compared[_sorted_pair(one, other)]


def _members(texts: Texts, group: Found) -> list[tuple[int, int]]:
    """Return the texts and rows of a group, the survivor first; of a conflict one record for each text."""
    if group.kind == "conflict":
        return [(text, texts.holders[text][0]) for text in group.texts]
    return [(text, row) for text in group.texts for row in texts.holders[text]]


def _order(texts: Texts, group: Found) -> tuple[object, ...]:
    return group.kind == "conflict", -len(_members(texts, group)), texts.best(group.texts[0]).id


def _describe(
    store: SqliteStore, selection: Selection, texts: Texts, groups: Sequence[Found]
) -> Iterator[SimilarGroup]:
    for group in groups:
        members = _members(texts, group)
        ids = [texts.rows[row].id for _, row in members]
        stored = {record.id: record for record in store.records.get(ids, selection)}
        if ids[0] not in stored or len(stored) < 2:  # deleted meanwhile
            continue
        yield SimilarGroup(
            kind=group.kind,
            survivor=ids[0],
            reason=_explain(texts, group),
            records=tuple(stored[id] for id in ids if id in stored),
            likenesses=tuple(_likenesses(texts, group, members, stored)),
        )


def _likenesses(
    texts: Texts, group: Found, members: Sequence[tuple[int, int]], stored: Mapping[str, Record]
) -> Iterator[Likeness]:
    centre = group.texts[0]
    compared = dict(zip(group.texts[1:], group.comparisons, strict=True))
    for text, row in members[1:]:
        id = texts.rows[row].id
        if id in stored:
            found = compared.get(text, Comparison(1.0, False, "the same words"))
            meaning = texts.meaning(centre, text)
            yield Likeness(
                id=id,
                similarity=round(found.similarity, 4),
                meaning=None if meaning is None else round(meaning, 4),
                reason=found.reason,
            )


def _explain(texts: Texts, group: Found) -> str:
    """Say why the first record of a group is to survive."""
    if group.kind == "conflict":
        return LATER
    lengths = [len(texts.wordings[text].tokens) for text in group.texts]
    if len(lengths) > 1 and lengths[0] > max(lengths[1:]):
        return SAYS_MOST
    equal = [texts.rows[row] for text, row in _members(texts, group) if len(texts.wordings[text].tokens) == lengths[0]]
    return MORE_IMPORTANT if equal[0].importance > min(row.importance for row in equal) else NEWEST
