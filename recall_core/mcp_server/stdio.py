"""The protocol on standard input and output, and nothing else there."""

from __future__ import annotations

import os
import sys

from .answers import Answers


def take_stdout() -> int:
    """Keep standard output for the protocol, and return its descriptor: whatever else writes there, native libraries
    and children included, writes to standard error from now on.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return kept


def serve_stdio(answers: Answers, stdout: int) -> None:
    """Serve until the client closes standard input."""
    import anyio
    from mcp.server.stdio import stdio_server

    from .sdk import low_level
    from .server import close, make_server

    async def serve() -> None:
        low = low_level(make_server(answers))
        out = anyio.wrap_file(os.fdopen(stdout, "w", encoding="utf-8", newline="\n"))
        try:
            async with stdio_server(stdout=out) as (incoming, outgoing):
                await low.run(incoming, outgoing, low.create_initialization_options())
        finally:
            await close(answers)

    anyio.run(serve)
