"""`recall mcp`: the memory as an MCP server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import click

from recall_core.client_scopes import Sharing, check_client, choose_scope
from recall_core.errors import InvalidInputError
from recall_core.scopes import check_scope

from .opening import locate, open_server_memory
from .options import db_option, model_option
from .output import tell


@click.command()
@db_option
@model_option
@click.option(
    "--client", metavar="NAME", envvar="RECALL_CLIENT", help="Whose server this is: the source of what it stores."
)
@click.option(
    "--sharing",
    type=click.Choice(get_args(Sharing)),
    default="shared",
    show_default=True,
    envvar="RECALL_SHARING",
    help="One memory for all clients, one for each project folder, or one of this client alone.",
)
@click.option("--scope", metavar="PATH", help="Exactly this scope and below, in place of --sharing.")
@click.option("--project", metavar="FOLDER", help="The folder of --sharing project; by default the current one.")
@click.option("--no-redact", is_flag=True, help="Store keys, tokens and passwords as they are.")
@click.option("--http", is_flag=True, help="Serve streamable HTTP on 127.0.0.1 in place of standard input and output.")
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=8377,
    show_default=True,
    help="Of --http; 0 is any that is free.",
)
@click.option(
    "--token-file", metavar="FILE", help="The bearer token of --http; RECALL_MCP_TOKEN overrides it. Made if missing."
)
def mcp(
    db: str | None,
    model: str | None,
    client: str | None,
    sharing: Sharing,
    scope: str | None,
    project: str | None,
    no_redact: bool,
    http: bool,
    port: int,
    token_file: str | None,
) -> None:
    """Serve the memory to MCP clients such as Claude Code, Cursor and Codex.

    The model is loaded when it is first needed. Any number of servers may have the same file.
    """
    from recall_core.mcp_server.answers import Answers

    _need_sdk()
    if client:
        check_client(client)
    folder = _find_project(project) if sharing == "project" and scope is None else None
    chosen = choose_scope(sharing, client, folder) if scope is None else check_scope(scope)
    answers = Answers(lambda: open_server_memory(db, model, redact=not no_redact), chosen, client)
    if not http:
        from recall_core.mcp_server.stdio import serve_stdio, take_streams

        serve_stdio(answers, *take_streams())
        return
    from recall_core.mcp_server.http import HOST, bind, find_token, serve_http

    file = Path(token_file).expanduser() if token_file else locate(None).parent / "mcp-token"
    token = find_token(os.environ.get("RECALL_MCP_TOKEN"), file)
    shown = "RECALL_MCP_TOKEN" if "RECALL_MCP_TOKEN" in os.environ else file
    bound = bind(port)
    address = f"http://{HOST}:{bound.getsockname()[1]}/mcp"
    tell(f"serving {chosen or 'the whole memory'} at {address}; the bearer token is in {shown}")
    serve_http(answers, token, bound)


def _find_project(given: str | None) -> Path:
    """Return the project's folder: the one given, else that which the client names, else the current one.

    Raises InvalidInputError if there is none, so that no mistyped name begins a memory of its own.
    """
    named = given or os.environ.get("CLAUDE_PROJECT_DIR")
    if named:
        if not Path(named).expanduser().is_dir():
            raise InvalidInputError(f"there is no folder {named!r} to be the project; give --project")
        return Path(named)
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise InvalidInputError("the current folder is gone; give --project") from error


def _need_sdk() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise InvalidInputError("the MCP SDK is not installed; install it with: pip install 'dualrecall[mcp]'")
