"""Downloads one file over HTTP: gone on with where it was cut, and checked before it is put in its place."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recall_core.errors import ModelDownloadError

from .installed import PART, show_size
from .presets import ModelFile

if TYPE_CHECKING:
    import httpx

_BUSY = {408, 425, 429, 500, 502, 503, 504}
_REASONS = {
    401: "the repository asks for a login, which presets never need; the mirror may not have it",
    403: "access is refused: the repository is gated, or this address is blocked; try a mirror by HF_ENDPOINT",
    404: "it is not there; a mirror may lack it, so try without HF_ENDPOINT",
    410: "it is gone; a newer recall_core may know where it is now",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often a download is tried again in vain, and the seconds before: `first`, then twice as long each time."""

    tries: int = 6
    first: float = 1
    longest: float = 30


class _Again(Exception):  # noqa: N818
    """The request is worth another try, after `wait` seconds if the server said so."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Download:
    """The download of `file` from `url` to `target`, by way of a `.part` file beside it.

    `advance` is told how many bytes are done, also of earlier calls, and a negative number where they were in vain.
    """

    def __init__(
        self,
        client: httpx.Client,
        url: str,
        target: Path,
        file: ModelFile,
        *,
        advance: Callable[[int], None],
        patience: Patience,
    ) -> None:
        self._client = client
        self._url = url
        self._target = target
        self._file = file
        self._advance = advance
        self._patience = patience
        self._part = target.with_name(target.name + PART)
        self._etag: str | None = None
        self._resumed = False

    def run(self) -> None:
        """Download the file. Raises ModelDownloadError; what has arrived stays for the next call.

        An interrupted connection is taken up again as long as bytes arrive in between. A file whose hash is wrong is
        never put in place: if it was pieced together it is fetched once more as a whole, otherwise it is an error.
        """
        self._advance(self._size())
        while True:
            self._complete()
            if _digest(self._part) == self._file.sha256:
                _put_in_place(self._part, self._target)
                return
            self._drop()
            if not self._resumed:
                raise self._error(
                    "what arrived has another SHA-256 than the pinned one: it was changed or damaged on its way; "
                    "try another HF_ENDPOINT"
                )
            self._resumed = False

    def _complete(self) -> None:
        """Fetch until the part has the size of the file."""
        import httpx

        failures = 0
        while (had := self._size()) != self._file.size:
            try:
                if had > self._file.size:
                    self._drop()
                else:
                    self._fetch(had)
            except httpx.UnsupportedProtocol as error:
                raise self._error(str(error)) from error
            except (httpx.TransportError, _Again) as error:
                failures = 1 if self._size() > had else failures + 1
                if failures >= self._patience.tries:
                    raise self._error(f"{_describe(error)}, {failures} times; what has arrived is kept") from error
                self._wait(failures, error)
            except httpx.RequestError as error:
                raise self._error(_describe(error)) from error

    def _fetch(self, had: int) -> None:
        headers = {"Range": f"bytes={had}-"} if had else {}
        if had and self._etag:
            headers["If-Range"] = self._etag
        with self._client.stream("GET", self._url, headers=headers) as response:
            self._check_status(response, had)
            self._check_content(response, had)
            etag = response.headers.get("ETag", "")
            self._etag = etag if etag.startswith('"') else None  # a weak one can't be asked for
            if response.status_code == 206:
                self._resumed = True
            elif had:  # the server has no ranges, or the file changed
                self._drop()
                had = 0
            with self._part.open("ab") as part:
                for chunk in response.iter_bytes():
                    had += len(chunk)
                    if had > self._file.size:
                        raise self._error(f"more than the expected {self._file.size} bytes arrive: it is another file")
                    part.write(chunk)
                    self._advance(len(chunk))
        if had < self._file.size:
            self._refuse_page()
            raise _Again(f"the answer ended after {had} of {self._file.size} bytes")

    def _check_status(self, response: httpx.Response, had: int) -> None:
        status = response.status_code
        if status in _BUSY:
            raise _Again(f"the server answers {status} {response.reason_phrase}", _retry_after(response))
        if status == 416 and had:
            self._drop()
            raise _Again("the server does not have the rest of the file")
        if status not in (200, 206):
            reason = _REASONS.get(status, f"the server answers {status} {response.reason_phrase}")
            raise self._error(f"{reason} (HTTP {status} from {response.url.host})")
        if status == 206:
            start = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
            etag = response.headers.get("ETag")
            if start != str(had) or (self._etag and etag and etag != self._etag):
                self._drop()
                raise _Again("the server sent another part of the file, or a part of another file")

    def _check_content(self, response: httpx.Response, had: int) -> None:
        """Raise ModelDownloadError if the headers already tell that this is not the file."""
        headers = response.headers
        if headers.get("Content-Type", "").startswith("text/html"):
            raise self._error(f"{response.url.host} answers with a web page, not the file; try another HF_ENDPOINT")
        length = headers.get("Content-Length", "")
        wanted = self._file.size - (had if response.status_code == 206 else 0)
        if length.isdigit() and int(length) != wanted and "Content-Encoding" not in headers:
            raise self._error(f"{response.url.host} offers {length} bytes where {wanted} are expected: another file")

    def _refuse_page(self) -> None:
        with self._part.open("rb") as part:
            if not part.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html")):
                return
        self._drop()
        raise self._error("a web page arrived, not the file; try another HF_ENDPOINT")

    def _size(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def _drop(self) -> None:
        self._advance(-self._size())
        self._part.unlink(missing_ok=True)
        self._etag = None

    def _wait(self, failures: int, error: Exception) -> None:
        asked = getattr(error, "wait", None)
        pause = self._patience.first * 2 ** (failures - 1) if asked is None else asked
        time.sleep(min(pause, self._patience.longest))

    def _error(self, reason: str) -> ModelDownloadError:
        return ModelDownloadError(f"{self._url} can't be downloaded ({show_size(self._file.size)}): {reason}")


def has_digest(path: Path, file: ModelFile) -> bool:
    """Tell whether a file has the pinned content; reads all of it."""
    return path.is_file() and path.stat().st_size == file.size and _digest(path) == file.sha256


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _put_in_place(part: Path, target: Path) -> None:
    with part.open("rb+") as file:
        os.fsync(file.fileno())  # a name must never stand for content that a power cut can still take
    part.replace(target)


def _retry_after(response: httpx.Response) -> float | None:
    seconds = response.headers.get("Retry-After", "")
    return float(seconds) if seconds.isdigit() else None


def _describe(error: Exception) -> str:
    return str(error) or type(error).__name__
