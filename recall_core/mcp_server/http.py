"""The protocol over streamable HTTP on loopback, for those who have the token."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError, StoreUnavailableError
from .answers import Answers

HOST = "127.0.0.1"
SHORTEST = 16  # characters of a token
LARGEST = 4 << 20  # bytes of a request
PATIENCE = 5  # seconds that calls have to end when the server is told to

Application = Callable[[Any, Any, Any], Awaitable[None]]


def find_token(given: str | None, file: Path) -> str:
    """Return the token that is given, else that of the file, which is made with a new one if it is missing.

    Raises InvalidInputError for one that is too short to be secret, or can't stand in a header.
    """
    token, origin = (given, "RECALL_MCP_TOKEN") if given is not None else (_keep_token(file), str(file))
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInputError(f"{origin} has no usable token: at least {SHORTEST} ASCII characters without spaces")
    return token


def bind(port: int) -> socket.socket:
    """Return a socket that listens at a port of this machine, a free one for 0. Raises StoreUnavailableError."""
    bound = socket.socket()
    try:
        if sys.platform != "win32":  # where it would let two servers have one port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, port))
        bound.listen()  # until then another one could be bound to the same port
    except OSError as error:
        bound.close()
        raise StoreUnavailableError(f"port {port} can't be used ({error}); give another --port") from error
    return bound


def serve_http(answers: Answers, token: str, bound: socket.socket) -> None:
    """Serve at http://127.0.0.1:PORT/mcp until SIGINT or SIGTERM."""
    import anyio
    import uvicorn

    from .sdk import http_application
    from .server import close, make_server

    application = require_token(limit_body(http_application(make_server(answers))), token)
    config = uvicorn.Config(application, log_level="warning", ws="none", timeout_graceful_shutdown=PATIENCE)

    async def serve() -> None:
        # uvicorn ends with the signal that it was told to end by, once more; what is here is done after that.
        signals = (signal.SIGINT, signal.SIGTERM)
        with contextlib.nullcontext() if sys.platform == "win32" else anyio.open_signal_receiver(*signals):
            try:
                await uvicorn.Server(config).serve(sockets=[bound])
            finally:
                await close(answers)

    anyio.run(serve)


def require_token(application: Application, token: str) -> Application:
    """Return an ASGI application that answers 401 to who does not send `Authorization: Bearer TOKEN`."""

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":  # it starts the sessions
            await application(scope, receive, send)
            return
        scheme, _, given = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
        right = hmac.compare_digest(given, token.encode())
        if scope["type"] == "http" and scheme.lower() == b"bearer" and right:
            await application(scope, receive, send)
            return
        advice = {"error": "invalid_token", "advice": "send Authorization: Bearer TOKEN"}
        await _refuse(send, 401, advice, (b"www-authenticate", b"Bearer"))

    return guard


def limit_body(application: Application) -> Application:
    """Return an ASGI application that answers 413 to requests which are too large: not all of the SDKs do."""

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await application(scope, receive, send)
            return
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > LARGEST:
                await _refuse(send, 413, {"error": "too_large", "advice": f"send at most {LARGEST:,} bytes"})
                return
        whole = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def receive_whole() -> Any:
            return whole.pop() if whole else await receive()

        await application(scope, receive_whole, send)

    return guard


async def _refuse(send: Any, status: int, reason: dict[str, str], *headers: tuple[bytes, bytes]) -> None:
    content = (b"content-type", b"application/json")
    await send({"type": "http.response.start", "status": status, "headers": [content, *headers]})
    await send({"type": "http.response.body", "body": json.dumps(reason).encode()})


def _keep_token(file: Path) -> str:
    try:
        if not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_token(file)
        return file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreUnavailableError(f"the token can't be kept in {file} ({error}); give --token-file") from error


def _make_token(file: Path) -> None:
    """Write a new token, unless another server is quicker. Whoever finds the file finds all of it."""
    new = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as written:
            written.write(secrets.token_urlsafe(32) + "\n")
        os.link(new, file)
    except FileExistsError:
        return
    except OSError:  # this file system has no links
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
