"""The protocol over streamable HTTP on loopback, for those who have the token."""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError, StoreUnavailableError
from .answers import Answers

HOST = "127.0.0.1"
SHORTEST = 16  # characters of a token

Application = Callable[[Any, Any, Any], Awaitable[None]]


def find_token(given: str | None, file: Path) -> str:
    """Return the token that is given, else that of the file, which is made with a new one if it is missing.

    Raises InvalidInputError for one that is too short to be secret, or can't stand in a header.
    """
    token, origin = (given, "the token") if given is not None else (_keep_token(file), str(file))
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInputError(f"{origin} is no usable token: at least {SHORTEST} ASCII characters without spaces")
    return token


def serve_http(answers: Answers, token: str, port: int) -> None:
    """Serve at http://127.0.0.1:PORT/mcp until interrupted. A port of 0 takes a free one, which is logged."""
    import anyio
    import uvicorn

    from .sdk import http_application
    from .server import close, make_server

    application = require_token(http_application(make_server(answers)), token)
    server = uvicorn.Server(uvicorn.Config(application, host=HOST, port=port, log_level="warning", ws="none"))

    async def serve() -> None:
        try:
            await server.serve()
        finally:
            await close(answers)

    anyio.run(serve)


def require_token(application: Application, token: str) -> Application:
    """Return an ASGI application that answers 401 to who does not send `Authorization: Bearer TOKEN`."""
    wanted = f"Bearer {token}".encode()

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":  # it starts the sessions
            await application(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        if scope["type"] == "http" and hmac.compare_digest(given, wanted):
            await application(scope, receive, send)
            return
        body = json.dumps({"error": "invalid_token", "advice": "send Authorization: Bearer TOKEN"}).encode()
        headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return guard


def _keep_token(file: Path) -> str:
    try:
        if not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as new:
                new.write(secrets.token_urlsafe(32) + "\n")
        return file.read_text("ascii").strip()
    except FileExistsError:  # another server was quicker
        return file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreUnavailableError(f"the token can't be kept in {file} ({error}); give --token-file") from error
