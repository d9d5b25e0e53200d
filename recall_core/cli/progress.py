"""The progress bar of long work: on stderr if that is a terminal, otherwise nothing but the messages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from .output import is_terminal, one_line, tell
from .stopping import stopping

GOES_ON = "what was done is kept, and the same command goes on"


class Progress(Protocol):
    """Shows how far the work has come, and messages without tearing the bar."""

    def advance(self, size: int) -> None:
        """Tell that `size` more bytes are done."""
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
def show_progress(total: int | None, label: str, *, quiet: bool = False) -> Iterator[Progress]:
    """Show a bar for `total` bytes (None: unknown) while the context lasts, unless `quiet`."""
    if quiet or not is_terminal(sys.stderr):
        yield Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(label), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True, force_terminal=True, highlight=False, markup=False, emoji=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=total)

        class Bar:
            def advance(self, size: int) -> None:
                bar.advance(task, size)

            def tell(self, message: str) -> None:
                console.print(f"recall: {one_line(message)}", soft_wrap=True)

        yield Bar()


@contextmanager
def show_records(
    label: str, *, quiet: bool = False
) -> Iterator[tuple[Callable[[int], object], Callable[[str], object]]]:
    """Show a count of records while the context lasts. It gives what takes the number so far, and what writes a line to
    stderr without tearing the display.
    """
    if quiet or not is_terminal(sys.stderr):
        yield lambda _done: None, tell
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(label), TextColumn("{task.completed}"), TimeElapsedColumn())
    console = Console(stderr=True, force_terminal=True, highlight=False, markup=False, emoji=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield (
            lambda done: bar.update(task, completed=done),
            lambda message: console.print(f"recall: {one_line(message)}", soft_wrap=True),
        )


@contextmanager
def show_work(label: str, stopped: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], object]]:
    """As `show_count`; if the work is interrupted, say what that means for it."""
    with show_count(label, quiet=quiet) as show, stopping(lambda: stopped):
        yield show


@contextmanager
def show_count(label: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], object]]:
    """Show a bar for things that are counted while the context lasts; it gives what takes (done, total)."""
    if quiet or not is_terminal(sys.stderr):
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True, force_terminal=True, highlight=False, markup=False, emoji=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
