"""The command `recall-hermes`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from recall_core.errors import RecallError

from . import __version__
from .cli import recall_command, register_cli
from .installing import Plan, find_profile_home, install, plan_install, plan_uninstall, uninstall
from .names import PROVIDER, memory_file


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit code."""
    parser = argparse.ArgumentParser(prog="recall-hermes", description="Long-term memory for the Hermes Agent.")
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--home", help="the Hermes home; by default HERMES_HOME, else ~/.hermes")
    parser.add_argument("--profile", help="a profile of Hermes, in place of --home")
    register_cli(parser)
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name, text in (
        ("install", "make this the memory provider of a Hermes home"),
        ("uninstall", "take it out again; what is remembered stays"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--home", default=argparse.SUPPRESS, help="the Hermes home")
        command.add_argument("--profile", default=argparse.SUPPRESS, help="a profile of Hermes, in place of --home")
        command.add_argument("--dry-run", action="store_true", help="show what would be changed, and change nothing")
    args = parser.parse_args(arguments)
    try:
        home = find_profile_home(args.home, args.profile)
        if args.recall_command in ("install", "uninstall") and args.dry_run:
            _show(plan_install(home) if args.recall_command == "install" else plan_uninstall(home))
            return 0
        if args.recall_command == "install":
            _tell_installed(install(home))
            return 0
        if args.recall_command == "uninstall":
            done = uninstall(home)
            print(f"recall {'was taken out of' if done.changed else 'was not in'} {home}.")  # noqa: T201
            print(f"What is remembered stays in {memory_file(home)}.")  # noqa: T201
            return 0
    except (RecallError, ImportError, OSError) as error:
        print(f"recall-hermes: {error}", file=sys.stderr)  # noqa: T201
        return 2
    args.home = str(home)
    return recall_command(args)


def _tell_installed(done: Plan) -> None:
    state = "is now" if done.changed else "already was"
    print(f"recall {state} the memory provider of {done.home}, with {sys.executable}.")  # noqa: T201
    for edit in done.edits:
        if edit.keeps:
            print(f"{edit.file} as it was before is {edit.backup}.")  # noqa: T201
    if done.before not in ("", PROVIDER):
        print(f"Before, it was {done.before}; `recall-hermes uninstall` gives it back.")  # noqa: T201
    print("Start a new session of Hermes to use it.")  # noqa: T201


def _show(plan: Plan) -> None:
    for edit in plan.edits:
        print(edit.diff())  # noqa: T201
    if not plan.changed:
        print(f"nothing would be changed in {plan.home}")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
