"""`recall hook`: what Claude Code calls at the events of a session."""

from __future__ import annotations

from typing import Any

import click

from recall_core.hooks import EVENTS

from .answering import answer, note_fault
from .options import db_option
from .output import tell


class _Harmless(click.Command):
    """A command that does not fail if it is called wrongly, as by the settings of another version: at the exit code 2
    Claude Code would throw the prompt away.
    """

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **extra)
        except click.UsageError as error:
            note_fault(error.format_message())
            tell(error.format_message())
            raise click.exceptions.Exit(0) from None


@click.command(cls=_Harmless)
@click.argument("event", type=click.Choice(EVENTS))
@db_option
def hook(event: str, db: str | None) -> None:
    """Answer an event of Claude Code, whose JSON is read from standard input.

    Whatever happens the exit code is 0; what went wrong is in the log.
    """
    answer(event, db)
