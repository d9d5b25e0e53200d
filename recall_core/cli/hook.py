"""`recall hook`: what Claude Code calls at the events of a session."""

from __future__ import annotations

import click

from recall_core.hooks.running import EVENTS

from .answering import answer
from .options import db_option


@click.command()
@click.argument("event", type=click.Choice(EVENTS))
@db_option
def hook(event: str, db: str | None) -> None:
    """Answer an event of Claude Code, whose JSON is read from standard input.

    Whatever happens the exit code is 0; what went wrong is in the log.
    """
    answer(event, db)
