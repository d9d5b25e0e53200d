"""`recall stats`: what a file holds and in which state it is."""

from __future__ import annotations

from dataclasses import replace

import click

from .opening import open_existing
from .options import db_option, json_option, scope_option
from .output import write_json
from .printing import print_breakdown, print_stats
from .shapes import stats_shape


@click.command()
@db_option
@scope_option
@click.option("--details", is_flag=True, help="Count by scope, session, role, kind, tag and day; in JSON always.")
@json_option
def stats(db: str | None, scope: str, details: bool, as_json: bool) -> None:
    """Tell what the file holds and in which state it is.

    With --scope the counts of --details are of that scope and below; the rest is of the whole file.
    """
    with open_existing(db) as memory:
        found = memory.stats()
        if details or as_json or scope:
            found = replace(found, details=memory.breakdown(scope=scope))
    if as_json:
        write_json(stats_shape(found))
        return
    print_stats(found)
    if found.details is not None:
        print_breakdown(found.details)
