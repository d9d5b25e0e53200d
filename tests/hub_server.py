"""A model hub at two addresses, as the real ones are: one that redirects, one that has the files, and faults to order.

`HubServer` serves `/{repository}/resolve/{commit}/{path}` with the files it was given; `faults` are used up, one a
request for a file, in their order.
"""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from models import MEAN, build_cross_encoder, build_model
from support import LIMIT

from recall_core.embedding.presets import ModelFile, Preset

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "owner/tiny"
PAGE = b"<!DOCTYPE html><html><body>Service unavailable</body></html>"


@dataclass(slots=True)
class Fault:
    """What happens to one request: by default nothing."""

    status: int = 200
    cut_after: int | None = None  # bytes
    page: bool = False  # a web page in place of the file
    announced: bool = True  # the page says that it is one
    ranges: bool = True
    etag: str = '"one"'
    content: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    wait: threading.Event | None = None  # sends half of the file and waits


class HubServer:
    """Two servers on free ports. `requests` are the files that were asked for, each with its Range."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str | None]] = []
        self.half_sent = threading.Event()
        self._lock = threading.Lock()
        self._storage = _listen(_Storage, self)
        self._front = _listen(_Front, self)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._front.server_port}"

    @property
    def storage(self) -> str:
        return f"http://localhost:{self._storage.server_port}"

    def next_fault(self, path: str, wanted: str | None) -> Fault:
        with self._lock:
            self.requests.append((path, wanted))
            return self.faults.pop(0) if self.faults else Fault()

    def asked(self, name: str) -> list[str | None]:
        """Return the Range of each request for a file."""
        return [wanted for path, wanted in self.requests if path == name]

    def close(self) -> None:
        for server in (self._front, self._storage):
            server.shutdown()
            server.server_close()


@contextmanager
def serve(files: dict[str, bytes]) -> Iterator[HubServer]:
    server = HubServer(files)
    try:
        yield server
    finally:
        server.close()


def tiny_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a tiny embedding model by their paths in its repository."""
    build_model(folder, pooling=MEAN)
    return {f"onnx/{name}": (folder / name).read_bytes() for name in ("model.onnx", "tokenizer.json")}


def tiny_reranker_files(folder: Path) -> dict[str, bytes]:
    build_cross_encoder(folder)
    return {f"onnx/{name}": (folder / name).read_bytes() for name in ("model.onnx", "tokenizer.json")}


def preset_of(files: dict[str, bytes], **changes: object) -> Preset:
    """Return the preset that pins `files`."""
    pinned = tuple(
        ModelFile(path.rpartition("/")[2], path, len(content), hashlib.sha256(content).hexdigest())
        for path, content in files.items()
    )
    settings = {
        "name": "tiny",
        "languages": "none",
        "licence": "MIT",
        "repository": REPOSITORY,
        "commit": COMMIT,
        "files": pinned,
        "dimensions": 6,
        "pooling": "mean",
        "query_prefix": "query : ",
        "max_length": 32,
    }
    return Preset(**{**settings, **changes})


def _listen(handler: type[_Handler], hub: HubServer) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type(handler.__name__, (handler,), {"hub": hub}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class _Front(_Handler):
    """Redirects within itself first, by a path alone, then to the other host, as hubs do."""

    def do_GET(self) -> None:
        if self.path.startswith("/resolve-cache"):
            self.redirect(self.hub.storage + self.path.removeprefix("/resolve-cache"))
        else:
            self.redirect("/resolve-cache" + self.path)

    def redirect(self, place: str) -> None:
        self.send_response(307)
        self.send_header("Location", place)
        self.send_header("Content-Length", "0")
        self.end_headers()


class _Storage(_Handler):
    """Has the files, and the faults."""

    def do_GET(self) -> None:
        name = self.path.removeprefix(f"/{REPOSITORY}/resolve/{COMMIT}/")
        fault = self.hub.next_fault(name, self.headers.get("Range"))
        if fault.status != 200 or name not in self.hub.files:
            self.answer(fault.status if fault.status != 200 else 404, b"no", fault)
        elif fault.page:
            kind = "text/html; charset=utf-8" if fault.announced else None
            self.answer(200, PAGE, fault, kind, says_length=fault.announced)
        else:
            self.send_file(self.hub.files[name] if fault.content is None else fault.content, fault)

    def send_file(self, content: bytes, fault: Fault) -> None:
        start = self.find_start(fault)
        fault.headers.setdefault("ETag", fault.etag)
        if start:
            fault.headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.answer(206 if start else 200, content[start:], fault)

    def find_start(self, fault: Fault) -> int:
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if found is None or not fault.ranges or self.headers.get("If-Range", fault.etag) != fault.etag:
            return 0
        return int(found[1])

    def answer(
        self,
        status: int,
        body: bytes,
        fault: Fault,
        kind: str | None = "application/octet-stream",
        *,
        says_length: bool = True,
    ) -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        if says_length:
            self.send_header("Content-Length", str(len(body)))
        else:
            self.close_connection = True
        for name, value in fault.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.send_body(body, fault)

    def send_body(self, body: bytes, fault: Fault) -> None:
        if fault.wait is not None:
            self.wfile.write(body[: len(body) // 2])
            self.hub.half_sent.set()
            fault.wait.wait(LIMIT)
            self.wfile.write(body[len(body) // 2 :])
        elif fault.cut_after is not None:
            self.wfile.write(body[: fault.cut_after])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self.wfile.write(body)
