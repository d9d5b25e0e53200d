"""The protocol on standard input and output, and nothing else there."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterator

from .answers import Answers

BLOCK = 1 << 16  # bytes that are read at once
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def take_streams() -> tuple[int, int]:
    """Keep standard input and output for the protocol, and return their descriptors: whatever else writes there, native
    libraries and children included, writes to standard error from now on, and what else reads finds nothing.
    """
    sys.stdout.flush()
    kept = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return kept


def serve_stdio(answers: Answers, stdin: int, stdout: int) -> None:
    """Serve until the client closes one of the streams, or a signal asks for the end."""
    import anyio
    from mcp.server.stdio import stdio_server

    from .sdk import low_level
    from .server import close, make_server, until_told

    async def serve() -> None:
        low = low_level(make_server(answers))
        out = anyio.wrap_file(os.fdopen(stdout, "w", encoding="utf-8", newline="\n"))
        try:
            async with until_told(), stdio_server(read_lines(stdin), out) as (incoming, outgoing):
                await low.run(incoming, outgoing, low.create_initialization_options())
        finally:
            await close(answers)

    anyio.run(serve)


async def read_lines(descriptor: int) -> AsyncIterator[str]:
    """Yield lines until the other side closes. Reading can't be interrupted, so a thread does it that nobody waits for
    when the server ends for another reason.
    """
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    put = asyncio.get_running_loop().call_soon_threadsafe

    def read() -> None:
        try:
            for line in _split(descriptor):
                put(lines.put_nowait, line)
            put(lines.put_nowait, None)
        except RuntimeError:
            return  # the server has ended meanwhile

    threading.Thread(target=read, name="recall-stdin", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield clean_line(line)


def clean_line(line: bytes) -> str:
    """Return a line as text that the SDK can read: what is no Unicode, such as half of an emoji where a client has cut
    a text, would get no answer at all.
    """
    text = line.decode("utf-8-sig", "replace")
    if SURROGATE.search(text) is None:
        return text
    try:
        whole = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _split(descriptor: int) -> Iterator[bytes]:
    begun: list[bytes] = []
    while block := _read(descriptor):
        *ends, rest = block.split(b"\n")
        for end in ends:
            yield b"".join([*begun, end])
            begun.clear()
        begun.append(rest)
    if any(begun):
        yield b"".join(begun)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, BLOCK)
    except OSError:  # it was never open, or its terminal is gone
        return b""
