"""The application: its commands, and how each way to end becomes an exit code and a line on stderr."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from recall_core import __version__
from recall_core.errors import InvalidInputError, RecallError, RecordExistsError, RecordNotFoundError, VectorError

from .output import INTERRUPTED, NOTHING, UNUSABLE_FILE, UNUSABLE_INPUT, prepare_streams, tell

# Where each command is, in the order of their use; a module is imported when its command is called.
COMMANDS = {
    "add": "adding.add",
    "search": "searching.search",
    "context": "searching.context",
    "list": "records.list_records",
    "get": "records.get",
    "delete": "records.delete",
    "restore": "lifecycle.restore",
    "deleted": "lifecycle.deleted",
    "forget": "lifecycle.forget",
    "touch": "lifecycle.touch",
    "link": "lifecycle.link",
    "unlink": "lifecycle.unlink",
    "import": "importing.import_file",
    "export": "exporting.export",
    "stats": "stats.stats",
    "similar": "insight.similar",
    "merge": "insight.merge",
    "topics": "insight.topics",
    "digest": "insight.digest",
    "embed": "embedding.embed",
    "reembed": "reembed.reembed",
    "models": "models.models",
    "cleanup": "maintenance.cleanup",
    "vacuum": "maintenance.vacuum",
    "reindex": "maintenance.reindex",
    "dict": "dictionary.dictionary",
    "backup": "maintenance.backup",
    "doctor": "doctor.doctor",
    "mcp": "mcp.mcp",
    "install": "clients.install",
    "uninstall": "clients.uninstall",
    "hook": "hook.hook",
}


class RecallGroup(click.Group):
    """The group of commands, ending in our exit codes and one line on stderr."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands in the order of their use, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(".")
        command: click.Command = getattr(import_module(f"recall_core.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that a line begins with; if there is none, name the one that was perhaps meant."""
        if args[0] not in COMMANDS:
            from difflib import get_close_matches

            for meant in get_close_matches(args[0], COMMANDS, 1):
                ctx.fail(f"No such command {args[0]!r} (did you mean {meant}?)")
        return super().resolve_command(ctx, args)

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
        except (click.Abort, KeyboardInterrupt) as error:
            code = INTERRUPTED
            if isinstance(error, KeyboardInterrupt) or error.__cause__ is not None:  # nobody has said so yet
                tell("stopped")
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
    message = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption) and error.ctx is not None and error.ctx.parent is None:
        message += "; those of a command stand behind its name"
    return f"{message} See {command} --help" if message.endswith("?") else f"{message}; see {command} --help"
