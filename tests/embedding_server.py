"""A local server that plays the embedding APIs of OpenAI, Cohere and Volcano Ark, with all that can go wrong there.

`EmbeddingServer()` listens on a free port of this machine. What it does is said by its fields, or for a number of
requests by `server.script`: replies that are given first, one a request.
"""

from __future__ import annotations

import base64
import json
import struct
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support import LIMIT, HashedEmbedder

KEY = "sk-very-secret-0123456789"
POISON = "forbidden words"


@dataclass
class Fault:
    """An answer in place of vectors: a status with a body, or a connection that is cut in the middle of it."""

    status: int = 500
    code: str | None = None
    message: str = "something is wrong"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    cut: bool = False
    wait: threading.Event | None = None  # for it to be set before anything is answered
    vectors: Callable[[list[Any]], Any] | None = None  # changes the items of `data` of a good answer

    def content(self) -> bytes:
        if self.body is not None:
            return self.body
        return json.dumps({"error": {"code": self.code, "message": self.message, "param": "", "type": ""}}).encode()


OVERLOADED = Fault(503, "ServerOverloaded")


class EmbeddingServer(ThreadingHTTPServer):
    """Counts what is asked of it: `requests`, `embedded` (how often each text got a vector), `most` in flight."""

    daemon_threads = True
    allow_reuse_address = False
    request_queue_size = 128

    def __init__(self, dimensions: int = 8) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hashed = HashedEmbedder(dimensions)
        self.script: deque[Fault | None] = deque()
        self.always: Fault | None = None
        self.fails_every = 0  # each so many-th request is answered with `OVERLOADED`
        self.key: str | None = None  # wanted
        self.refused: Fault = Fault(400, "SensitiveContentDetected", "the request may contain sensitive information")
        self.takes_multimodal = True
        self.takes_strings = True
        self.encodes = False  # answers in base64
        self.together = 0  # so many requests have to be there at once; afterwards each waits a moment for others
        self.requests: list[Request] = []
        self.embedded: Counter[str] = Counter()
        self.most = 0
        self.running = 0
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> EmbeddingServer:
        self.thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.shutdown()
        self.server_close()
        self.thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""

    def plan(self, request: Request) -> Fault | None:
        """Note a request, and return what is to go wrong with it."""
        with self.changed:
            self.requests.append(request)
            self.running += 1
            self.most = max(self.most, self.running)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.most >= self.together, LIMIT)
            self.changed.wait_for(lambda: self.running >= self.together, 0.05)
            if self.script:
                return self.script.popleft()
            if self.fails_every and len(self.requests) % self.fails_every == 0:
                return OVERLOADED
            return self.always

    def done(self) -> None:
        with self.changed:
            self.running -= 1


@dataclass
class Request:
    """What was asked."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        given = self.body.get("input", self.body.get("texts"))
        given = [given] if isinstance(given, str) else given
        return [item["text"] if isinstance(item, dict) else item for item in given]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EmbeddingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = Request(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        fault = self.server.plan(request)
        try:
            if fault is not None and fault.wait is not None:
                fault.wait.wait(LIMIT)
            fails = fault is not None and fault.vectors is None and fault.wait is None
            given = fault if fails else self.judge(request, fault)
            if isinstance(given, Fault):
                self.answer(given.status, given.content(), given.headers, cut=given.cut)
            else:
                self.server.embedded.update(request.texts)
                self.answer(200, json.dumps(given).encode(), {})
        finally:
            self.server.done()

    def judge(self, request: Request, change: Fault | None) -> Fault | dict[str, Any]:
        """Return the vectors of a request in the shape of its path, or what a server would have against it."""
        server = self.server
        if server.key is not None and request.headers.get("authorization") != f"Bearer {server.key}":
            return Fault(401, "AuthenticationError", f"wrong key: {request.headers.get('authorization')}")
        if any(not text.strip() for text in request.texts):
            return Fault(400, "InvalidParameter", "a text is empty")
        if any(POISON in text for text in request.texts):
            return server.refused
        length = request.body.get("dimensions", request.body.get("output_dimension"))
        hashed = server.hashed if length is None else HashedEmbedder(length)
        vectors = [vector.tolist() for vector in hashed.embed_passages(request.texts)]
        if request.path.endswith("/embeddings/multimodal"):
            if not server.takes_multimodal or not all(isinstance(item, dict) for item in request.body["input"]):
                return Fault(404, "InvalidEndpointOrModel.NotFound", "no such model")
            fused = [sum(column) for column in zip(*vectors, strict=True)]
            return {"object": "list", "data": {"object": "embedding", "embedding": fused}}
        if request.path.endswith("/embed"):
            return {"id": "x", "embeddings": {"float": vectors}, "texts": request.texts}
        if not server.takes_strings:
            return Fault(400, "InvalidParameter", "the model does not support this api")
        data = [
            {"object": "embedding", "index": index, "embedding": self.encode(vector)}
            for index, vector in enumerate(vectors)
        ]
        changed = data if change is None or change.vectors is None else change.vectors(data)
        return {"object": "list", "data": changed, "model": request.body["model"]}

    def encode(self, vector: list[float]) -> Any:
        if not self.server.encodes:
            return vector
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()

    def answer(self, status: int, body: bytes, headers: dict[str, str], *, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
