"""What stands before the server over HTTP: the token, and how large a request may be."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from recall_core.mcp_server.http import LARGEST, limit_body, require_token

TOKEN = "token-of-some-length"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with what was sent."""
    body = (await receive())["body"] if scope["method"] == "POST" else b""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def ask(application: Any, *blocks: bytes, method: str = "POST", header: bytes | None = None) -> tuple[int, bytes]:
    """Return the status and the body of an answer to a request that comes in blocks."""
    waiting = [
        {"type": "http.request", "body": block, "more_body": place < len(blocks) - 1}
        for place, block in enumerate(blocks)
    ]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [] if header is None else [(b"authorization", header)]
    asyncio.run(application({"type": "http", "method": method, "headers": headers}, receive, send))
    return sent[0]["status"], sent[1]["body"]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_who_has_the_token_is_let_through_however_the_scheme_is_written(scheme):
    assert ask(require_token(echo, TOKEN), b"hello", header=f"{scheme} {TOKEN}".encode()) == (200, b"hello")


@pytest.mark.parametrize(
    "header",
    [
        None, b"", b"Bearer", b"Bearer ", TOKEN.encode(), f"Basic {TOKEN}".encode(), f"Bearer {TOKEN.upper()}".encode(),
        f"Bearer {TOKEN[:-1]}".encode(), f"Bearer {TOKEN}x".encode(), f"Bearer  {TOKEN}".encode(), b"Bearer \xff\xe9",
    ],
)  # fmt: skip
def test_who_has_another_token_is_not(header):
    status, body = ask(require_token(echo, TOKEN), b"hello", header=header)
    assert (status, b"Authorization: Bearer" in body) == (401, True)


def test_a_request_of_any_number_of_blocks_arrives_whole():
    assert ask(limit_body(echo), b"one ", b"", b"two") == (200, b"one two")
    assert ask(limit_body(echo), b"x" * LARGEST) == (200, b"x" * LARGEST)


def test_a_request_that_is_too_large_is_refused_before_all_of_it_has_come():
    block = b"x" * (LARGEST // 2 + 1)
    status, body = ask(limit_body(echo), block, block, block, block)
    assert (status, b"too_large" in body) == (413, True)


def test_what_has_no_body_is_passed_on():
    assert ask(limit_body(echo), method="GET") == (200, b"")
