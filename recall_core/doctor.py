"""Looks over an open memory: which state it is in, what is wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .damage import Damage
from .engine import Engine
from .models import Embedder, Stats
from .store import OWN_SPACE, Medium
from .text import segmenter_version
from .vectors import check_vectors

SHOWN_ERRORS = 5
SHOWN_RECORDS = 20  # of one kind of damage
PROBE = "memory"  # what is embedded to see whether that works
MANY_CHANGES = 4_096  # vectors that the codes have not taken up, each compared in full by every search


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that wants attention, and what to do about it."""

    problem: str
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """The state of a memory, and the problems that were found; none means that all is well.

    What is damaged in the file stands among the problems as well.
    """

    stats: Stats
    model: str | None  # of the file's own vectors; None if it has none yet
    dimensions: int | None
    embedder: str | None  # what it is open with, or was compared with
    embedder_dimensions: int | None
    embedder_error: str | None  # why that could not embed a query
    words: int  # in the file's dictionary
    segmenter: str  # that indexes new text
    journal: str
    network: str | None
    unindexed_changes: int
    errors: tuple[tuple[str, int], ...]  # the most frequent last errors of chunks, and how many have each
    damages: tuple[Damage, ...]
    problems: tuple[Problem, ...]


def examine(engine: Engine, embedder: Embedder | None, stats: Stats, damages: Sequence[Damage]) -> Checkup:
    """Look over an open memory, and try `embedder` on a query. Writes nothing."""
    space = engine.store.vectors.find_space(OWN_SPACE)
    model = dimensions = error = None
    if embedder is not None:
        model, dimensions, error = _try(embedder)
    medium = engine.store.facts.medium()
    errors = tuple(engine.store.pending.errors(SHOWN_ERRORS))
    found = Checkup(
        stats=stats,
        model=None if space is None else space.model,
        dimensions=None if space is None else space.dimensions,
        embedder=model,
        embedder_dimensions=dimensions,
        embedder_error=error,
        words=len(engine.dictionary.follow().words),
        segmenter=segmenter_version(),
        journal=medium.journal,
        network=medium.network,
        unindexed_changes=medium.unindexed_changes,
        errors=errors,
        damages=(),
        problems=(),
    )
    problems = (*find_file_problems(found, medium), *find_model_problems(found), *find_queue_problems(found))
    return add_damages(replace(found, problems=problems), damages)


def add_damages(found: Checkup, damages: Sequence[Damage]) -> Checkup:
    """Return a checkup that tells of damage, too."""
    problems = (*map(describe_damage, damages), *found.problems)
    return replace(found, damages=(*found.damages, *damages), problems=problems)


def describe_damage(damage: Damage) -> Problem:
    """Return damage as a problem, with the records concerned as far as a line can name them."""
    names = ", ".join(damage.records[:SHOWN_RECORDS])
    more = f" and {damage.count - SHOWN_RECORDS:,} more" if damage.count > SHOWN_RECORDS else ""
    return Problem(f"{damage.problem} (records {names}{more})" if names else damage.problem, damage.advice)


def find_file_problems(found: Checkup, medium: Medium) -> Iterator[Problem]:
    """Say what is wrong with the file and its indexes."""
    if found.network is not None:
        yield Problem(
            f"the file lies on a network file system ({found.network}), where SQLite's log does not work reliably",
            "move it to a local disk",
        )
    if found.journal not in ("wal", "memory", "none"):  # none: the file can only be read
        yield Problem(
            f"the journal mode is {found.journal}, not wal: readers and writers wait for each other",
            "move the file to a file system that offers shared memory, such as a local disk",
        )
    if found.stats.segmenter != found.segmenter:
        yield Problem(
            f"the keyword index was made by {found.stats.segmenter}, new text uses {found.segmenter}",
            "index all records anew: recall reindex",
        )
    if medium.stale_records:
        yield Problem(
            f"{medium.stale_records} records that another program wrote are not indexed yet",
            "open the file again, or call flush(); if they stay, a chunker of yours fails on them (see the log)",
        )
    if medium.changed_words:
        yield Problem(
            f"{medium.changed_words} words came to the dictionary, or went, since older records were indexed",
            "index the records anew that hold them: recall reindex --words",
        )
    if found.unindexed_changes > MANY_CHANGES:
        yield Problem(
            f"{found.unindexed_changes} vectors are not in the index of codes yet, which makes searches slow",
            "add or embed something, or run recall embed: the index is refreshed with the next vectors",
        )


def find_model_problems(found: Checkup) -> Iterator[Problem]:
    """Say what keeps queries from being embedded for this file."""
    if found.embedder_error is not None:
        yield Problem(
            f"the embedder {found.embedder or ''} could not embed a query: {found.embedder_error}",
            "see that its model, key and network are there; until then keywords answer",
        )
    given, made = (found.embedder, found.embedder_dimensions), (found.model, found.dimensions)
    if None not in (*given, *made) and given != made:
        yield Problem(
            f"the file's vectors are of {found.model} ({found.dimensions} dimensions), the embedder is "
            f"{found.embedder} ({found.embedder_dimensions})",
            "open it with the embedder that made them, or move it: recall reembed",
        )
    if found.stats.degraded is not None:
        yield Problem(
            f"searches could not use the vectors: {found.stats.degraded}",
            "the next search that can clears this; if none can, look at the other problems",
        )


def find_queue_problems(found: Checkup) -> Iterator[Problem]:
    """Say which chunks have no vector, and why."""
    stats = found.stats
    most = f"; most often: {found.errors[0][0]}" if found.errors else ""
    if stats.resting:
        yield Problem(
            f"{stats.resting} chunks could not be embedded and rest{most}",
            "once the cause is gone: recall embed --retry-failed",
        )
    if retried := stats.failed - stats.resting:
        yield Problem(
            f"{retried} chunks could not be embedded and are tried again{most}",
            "wait, or run recall embed to try at once",
        )
    if (waiting := stats.pending - stats.failed - stats.leased) > 0:
        yield Problem(
            f"{waiting} chunks wait for a vector and are found by keyword only until then",
            "run recall embed, or keep the memory open with an embedder",
        )


def _try(embedder: Embedder) -> tuple[str | None, int | None, str | None]:
    """Return an embedder's model and dimensions, and why it could not embed a query."""
    model = dimensions = None
    try:
        model = embedder.model_id
        dimensions = embedder.dimensions
        check_vectors(embedder.embed_queries([PROBE]), 1, dimensions)
    except Exception as error:  # an embedder is foreign code
        return model, dimensions, f"{type(error).__name__}: {error}"
    return model, dimensions, None
