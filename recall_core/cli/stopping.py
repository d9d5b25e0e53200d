"""What a command says that is interrupted, or told not to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from .output import NOTHING, tell


@contextmanager
def stopping(explain: Callable[[], str]) -> Iterator[None]:
    """If the work is interrupted while the context lasts, say what that means for it."""
    try:
        yield
    except KeyboardInterrupt:
        tell(f"stopped; {explain()}")
        raise click.Abort from None  # without a cause, as it has been told


def confirm(question: str, refused: str) -> None:
    """Ask whether to go on. If not, say that it was `refused`, and end the command."""
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)  # the answer's line has no end
        tell(refused)
        raise
    if not agreed:
        tell(refused)
        click.get_current_context().exit(NOTHING)
