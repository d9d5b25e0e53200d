"""`recall restore`, `deleted`, `forget`, `touch`, `link` and `unlink`: what becomes of memories."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from recall_core.errors import InvalidInputError
from recall_core.models import Forgotten
from recall_core.revision import UNCHANGED

from .opening import open_existing, open_for_search
from .options import (
    db_option,
    json_option,
    model_option,
    parse_object,
    parse_ttl,
    roles_option,
    scope_option,
    session_option,
    since_option,
    tags_option,
    until_option,
    where_option,
)
from .output import NOTHING, tell, write, write_json
from .printing import print_list, shorten
from .progress import show_records
from .records import NOT_CLEARED, end_with, hard_option, ids_argument, yes_option
from .shapes import link_shape, record_shape, show_time
from .stopping import confirm, stopping

if TYPE_CHECKING:
    from recall_core.memory import Memory

SHOWN_TEXT = 60  # characters of each memory


@click.command()
@ids_argument
@db_option
@model_option
@json_option
def restore(ids: Sequence[str], db: str | None, model: str | None, as_json: bool) -> None:
    """Bring deleted memories back as they were. The exit code is 1 if one of them can't be restored."""
    with open_for_search(db, model, "hybrid") as memory:
        restored = memory.restore(ids)
    known = {record.id for record in restored}
    missing = [id for id in dict.fromkeys(ids) if id not in known]
    if as_json:
        write_json({"restored": [record_shape(record) for record in restored], "missing": missing})
    else:
        write(f"restored {len(restored)}")
    end_with(missing, "nothing can be restored of")


@click.command()
@scope_option
@click.option(
    "--limit", "-n", metavar="N", type=click.IntRange(0), default=100, show_default=True, help="Show at most so many."
)
@click.option("--after", metavar="ID", help="Go on behind this id.")
@db_option
@json_option
def deleted(scope: str, limit: int, after: str | None, db: str | None, as_json: bool) -> None:
    """List the deleted memories that recall restore can bring back, the last deleted first."""
    with open_existing(db) as memory:
        found = memory.deleted(scope=scope, limit=limit + 1, after=after)
    page = found[:limit]
    following = page[-1].record.id if page and len(found) > limit else None
    if as_json:
        shapes = [{"deleted_at": show_time(one.deleted_at), "record": record_shape(one.record)} for one in page]
        write_json({"deleted": shapes, "after": following})
        return
    for one in page:
        write(f"{one.record.id}  deleted {one.deleted_at:%Y-%m-%d %H:%M}  {shorten(one.record.text, SHOWN_TEXT)}")
    if following:
        tell(f"there are more; go on with --after {following}")


@click.command()
@scope_option
@session_option
@roles_option
@tags_option
@since_option
@until_option
@where_option
@click.option("--everything", is_flag=True, help="All memories are meant: no other option is needed.")
@hard_option
@click.option("--dry-run", is_flag=True, help="Only tell what would be deleted.")
@yes_option
@db_option
@json_option
def forget(
    scope: str,
    session: str | None,
    roles: Sequence[str],
    tags: Sequence[str],
    since: str | None,
    until: str | None,
    where: str | None,
    everything: bool,
    hard: bool,
    dry_run: bool,
    yes: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Delete all memories that the options select. At least one has to be given, or --everything.

    Tells first what they are, and asks; without a terminal --yes has to be given. --dry-run only tells.
    """
    arguments: dict[str, Any] = {
        "scope": scope,
        "where": parse_object(where, "--where"),
        "session": session,
        "roles": roles or None,
        "tags": tags or None,
        "since": since,
        "until": until,
        "everything": everything,
        "hard": hard,
    }
    with open_existing(db) as memory:
        found = memory.forget(**arguments, dry_run=True)
        if not dry_run and (found.count or hard):  # an interrupted one may have deleted all, and cleared nothing
            if not yes and found.count:
                _ask(found)
            found = _forget(memory, arguments, found)
    found = replace(found, dry_run=dry_run)
    if as_json:
        sample = [record_shape(record) for record in found.sample]
        write_json({"count": found.count, "hard": found.hard, "dry_run": found.dry_run, "sample": sample})
    elif dry_run:
        print_list(found.sample)
        write(f"would delete {found.count:,}{_for_good(found)}")
    else:
        write(f"deleted {found.count:,}{_for_good(found)}")


@click.command()
@ids_argument
@click.option("--importance", metavar="0..1", type=float, help="How much they matter from now on.")
@click.option("--expires-at", metavar="TIME", help="When they are to be forgotten; never: not at all.")
@click.option("--ttl", metavar="30d", help="After how long they are to be forgotten: s, m, h, d or w.")
@db_option
@json_option
def touch(
    ids: Sequence[str],
    importance: float | None,
    expires_at: str | None,
    ttl: str | None,
    db: str | None,
    as_json: bool,
) -> None:
    """Note that memories were used now, and prolong or end their life. Exit code 1: one of them does not exist."""
    if expires_at is not None and ttl is not None:
        raise InvalidInputError("give --expires-at or --ttl, not both")
    changes: dict[str, Any] = {
        "importance": UNCHANGED if importance is None else importance,
        "expires_at": UNCHANGED if expires_at is None else None if expires_at == "never" else expires_at,
        "ttl": UNCHANGED if ttl is None else parse_ttl(ttl),
    }
    with open_existing(db) as memory:
        touched = memory.touch(ids, **changes)
        known = {record.id for record in memory.get(ids)}
    missing = [id for id in dict.fromkeys(ids) if id not in known]
    if as_json:
        write_json({"touched": touched, "missing": missing})
    else:
        write(f"touched {touched}")
    end_with(missing)


@click.command()
@click.argument("source", metavar="ID")
@click.argument("target", metavar="ID")
@click.option("--kind", metavar="NAME", default="related", show_default=True, help="What the first is to the second.")
@db_option
@json_option
def link(source: str, target: str, kind: str, db: str | None, as_json: bool) -> None:
    """Relate two memories, as in recall link fix-12 error-503 --kind solves. get and search show it."""
    with open_existing(db) as memory:
        made = memory.link(source, target, kind)
    if as_json:
        write_json(link_shape(made))
    else:
        write(f"{made.source} {made.kind} {made.target}")


@click.command()
@click.argument("source", metavar="ID")
@click.argument("target", metavar="ID")
@click.option("--kind", metavar="NAME", help="Only links of this kind.")
@db_option
@json_option
def unlink(source: str, target: str, kind: str | None, db: str | None, as_json: bool) -> None:
    """Delete the links from one memory to another. The exit code is 1 if there are none."""
    with open_existing(db) as memory:
        count = memory.unlink(source, target, kind)
    if as_json:
        write_json({"unlinked": count})
    else:
        write(f"unlinked {count}")
    if not count:
        click.get_current_context().exit(NOTHING)


def _forget(memory: Memory, arguments: Mapping[str, Any], found: Forgotten) -> Forgotten:
    """Delete what was found, and tell how far that came if it is interrupted."""
    done = 0

    def note(now_done: int) -> None:
        nonlocal done
        done = now_done
        show(done)

    def explain() -> str:
        words = NOT_CLEARED if found.hard else ""
        return f"deleted {done:,} of {found.count:,}{words}; the same command goes on"

    with show_records("deleted") as (show, _), stopping(explain):
        return memory.forget(**arguments, progress=note)


def _ask(found: Forgotten) -> None:
    if not sys.stdin.isatty():
        raise InvalidInputError("nobody can be asked without a terminal; give --yes, or --dry-run to only look")
    for record in found.sample:
        tell(f"{record.id}  {shorten(record.text, SHOWN_TEXT)}")
    if found.count > len(found.sample):
        tell(f"… and {found.count - len(found.sample):,} more")
    confirm(f"Delete {found.count:,}{_for_good(found)}?", "nothing was deleted")


def _for_good(found: Forgotten) -> str:
    return " for good" if found.hard else ""
