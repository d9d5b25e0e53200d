"""The progress bar of an import: on stderr if that is a terminal, otherwise nothing but the messages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from .output import is_terminal, one_line, tell


class Progress(Protocol):
    """Shows how far an import has come, and messages without tearing the bar."""

    def advance(self, size: int) -> None:
        """Tell that `size` more bytes of the input are done."""
        ...

    def tell(self, message: str) -> None:
        """Write a line to stderr."""
        ...


class Silent:
    """No bar."""

    def advance(self, size: int) -> None:
        """Show nothing."""

    def tell(self, message: str) -> None:
        """Write a line to stderr."""
        tell(message)


@contextmanager
def show_progress(total: int | None) -> Iterator[Progress]:
    """Show a bar for `total` bytes (None: unknown) while the context lasts."""
    if not is_terminal(sys.stderr):
        yield Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("importing"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True, force_terminal=True, highlight=False, markup=False, emoji=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("importing", total=total)

        class Bar:
            def advance(self, size: int) -> None:
                bar.advance(task, size)

            def tell(self, message: str) -> None:
                console.print(f"recall: {one_line(message)}", soft_wrap=True)

        yield Bar()
