"""`recall cleanup`, `vacuum`, `reindex` and `backup`: what keeps a file in shape over the years."""

from __future__ import annotations

from dataclasses import asdict

import click

from recall_core.errors import InvalidInputError

from .opening import open_existing
from .options import db_option, json_option, parse_age, parse_object, scope_option, where_option
from .output import tell, write, write_json
from .progress import GOES_ON, show_work

AS_BEFORE = "the file works as before; the same command begins again"
NO_COPY = "there is no copy; the same command begins again"

dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what would be done.")


@click.command()
@click.option("--older-than", metavar="AGE|TIME", help="Made so long ago, such as 90d, or before a time.")
@click.option("--idle-sessions", metavar="AGE|TIME", help="Conversations in which nothing was said since then.")
@click.option("--below-importance", metavar="0..1", type=float, help="Less important than that.")
@click.option("--per-scope-cap", metavar="N", type=int, help="The oldest of each scope that holds more than N.")
@click.option("--keep-expired", is_flag=True, help="Leave expired memories in the file; nothing shows them.")
@scope_option
@where_option
@click.option("--hard", is_flag=True, help="Delete for good, not into the trash.")
@dry_run_option
@db_option
@json_option
def cleanup(
    older_than: str | None,
    idle_sessions: str | None,
    below_importance: float | None,
    per_scope_cap: int | None,
    keep_expired: bool,
    scope: str,
    where: str | None,
    hard: bool,
    dry_run: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Delete what is not wanted any more: expired memories, and what the options name.

    Each reason is enough by itself; --scope and --where say of which memories. A conversation goes as a whole or not at
    all. Deleted memories go to the trash, from which recall restore brings them back; what expired, or was in the trash
    for long enough, goes for good.
    """
    condition = parse_object(where, "--where")
    with open_existing(db) as memory, show_work("deleting", GOES_ON, quiet=as_json) as show:
        found = memory.cleanup(
            expired=not keep_expired,
            older_than=parse_age(older_than, "--older-than"),
            idle_sessions=parse_age(idle_sessions, "--idle-sessions"),
            below_importance=below_importance,
            per_scope_cap=per_scope_cap,
            scope=scope,
            where=condition,
            hard=hard,
            dry_run=dry_run,
            progress=show,
        )
    if as_json:
        write_json({**asdict(found), "records": found.records})
        return
    verb = "would delete" if dry_run else "deleted"
    write(
        f"{verb} {found.records} memories: {found.expired} expired, {found.old} old, "
        f"{found.idle} of idle conversations, {found.unimportant} unimportant, {found.over_cap} over the cap; "
        f"{found.sessions} whole conversations"
    )
    write(f"{verb} for good {found.purged} memories of the trash")


@click.command()
@db_option
@json_option
def vacuum(db: str | None, as_json: bool) -> None:
    """Make the file as small as what it holds.

    Others can read it meanwhile, and writers wait for a moment. Needs as much room on the disk again as the file has.
    """
    with open_existing(db) as memory, show_work("vacuuming", AS_BEFORE, quiet=as_json) as show:
        found = memory.vacuum(progress=show)
    if as_json:
        write_json(asdict(found))
    else:
        write(f"{found.bytes_before:,} bytes before, {found.bytes_after:,} after")
    if not found.settled:
        tell("another program is reading an old state of the file; it gets smaller with the next write after that")


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@db_option
@json_option
def backup(file: str, force: bool, db: str | None, as_json: bool) -> None:
    """Copy the memory to FILE while others use it, and verify the copy.

    FILE appears when it is whole. To restore it, put it in the place of the memory file while no program has that open.
    """
    with open_existing(db) as memory, show_work("copying", NO_COPY, quiet=as_json) as show:
        found = memory.backup(file, force=force, progress=show)
    if as_json:
        write_json(asdict(found))
    else:
        write(
            f"{found.path}: {found.records:,} memories, {found.vectors:,} vectors, {found.file_bytes:,} bytes, verified"
        )


@click.command()
@click.option("--keywords", is_flag=True, help="Only the keyword index, from the texts.")
@click.option("--vectors", is_flag=True, help="Only the codes of the vectors, from the vectors.")
@click.option("--words", is_flag=True, help="Only memories that hold a word which the dictionary has got or lost.")
@scope_option
@where_option
@dry_run_option
@db_option
@json_option
def reindex(
    keywords: bool,
    vectors: bool,
    words: bool,
    scope: str,
    where: str | None,
    dry_run: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Make the indexes anew, after a change of the segmenter or the dictionary.

    No text is embedded. Searches and writers go on meanwhile; interrupted, the same command goes on where it ended.
    """
    if keywords + vectors + words > 1:
        raise InvalidInputError("give one of --keywords, --vectors and --words, or none for both indexes")
    condition = parse_object(where, "--where")
    with open_existing(db) as memory, show_work("indexing", GOES_ON, quiet=as_json) as show:
        found = memory.reindex(
            keywords=not vectors, vectors=not keywords, words_only=words, scope=scope, where=condition,
            dry_run=dry_run, progress=show,
        )  # fmt: skip
    if as_json:
        shape = asdict(found)
        write_json({name: shape[name] for name in ("records", "changed", "vectors", "dry_run")})
    elif dry_run:
        write(f"would index {found.records} memories anew")
    else:
        write(f"indexed {found.records} memories anew, {found.changed} of them otherwise than before")
        if found.vectors:
            write(f"made the codes of {found.vectors} vectors anew")
