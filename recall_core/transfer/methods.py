"""What a memory's views offer to bring memories in and out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..engine import Progress
from ..scoped import Scoped, Where
from ..scopes import join_scopes
from ..times import Time, to_micros

if TYPE_CHECKING:
    from .importing import Notice, OnTaken
    from .input import Input
    from .report import Exported, Imported


class Transfer(Scoped):
    """Export and import of what lies in a view's scope and below."""

    def export(
        self,
        target: str | Path | BinaryIO,
        *,
        scope: str = "",
        where: Where | None = None,
        session: str | None = None,
        vectors: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Write memories as JSON lines that `import_` reads, and say how many; `docs/transfer.md` describes the format.

        All that is visible in `scope` and below, as the filters say: records with their ids and times, session titles,
        links between them, with `vectors` also these; from a whole memory its dictionary. Expired and deleted records
        are not among it. Scopes are written as seen from this view. The same memories always give the same bytes.

        `target` is a path, compressed if it ends in .gz, or a stream for bytes. A file is replaced when the export is
        complete, and stays as it was if it fails. `progress` is called with the number of records so far. What is
        written to the memory meanwhile may or may not be in it. Raises InvalidInputError, StoreError.
        """
        from .exporting import Export, open_target

        selection = self._select(scope, where, session)
        with open_target(target) as stream:
            return Export(self._engine, self._base, selection, stream, vectors, progress).run()

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
