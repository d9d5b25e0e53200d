"""The application: its commands, and how each way to end becomes an exit code and a line on stderr."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any

import click

from recall_core import __version__
from recall_core.errors import InvalidInputError, RecallError, RecordExistsError, RecordNotFoundError, VectorError

from .adding import add
from .dictionary import dictionary
from .doctor import doctor
from .embedding import embed
from .exporting import export
from .importing import import_file
from .insight import digest, merge, similar, topics
from .lifecycle import deleted, forget, link, restore, touch, unlink
from .maintenance import backup, cleanup, reindex, vacuum
from .models import models
from .output import INTERRUPTED, NOTHING, UNUSABLE_FILE, UNUSABLE_INPUT, prepare_streams, tell
from .records import delete, get, list_records
from .reembed import reembed
from .searching import context, search
from .stats import stats


class RecallGroup(click.Group):
    """The group of commands, ending in our exit codes and one line on stderr."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands in the order of their use, not of the alphabet."""
        return list(self.commands)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line `args` and exit, or return the exit code if not `standalone_mode`."""
        # Given as a list, so that on Windows no * or ? in a query is taken for file names.
        given = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(given, prog_name or "recall", complete_var, standalone_mode=False, **extra) or 0
        except (click.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except click.UsageError as error:
            code = UNUSABLE_INPUT
            tell(explain_usage(error))
        except RecallError as error:
            code = exit_code(error)
            tell(str(error))
        except OSError as error:
            code = UNUSABLE_FILE
            tell(str(error))
        if not standalone_mode:
            return code
        sys.exit(code)


@click.group(
    cls=RecallGroup,
    name="recall",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="recall %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Long-term memory in one SQLite file: store texts, find them by keyword and by meaning, in Chinese and English.

    Exit codes: 0 done; 1 nothing found or refused; 2 bad call or input; 3 the file can't be used.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


_COMMANDS = (
    *(add, search, context, list_records, get, delete, restore, deleted, forget, touch, link, unlink),
    *(import_file, export, stats),
    *(similar, merge, topics, digest, embed, reembed, models),
    *(cleanup, vacuum, reindex, dictionary, backup),
    doctor,
)
for _command in _COMMANDS:
    app.add_command(_command)


def main() -> None:
    """Run the `recall` command."""
    prepare_streams()
    logging.basicConfig(format="recall: %(message)s", level=logging.WARNING)
    app.main()


def exit_code(error: RecallError) -> int:
    """Return the exit code that tells of an error."""
    if isinstance(error, RecordExistsError | RecordNotFoundError):
        return NOTHING
    if isinstance(error, InvalidInputError | VectorError):
        return UNUSABLE_INPUT
    return UNUSABLE_FILE


def explain_usage(error: click.UsageError) -> str:
    """Say what is wrong with a command line, and where to read how to write it."""
    command = error.ctx.command_path if error.ctx else "recall"
    return f"{error.format_message().rstrip('.')}; see {command} --help"
