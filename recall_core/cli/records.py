"""`recall list`, `recall get` and `recall delete`: records by their ids."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .opening import open_existing
from .options import db_option, json_option, parse_object, scope_option, session_option, where_option
from .output import NOTHING, tell, write, write_json
from .printing import print_list, print_record, shorten
from .shapes import link_shape, record_shape
from .stopping import confirm, stopping

if TYPE_CHECKING:
    from recall_core.memory import Memory

ids_argument = click.argument("ids", metavar="ID...", nargs=-1, required=True)
yes_option = click.option("--yes", "-y", is_flag=True, help="Don't ask.")
hard_option = click.option(
    "--hard", is_flag=True, help="For good: no restore, and no word of them is left in the file, which takes longer."
)
SHOWN = 10  # memories named before asking whether to delete them
SHOWN_TEXT = 60  # characters of each
NOT_CLEARED = ", and the file is not cleared of their words yet"
PAGE = 1_000  # deleted memories that are looked through at a time


@click.command("list")
@scope_option
@session_option
@where_option
@click.option(
    "--limit", "-n", metavar="N", type=click.IntRange(0), default=100, show_default=True, help="Show at most so many."
)
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
    """Print memories in full, and with what they are linked. The exit code is 1 if one of them does not exist."""
    with open_existing(db) as memory:
        found, links = memory.get(ids), memory.links(ids)
        linked = {record.id: record for record in memory.get({id for one in links for id in (one.source, one.target)})}
    known = {record.id for record in found}
    missing = [id for id in dict.fromkeys(ids) if id not in known]
    if as_json:
        write_json(
            {
                "records": [record_shape(record) for record in found],
                "missing": missing,
                "links": [link_shape(link) for link in links],
                "linked": [record_shape(record) for id, record in sorted(linked.items()) if id not in known],
            }
        )
    else:
        for record in found:
            own = [link for link in links if record.id in (link.source, link.target)]
            print_record(record, [link for link in own if {link.source, link.target} <= linked.keys()], linked)
    end_with(missing)


@click.command()
@ids_argument
@hard_option
@yes_option
@db_option
@json_option
def delete(ids: Sequence[str], hard: bool, yes: bool, db: str | None, as_json: bool) -> None:
    """Delete memories. recall restore brings them back for 30 days, unless --hard is given.

    Asks first on a terminal; the exit code is 1 if one of them does not exist.
    """
    with open_existing(db) as memory:
        if not yes and sys.stdin.isatty():
            _ask(memory, ids, hard)
        deleted = _delete(memory, list(dict.fromkeys(ids)), hard)
    missing = [id for id in dict.fromkeys(ids) if id not in set(deleted)]
    if as_json:
        write_json({"deleted": deleted, "missing": missing})
    else:
        write(f"deleted {len(deleted)}")
    end_with(missing)


def _delete(memory: Memory, ids: list[str], hard: bool) -> list[str]:
    """Delete memories and return which of them there were."""
    moved = set[str]()

    def explain() -> str:
        words = NOT_CLEARED if hard else ""
        return f"deleted {len(moved)} of {len(ids)}{words}; the same command goes on"

    with stopping(explain):
        # One by one, since only then that is known: expired ones can't be read any more.
        for id in ids:
            if memory.delete(id):
                moved.add(id)
        if not hard:
            return [id for id in ids if id in moved]
        left = [id for id in ids if id not in moved]
        known = moved | _find_deleted(memory, left)
        memory.delete(known, hard=True)  # at once: clearing the file costs the same for one and for many
        known |= {id for id in left if id not in known and memory.delete(id, hard=True)}  # expired in the trash
    return [id for id in ids if id in known]


def _find_deleted(memory: Memory, ids: Sequence[str]) -> set[str]:
    """Return which of these memories had been deleted already."""
    wanted, found, after = set(ids), set[str](), None
    while wanted - found and (page := memory.deleted(limit=PAGE, after=after)):
        found |= wanted & {one.record.id for one in page}
        after = page[-1].record.id
    return found


def _ask(memory: Memory, ids: Sequence[str], hard: bool) -> None:
    for record in memory.get(ids[:SHOWN]):
        tell(f"{record.id}  {shorten(record.text, SHOWN_TEXT)}")
    count = len(set(ids))
    what = f"{count} {'memory' if count == 1 else 'memories'}{' for good' if hard else ''}"
    confirm(f"Delete {what}?", "nothing was deleted")


def end_with(missing: list[str], what: str = "there is no memory with the id") -> None:
    """End the command, with an exit code and a line for each id that was missing if there are any."""
    for id in missing:
        tell(f"{what} {id}")
    if missing:
        click.get_current_context().exit(NOTHING)
