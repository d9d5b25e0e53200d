"""What can be wrong with a memory file: each kind of damage, what repair does about it, what the user can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MOST_NAMED = 1_000  # records of one kind of damage that are named by their ids; more are only counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Something in a memory file that is not as it has to be.

    `kind` is a name that stays, such as "chunk-missing"; `count` says how often it was found; `records` are the ids of
    the records concerned, up to 1,000, where that can be told. `repair` says what repair does about it; None: it is in
    what everything else is made from, and is left as it is.
    """

    kind: str
    problem: str
    count: int
    repair: str | None
    advice: str
    records: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """What a repair did, or with `dry_run` would do: lines for people, and the damage that is left."""

    dry_run: bool
    done: tuple[str, ...]
    left: tuple[Damage, ...]
    pending: int  # chunks that wait for a vector now; -1 if the file could not be opened


class _Kind(NamedTuple):
    problem: str  # with {count} and {detail}
    repair: str | None
    advice: str = "run recall doctor --repair"


_SALVAGE = (
    "copy the file, then restore a backup; without one, export what can be read, or run "
    "sqlite3 FILE .recover into a new file"
)

KINDS: dict[str, _Kind] = {
    # The file
    "unexamined": _Kind("{detail}", None, _SALVAGE),
    "page": _Kind("SQLite finds {count} faults in the file: {detail}", None, _SALVAGE),
    "page-lost": _Kind("{count} pages of the file belong to nothing: {detail}", None, "VACUUM drops them"),
    "application-id": _Kind("the file's application_id is {detail}, not that of a memory", "sets it"),
    "schema-version": _Kind("the file's schema version is {detail}", "sets it to what the tables are"),
    "schema-newer": _Kind(
        "the file has schema version {detail}", None, "upgrade recall_core: pip install --upgrade dualrecall"
    ),
    # The schema
    "truth-missing": _Kind("tables or columns that nothing can make again are missing: {detail}", None, _SALVAGE),
    "table-missing": _Kind("{count} tables are missing or lack columns: {detail}", "makes them, and fills them again"),
    "table-damaged": _Kind(
        "{count} tables can't be read to the end: {detail}", "makes them anew, and fills them again"
    ),
    "index-missing": _Kind("{count} indexes are missing or changed: {detail}", "makes them"),
    "index-wrong": _Kind("{count} indexes don't agree with their tables: {detail}", "makes them anew"),
    "trigger-missing": _Kind("{count} triggers are missing or changed: {detail}", "makes them"),
    # Truth
    "record-unreadable": _Kind("{count} records can't be read", None, _SALVAGE),
    "record-broken": _Kind(
        "{count} records hold values that the library can't use: {detail}", None, "correct the values with sqlite3"
    ),
    "link-stray": _Kind(
        "{count} links have an end that is neither stored nor in the trash", None, "delete their rows with sqlite3"
    ),
    "trash-stray": _Kind("{count} vectors in the trash belong to no entry", None, "delete their rows with sqlite3"),
    "trash-broken": _Kind(
        "{count} deleted records hold values or vectors that can't be restored",
        None,
        "correct or delete their rows with sqlite3",
    ),
    "dictionary-broken": _Kind("{count} words of the dictionary are no words", None, "delete them with sqlite3"),
    "vector-broken": _Kind(
        "{count} vectors are damaged: of a wrong length, or with NaN, infinity or zeros alone",
        None,
        "give those again that callers brought; delete the others' rows in the table embedding, and run recall embed",
    ),
    "vector-spaceless": _Kind("{count} vectors are of spaces that are gone", None, _SALVAGE),
    "vector-stray": _Kind(
        "{count} vectors that callers brought belong to no record any more", None, "give them again with their records"
    ),
    "foreign-key": _Kind("{count} rows refer to others that are gone: {detail}", None, _SALVAGE),
    # The keyword index
    "keyword-missing": _Kind("the keyword index is missing, or parts of it: {detail}", "makes it anew from the chunks"),
    "keyword-rows": _Kind("{count} chunks are not in the keyword index", "makes it anew from the chunks"),
    "keyword-orphan": _Kind("the keyword index holds {count} chunks that are gone", "makes it anew from the chunks"),
    "keyword-wrong": _Kind(
        "the keyword index is damaged, or holds other terms than the chunks: {detail}", "makes it anew from the chunks"
    ),
    "keyword-unfinished": _Kind("making the keyword index anew was interrupted", "finishes it"),
    # Chunks
    "chunk-missing": _Kind("{count} records lack chunks", "cuts and segments the records anew"),
    "chunk-wrong": _Kind(
        "{count} records have chunks that are not what their text, role, tags, metadata and the dictionary say",
        "cuts and segments the records anew",
    ),
    "chunk-orphan": _Kind("{count} chunks are of records that are gone", "deletes them"),
    "chunk-keys": _Kind("keys of chunks that are gone would be used again", "counts on behind them"),
    # What waits for a vector
    "pending-missing": _Kind("{count} chunks have no vector, and don't wait for one", "lets them wait for one"),
    "pending-orphan": _Kind("{count} chunks that are gone wait for a vector", "lets them wait no more"),
    "pending-settled": _Kind(
        "{count} chunks wait for a vector that they have or shall not have", "lets them wait no more"
    ),
    "pending-late": _Kind("{count} chunks wait until a time that is far off", "lets them be tried at once"),
    "lease-stale": _Kind("{count} chunks are claimed by processes that are gone", "gives them back"),
    # Vectors and their codes
    "vector-orphan": _Kind("{count} vectors of a model are of chunks that are gone", "deletes them"),
    "vector-unnoted": _Kind("{count} vectors are noted for no code", "notes them"),
    "codes-orphan": _Kind("{count} codes or notes are of spaces that are gone", "deletes them"),
    "codes-centre": _Kind("the codes of {count} spaces can't be used: {detail}", "makes them anew from the vectors"),
    "codes-page": _Kind("{count} pages of codes are missing or wrong: {detail}", "makes them anew from the vectors"),
}


def make_damage(kind: str, count: int = 1, *, detail: str = "", records: Sequence[str] = ()) -> Damage:
    """Return a damage of one of KINDS."""
    problem, repair, advice = KINDS[kind]
    return Damage(
        kind=kind,
        problem=problem.format(count=f"{count:,}", detail=detail),
        count=count,
        repair=repair,
        advice=advice,
        records=tuple(records[:MOST_NAMED]),
    )
