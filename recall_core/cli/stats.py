"""`recall stats`: what a file holds and in which state it is."""

from __future__ import annotations

import click

from .opening import open_existing
from .options import db_option, json_option
from .output import write_json
from .printing import print_stats
from .shapes import stats_shape


@click.command()
@db_option
@json_option
def stats(db: str | None, as_json: bool) -> None:
    """Tell what the file holds and in which state it is."""
    with open_existing(db) as memory:
        found = memory.stats()
    if as_json:
        write_json(stats_shape(found))
    else:
        print_stats(found)
