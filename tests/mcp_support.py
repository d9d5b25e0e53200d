"""Real clients of the SDK that is installed, and real servers: `recall mcp` as a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import Implementation
from support import LIMIT, wait_until

try:
    import mcp.server.fastmcp  # noqa: F401

    MAJOR = 1
except ImportError:
    MAJOR = 2

COMMAND = "from recall_core.cli import main; main()"


@dataclass(frozen=True)
class Answer:
    """What a tool gave, whatever the SDK calls its attributes."""

    error: bool
    text: str
    data: dict[str, Any] | None


class Client:
    """A session of the SDK's client, with the names of the wire."""

    def __init__(self, session: ClientSession, server: dict[str, Any]) -> None:
        self.session = session
        self.server = server

    async def call(self, tool: str, **arguments: Any) -> Answer:
        found = dump(await self.session.call_tool(tool, arguments))
        text = "\n".join(part["text"] for part in found["content"])
        return Answer(bool(found.get("isError")), text, found.get("structuredContent"))

    async def store(self, text: str, **arguments: Any) -> str:
        answer = await self.call("store_memory", text=text, **arguments)
        assert not answer.error, answer.text
        assert answer.data is not None
        return str(answer.data["id"])

    async def found(self, query: str, **arguments: Any) -> list[str]:
        answer = await self.call("search_memory", query=query, **arguments)
        assert not answer.error, answer.text
        assert answer.data is not None
        return [memory["text"] for memory in answer.data["memories"]]


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


class Raw:
    """A server on standard input and output, and the bytes that go there."""

    def __init__(
        self, db: Path, *arguments: str, before: str = "", cwd: Path | None = None, **environment: str
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", before + COMMAND, "mcp", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
            env={**os.environ, "RECALL_DB": str(db), **environment},
        )  # fmt: skip

    def ask(self, line: bytes | dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a line; what else the server says is passed over."""
        self.send(line)
        assert self.process.stdout is not None
        while answer := self.process.stdout.readline():
            found = json.loads(answer)
            if "id" in found:
                return dict(found)
        raise AssertionError("the server ended")

    def send(self, line: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        self.process.stdin.flush()

    def begin(self) -> Raw:
        """Shake hands."""
        assert "serverInfo" in self.ask(HELLO)["result"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def end(self) -> tuple[int, bytes, bytes]:
        """Return the exit code, and what was left on both streams; standard input is closed if it was not."""
        rest, errors = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, rest, errors


def calling(tool: str, id: int = 2, **arguments: Any) -> dict[str, Any]:
    """Return the message that calls a tool."""
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def dump(value: Any) -> dict[str, Any]:
    """Return a value of the SDK as it goes over the wire."""
    return dict(value.model_dump(by_alias=True, exclude_none=True, mode="json"))


def parameters(db: Path, *arguments: str, **environment: str) -> StdioServerParameters:
    """Return how to start a server on a file."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH", "SYSTEMROOT") if name in os.environ}
    return StdioServerParameters(
        command=sys.executable,
        args=["-c", COMMAND, "mcp", *arguments],
        env={**kept, "RECALL_DB": str(db), **environment},
        cwd=str(db.parent),
    )


@contextlib.asynccontextmanager
async def connect_stdio(db: Path, *arguments: str, name: str = "tests", **environment: str) -> AsyncIterator[Client]:
    finished = False
    try:
        async with (
            stdio_client(parameters(db, *arguments, **environment)) as (incoming, outgoing),
            ClientSession(incoming, outgoing, client_info=Implementation(name=name, version="1")) as session,
        ):
            yield Client(session, dump(await session.initialize()))
            finished = True
    except BaseExceptionGroup as group:
        # The SDK's client 1.x raises if an answer comes while it closes, as that of a call which was given up may.
        if not finished or group.split(anyio.BrokenResourceError)[1] is not None:
            raise


@dataclass(frozen=True)
class Served:
    """A server that answers HTTP."""

    process: subprocess.Popen[bytes]
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@contextlib.contextmanager
def serving(db: Path, *arguments: str) -> Iterator[Served]:
    """Start a server for HTTP on a free port, and kill it in the end."""
    token = secrets.token_urlsafe(24)
    log = db.with_name(f"{token}.log")
    environment = {**os.environ, "RECALL_DB": str(db), "RECALL_MCP_TOKEN": token}
    command = [sys.executable, "-c", COMMAND, "mcp", "--http", "--port", "0", *arguments]
    with log.open("wb") as errors, subprocess.Popen(command, env=environment, stderr=errors) as process:
        try:
            wait_until(lambda: process.poll() is not None or b"/mcp" in log.read_bytes())
            address = re.search(rb"http://127.0.0.1:(\d+)/mcp", log.read_bytes())
            assert address is not None, log.read_text()
            yield Served(process, int(address[1]), token)
        finally:
            process.kill()


@contextlib.asynccontextmanager
async def connect_http(served: Served, token: str | None = None) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {served.token if token is None else token}"}
    if MAJOR == 1:
        import httpx as http
    else:
        import httpx2 as http
    from mcp.client.streamable_http import streamable_http_client

    opened = streamable_http_client(served.url, http_client=http.AsyncClient(headers=headers, timeout=LIMIT))
    async with opened as streams, ClientSession(streams[0], streams[1]) as session:
        yield Client(session, dump(await session.initialize()))


def run(test: Any, *arguments: Any) -> Any:
    """Run a coroutine function; a server that hangs ends it after some minutes."""

    async def bounded() -> Any:
        with anyio.fail_after(2 * LIMIT):
            return await test(*arguments)

    return anyio.run(bounded)
