"""What a memory's views offer to bring memories in and out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..engine import Engine, Progress
from ..scopes import join_scopes
from ..times import Time, to_micros

if TYPE_CHECKING:
    from .importing import Notice, OnTaken
    from .input import Input
    from .report import Imported


class Transfer:
    """Export and import of what lies in a view's scope and below."""

    _engine: Engine
    _base: str

    def import_(
        self,
        path: str | Path | BinaryIO | Input,
        *,
        format: str = "auto",
        scope: str = "",
        dry_run: bool = False,
        on_duplicate: OnTaken = "keep",
        since: Time | None = None,
        extra_to_metadata: bool = False,
        redact: bool | None = None,
        batch: int = 256,
        progress: Progress | None = None,
        notice: Notice | None = None,
        stopped: Callable[[Imported], object] | None = None,
    ) -> Imported:
        """Store what a file of another program, or of `export`, holds, below `scope`, and say what became of it.

        The format is found out unless it is given; `docs/transfer.md` lists them. Records are known again by their
        ids, so that importing a file twice adds nothing, nor brings back what was deleted and can be restored; with
        `on_duplicate` "replace" the file's version overwrites the stored one, with "error" it counts as failed. `since`
        leaves out older records, `extra_to_metadata` keeps unknown keys of plain JSON lines, `redact` is that of `add`.

        What can't be read or stored is counted, passed to `notice` as it is met, and costs nothing else. `progress` is
        called after each `batch` (one transaction) with the number of records read so far. An interrupted import, of
        which `stopped` gets to know what it has done, is completed by running it again. Raises InvalidInputError if
        nothing can be read.
        """
        from .importing import Hooks, Options, import_file

        options = Options(
            on_duplicate=on_duplicate,
            since=None if since is None else to_micros(since, "since"),
            dry_run=dry_run,
            batch=batch,
            redact=redact,
            keeps_extra=extra_to_metadata,
        )
        base = join_scopes(self._base, scope)
        return import_file(self._engine, base, path, format, options, Hooks(progress, notice, stopped))
