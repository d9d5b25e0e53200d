"""What a memory is about: clusters of records, named by the words that tell them apart, and where little is known."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..filters import Selection
from ..store import SqliteStore, TextRow
from ..times import MICROS_PER_DAY, from_micros
from .clusters import cut, link_average
from .features import Vocabulary, count_terms, make_features
from .labels import find_terms
from .similarity import read_vectors
from .values import Thin, Topic
from .wording import asks

if TYPE_CHECKING:
    from ..models import Vectors

SAMPLE = 4_096  # records that clusters are read from; of more, the others go to the cluster that they are nearest to
LEAST = 0.12  # mean similarity within a cluster; measured in benchmarks/insight.py
SMALLEST = 2  # records of a topic
EXAMPLES = 3
BLOCK = 4_096  # records that are compared with all topics at a time
SEPARATOR = " · "
LABEL_CHARACTERS = 40  # of a record's text, where a topic has no telling word

FEW, MENTIONED = 3, 3  # a topic with so few records that so many others mention is thin
STALE = 90 * MICROS_PER_DAY


@dataclass(frozen=True, slots=True)
class Cluster:
    """Rows of one topic, the most typical first, and the terms that name it, by how they are written."""

    rows: tuple[int, ...]
    terms: Mapping[str, str]
    label: str


@dataclass(frozen=True, slots=True)
class Clusters:
    """The records of a selection, clustered: the largest cluster first, and the rows that are in none."""

    records: Sequence[TextRow]
    terms: Sequence[Sequence[str]]
    clusters: tuple[Cluster, ...]
    others: tuple[int, ...]


def find_topics(store: SqliteStore, selection: Selection, since: int, until: int, limit: int) -> list[Topic]:
    """Return the topics of the selected records, the largest first; `since` and `until` (microseconds) are the period
    whose growth is of interest.
    """
    found = cluster_records(store, selection)
    chosen = found.clusters[:limit]
    mentions = _count_mentions(found, chosen)
    return [
        _describe(store, selection, found, cluster, mentioned, since, until)
        for cluster, mentioned in zip(chosen, mentions, strict=True)
    ]


def cluster_records(store: SqliteStore, selection: Selection) -> Clusters:
    """Cluster the selected records by their vectors and words, by their words alone without vectors."""
    with store.database.read():
        records = store.insight.texts(selection)
        known = store.insight.terms(selection)
        vectors = read_vectors(store, selection, records)
    terms = [known.get(row.key, ()) for row in records]
    vocabulary = count_terms(terms)
    order = sorted(range(len(records)), key=lambda row: _shuffle(records[row]))
    numbers, strengths = _assign(order, terms, vocabulary, vectors)
    members: dict[int, list[int]] = {}
    for row in order:
        members.setdefault(int(numbers[row]), []).append(row)
    others = members.pop(-1, [])
    clusters = []
    for rows in members.values():
        typical = sorted(rows, key=lambda row: (-round(float(strengths[row]), 4), _shuffle(records[row])))
        clusters.append(_name(typical, records, terms, vocabulary))
    clusters.sort(key=lambda cluster: (-len(cluster.rows), cluster.label, records[cluster.rows[0]].id))
    return Clusters(records, terms, tuple(clusters), tuple(sorted(others)))


def _assign(
    order: Sequence[int], terms: Sequence[Sequence[str]], vocabulary: Vocabulary, vectors: Vectors | None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return for each row the number of its cluster, -1 for none, and how typical it is of that."""
    numbers = np.full(len(order), -1, dtype=np.int64)
    strengths = np.zeros(len(order), dtype=np.float32)
    if not order:
        return numbers, strengths

    def features(rows: Sequence[int]) -> Vectors:
        own = None if vectors is None else vectors[list(rows)]
        return make_features([terms[row] for row in rows], vocabulary, own)

    sample = list(order[:SAMPLE])
    sampled = features(sample)
    found = cut(link_average(sampled @ sampled.T), len(sample), LEAST)
    sizes = np.bincount(found)
    kept = np.flatnonzero(sizes >= SMALLEST)
    if not len(kept):
        return numbers, strengths
    centres = np.stack([sampled[found == number].mean(axis=0) for number in kept])
    place = np.full(len(sizes), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    numbers[sample] = place[found]
    strengths[sample] = np.einsum("ij,ij->i", sampled, centres[numbers[sample]])
    for start in range(SAMPLE, len(order), BLOCK):
        rows = list(order[start : start + BLOCK])
        products = features(rows) @ centres.T
        best = products.argmax(axis=1)
        strengths[rows] = products[np.arange(len(rows)), best]
        numbers[rows] = np.where(strengths[rows] >= LEAST, best, -1)
    return numbers, strengths


def _name(
    rows: Sequence[int], records: Sequence[TextRow], terms: Sequence[Sequence[str]], vocabulary: Vocabulary
) -> Cluster:
    found = find_terms([records[row].text for row in rows], [terms[row] for row in rows], vocabulary)
    label = SEPARATOR.join(found.values())
    if not label:
        text = " ".join(records[rows[0]].text.split())
        label = text if len(text) <= LABEL_CHARACTERS else text[: LABEL_CHARACTERS - 1] + "…"
    return Cluster(tuple(rows), found, label)


def _count_mentions(found: Clusters, clusters: Sequence[Cluster]) -> Iterator[int]:
    """Return for each cluster in how many records of others one of its terms occurs."""
    holders: dict[str, set[int]] = {term: set() for cluster in clusters for term in cluster.terms}
    for row, terms in enumerate(found.terms):
        for term in holders.keys() & set(terms):
            holders[term].add(row)
    for cluster in clusters:
        yield len(set().union(*(holders[term] for term in cluster.terms)) - set(cluster.rows))


def _describe(
    store: SqliteStore,
    selection: Selection,
    found: Clusters,
    cluster: Cluster,
    mentions: int,
    since: int,
    until: int,
) -> Topic:
    rows = [found.records[row] for row in cluster.rows]
    times = [row.created_at for row in rows]
    questions = sum(asks(row.text) for row in rows)
    thin: list[Thin] = []
    if len(rows) <= FEW and mentions >= MENTIONED:
        thin.append("few")
    if questions > len(rows) - questions:
        thin.append("asked")
    if max(times) < until - STALE:
        thin.append("stale")
    return Topic(
        label=cluster.label,
        terms=tuple(cluster.terms.values()),
        size=len(rows),
        recent=sum(since <= time < until for time in times),
        before=sum(2 * since - until <= time < since for time in times),
        questions=questions,
        mentions=mentions,
        first_at=from_micros(min(times)),
        last_at=from_micros(max(times)),
        thin=tuple(thin),
        ids=tuple(row.id for row in rows),
        examples=tuple(store.records.get([row.id for row in rows[:EXAMPLES]], replace(selection, where=None))),
    )


def _shuffle(row: TextRow) -> tuple[int, str]:
    """Return a place for a record that has to do neither with its time nor with the order of storing."""
    return zlib.crc32(row.text.encode("utf-8", "surrogatepass")), row.id
