"""`recall list`, `recall get` and `recall delete`: records by their ids."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .opening import open_existing
from .options import db_option, json_option, parse_object, scope_option, session_option, where_option
from .output import NOTHING, one_line, tell, write, write_json
from .printing import print_list, print_record
from .shapes import record_shape

if TYPE_CHECKING:
    from recall_core.memory import Memory

ids_argument = click.argument("ids", metavar="ID...", nargs=-1, required=True)
SHOWN = 10  # memories named before asking whether to delete them
SHOWN_TEXT = 60  # characters of each


@click.command("list")
@scope_option
@session_option
@where_option
@click.option("--limit", "-n", metavar="N", type=int, default=100, show_default=True, help="Show at most so many.")
@click.option("--after", metavar="ID", help="Go on behind this id.")
@db_option
@json_option
def list_records(
    scope: str,
    session: str | None,
    where: str | None,
    limit: int,
    after: str | None,
    db: str | None,
    as_json: bool,
) -> None:
    """List memories in the order of their ids, the oldest first.

    Where more follow, a line on stderr (with --json the key "after") says how to go on.
    """
    condition = parse_object(where, "--where")
    with open_existing(db) as memory:
        found = memory.records(scope=scope, where=condition, session=session, limit=limit + 1, after=after)
    page = found[:limit]
    following = page[-1].id if page and len(found) > limit else None
    if as_json:
        write_json({"records": [record_shape(record) for record in page], "after": following})
        return
    print_list(page)
    if following:
        tell(f"there are more; go on with --after {following}")


@click.command()
@ids_argument
@db_option
@json_option
def get(ids: Sequence[str], db: str | None, as_json: bool) -> None:
    """Print memories in full. The exit code is 1 if one of them does not exist."""
    with open_existing(db) as memory:
        found = memory.get(ids)
    known = {record.id for record in found}
    missing = [id for id in dict.fromkeys(ids) if id not in known]
    if as_json:
        write_json({"records": [record_shape(record) for record in found], "missing": missing})
    else:
        for record in found:
            print_record(record)
    _end(missing)


@click.command()
@ids_argument
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
@db_option
@json_option
def delete(ids: Sequence[str], yes: bool, db: str | None, as_json: bool) -> None:
    """Delete memories for good. Asks first on a terminal; the exit code is 1 if one of them does not exist."""
    with open_existing(db) as memory:
        if not yes and sys.stdin.isatty():
            _ask(memory, ids)
        # One by one, since only then it is known which of them there were; expired ones can't be read any more.
        deleted = [id for id in dict.fromkeys(ids) if memory.delete(id)]
    missing = [id for id in dict.fromkeys(ids) if id not in set(deleted)]
    if as_json:
        write_json({"deleted": deleted, "missing": missing})
    else:
        write(f"deleted {len(deleted)}")
    _end(missing)


def _ask(memory: Memory, ids: Sequence[str]) -> None:
    for record in memory.get(ids[:SHOWN]):
        text = one_line(record.text)
        tell(f"{record.id}  {text[:SHOWN_TEXT]}{'…' if len(text) > SHOWN_TEXT else ''}")
    count = len(set(ids))
    if not click.confirm(f"Delete {count} {'memory' if count == 1 else 'memories'} for good?", err=True):
        tell("nothing was deleted")
        click.get_current_context().exit(NOTHING)


def _end(missing: list[str]) -> None:
    for id in missing:
        tell(f"there is no memory with the id {id}")
    if missing:
        click.get_current_context().exit(NOTHING)
