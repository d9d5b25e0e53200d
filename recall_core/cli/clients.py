"""`recall install` and `recall uninstall`: the server in the configuration of a client."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import click

from recall_core.client_scopes import Sharing
from recall_core.clients.files import Edit, write_edits
from recall_core.clients.installing import plan_install, plan_uninstall
from recall_core.clients.known import CLIENTS, Place, find_changes
from recall_core.errors import InvalidInputError

from .output import tell, write

CLAUDE_CODE = "claude-code"  # the one that gets hooks
HERMES = "hermes"  # which has an installer of its own, in its adapter

client_argument = click.argument("client", type=click.Choice([*CLIENTS, HERMES]))
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing.")


@click.command()
@client_argument
@click.option("--db", metavar="PATH", help="The memory file that the client shall use; RECALL_DB, or the default one.")
@click.option(
    "--sharing",
    type=click.Choice(get_args(Sharing)),
    default="shared",
    show_default=True,
    help="One memory for all clients, one for each project folder, or one of this client alone.",
)
@click.option("--no-hooks", is_flag=True, help="For claude-code: the server alone; hooks from before are taken out.")
@dry_run_option
def install(client: str, db: str | None, sharing: Sharing, no_hooks: bool, dry_run: bool) -> None:
    """Add the memory to a client's configuration, and leave all else there as it is.

    A file that is changed is kept beside it, with the ending .before-recall. Doing it again changes nothing.
    """
    if no_hooks and client != CLAUDE_CODE:
        raise InvalidInputError(f"{client} gets no hooks; leave out --no-hooks")
    if client == HERMES:
        if db or sharing != "shared":
            raise InvalidInputError("Hermes' memory is a file of its home; leave out --db and --sharing")
        _call_hermes("install", dry_run)
        return
    db = db or os.environ.get("RECALL_DB")  # which a client that a desktop starts does not know
    command = [_find_command(), "mcp", "--client", client]
    command += [] if sharing == "shared" else ["--sharing", sharing]
    command += ["--db", str(Path(db).expanduser().resolve())] if db else []
    changes = find_changes(client, command, Place.here())
    edits = plan_install([change for change in changes if not (no_hooks and change.item)])
    if no_hooks:
        edits += plan_uninstall([change for change in changes if change.item])
    _carry_out(edits, dry_run)
    if not edits:
        write(f"{client} has the memory already; nothing was changed")
    elif not dry_run:
        write(f"restart {client} to use it; undo with: recall uninstall {client}")
    if find_spec("mcp") is None:
        tell("the server needs the MCP SDK, which is not installed; run: pip install 'dualrecall[mcp]'")


@click.command()
@client_argument
@dry_run_option
def uninstall(client: str, dry_run: bool) -> None:
    """Take the memory out of a client's configuration. What is remembered stays."""
    if client == HERMES:
        _call_hermes("uninstall", dry_run)
        return
    edits = plan_uninstall(find_changes(client, ["recall", "mcp"], Place.here()))
    _carry_out(edits, dry_run)
    if not edits:
        write(f"{client} does not have the memory; nothing was changed")


def _carry_out(edits: Sequence[Edit], dry_run: bool) -> None:
    if not dry_run:
        write_edits(edits)
    for edit in edits:
        if dry_run:
            write(edit.diff())
        elif edit.after is None:
            write(f"deleted {edit.file}, which was made by the installation")
        else:
            kept = f" (as it was before: {edit.backup})" if edit.keeps else ""
            write(f"{'made' if edit.before is None else 'changed'} {edit.file}{kept}")


def _find_command() -> str:
    """Return the absolute path of `recall`, since clients that a desktop starts have another PATH: the one that runs
    now, as there may be another program of this name.
    """
    places = [Path(sys.argv[0]), Path(sysconfig.get_path("scripts")) / "recall"]
    running = (shutil.which(str(place.absolute())) for place in places if place.stem.lower() == "recall")
    found = next(filter(None, running), None) or shutil.which("recall")
    if found is None:
        raise InvalidInputError("the command recall is not on the PATH; install the package with its scripts")
    return str(Path(found).absolute())


def _call_hermes(what: str, dry_run: bool) -> None:
    if find_spec("recall_hermes") is None:
        raise InvalidInputError("Hermes' adapter is not installed; run: pip install dualrecall-hermes")
    code = import_module("recall_hermes.main").main([what, *(["--dry-run"] if dry_run else [])])
    if code:
        click.get_current_context().exit(code)
