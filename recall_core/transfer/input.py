"""A file to import, opened: decompressed, in UTF-8, whatever it lies in."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from ..errors import InvalidInputError

if TYPE_CHECKING:
    from .foreign import ForeignDatabase

HEAD_BYTES = 1 << 16  # what a format is told by
MAX_LINE_BYTES = 1 << 28  # a longer line is no record
SQLITE_MAGIC = b"SQLite format 3\0"
GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
# Longer marks first: that of UTF-32 begins like that of UTF-16.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
UNREADABLE = (EOFError, OSError, zlib.error, UnicodeError)


class Input:
    """A file, a folder or a stream to import. It is read once, from its beginning; use it as a context manager.

    `head` are the first 64 KiB as `stream` gives them: decompressed (gzip), in UTF-8 (from UTF-16 and UTF-32 with a
    byte order mark), without a mark. A folder has none.
    """

    def __init__(self, name: str, path: Path | None, stream: BinaryIO | None) -> None:
        self.name = name
        self.path = path
        self.is_folder = stream is None
        self._opened = stream if path is not None else None  # a caller's stream is the caller's to close
        self.head = b""
        self.stream: BinaryIO = io.BytesIO()
        if stream is not None:
            try:
                self.head, self.stream = _prepare(stream)
            except UNREADABLE as error:
                self.close()
                raise InvalidInputError(f"{name} can't be read: {_explain(error)}") from None

    def __enter__(self) -> Input:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what was opened."""
        if self._opened is not None:
            self._opened.close()

    @property
    def is_sqlite(self) -> bool:
        """Whether it is an SQLite database."""
        return self.head.startswith(SQLITE_MAGIC)

    @property
    def is_zip(self) -> bool:
        """Whether it is a ZIP archive."""
        return self.head.startswith(ZIP_MAGIC)

    @property
    def text(self) -> str:
        """The head as text, as far as it is text."""
        return self.head.decode("utf-8", "replace")

    def database(self) -> ForeignDatabase:
        """Open the SQLite file for reading. Raises InvalidInputError if it is none, or came through a pipe."""
        from .foreign import ForeignDatabase

        if self.path is None or not self.is_sqlite:
            hint = "; give its path, it can't be read from a pipe" if self.is_sqlite else ""
            raise InvalidInputError(f"{self.name} is not to be read as an SQLite file{hint}")
        return ForeignDatabase(self.path)

    def files(self, pattern: str) -> list[Path]:
        """Return the files of a folder and the folders in it whose names match, in the order of their paths."""
        if not self.is_folder or self.path is None:
            return []
        return sorted(path for path in self.path.rglob(pattern) if path.is_file())

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that are not blank, with their numbers from 1 on.

        Raises InvalidInputError with the number of the line from which on a damaged file can't be read.
        """
        number = 0
        while True:
            number += 1
            try:
                line = self.stream.readline(MAX_LINE_BYTES)
            except UNREADABLE as error:
                raise InvalidInputError(
                    f"{self.name} is damaged from line {number} on, and the rest is lost: {_explain(error)}"
                ) from None
            if not line:
                return
            if line.strip():
                yield number, line


def open_input(target: str | Path | BinaryIO) -> Input:
    """Open a path or a binary stream to import. Raises InvalidInputError if it can't be read."""
    if not isinstance(target, str | Path):
        if not hasattr(target, "read"):
            raise InvalidInputError(f"path is a path or a stream of bytes, not {target!r}")
        return Input(str(getattr(target, "name", "the stream")), None, target)
    path = Path(target).expanduser()
    if path.is_dir():
        return Input(str(path), path, None)
    try:
        return Input(str(path), path, path.open("rb"))
    except OSError as error:
        raise InvalidInputError(f"{path} can't be read: {error.strerror or error}") from None


class _Chained(io.RawIOBase):
    """Bytes that were read already, and the rest of their stream."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer)
        if not self._head:
            self._head = _read_some(self._rest, len(view))
        taken = self._head[: len(view)]
        view[: len(taken)] = taken
        self._head = self._head[len(taken) :]
        return len(taken)


class _Recoded(io.RawIOBase):
    """Text of another encoding as UTF-8."""

    def __init__(self, text: io.TextIOBase) -> None:
        self._text = text
        self._head = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer)
        if not self._head:
            self._head = self._text.read(len(view)).encode("utf-8")
        taken = self._head[: len(view)]
        view[: len(taken)] = taken
        self._head = self._head[len(taken) :]
        return len(taken)


def _prepare(stream: BinaryIO) -> tuple[bytes, BinaryIO]:
    """Return the first bytes of a stream as UTF-8, decompressed, and the stream from its beginning."""
    head, stream = _peek(stream)
    if head.startswith(GZIP_MAGIC):
        head, stream = _peek(cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb")))
    encoding = next((name for mark, name in MARKS if head.startswith(mark)), None)
    if encoding is not None:
        text = io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")
        return _peek(cast(BinaryIO, io.BufferedReader(_Recoded(text))))
    if head.startswith(codecs.BOM_UTF8):
        stream.read(len(codecs.BOM_UTF8))
        head = head[len(codecs.BOM_UTF8) :]
    return head, stream


def _peek(stream: BinaryIO) -> tuple[bytes, BinaryIO]:
    """Return the first bytes of a stream, and the stream with them in front of it.

    A pipe or a terminal, which may give its lines one by one, is not waited for longer than for the first line.
    """
    head = b""
    waits = hasattr(stream, "seekable") and stream.seekable()
    while len(head) < HEAD_BYTES and (waits or b"\n" not in head):
        part = _read_some(stream, HEAD_BYTES - len(head))
        if not part:
            break
        head += part
    return head, cast(BinaryIO, io.BufferedReader(_Chained(head, stream), HEAD_BYTES))


def _read_some(stream: BinaryIO, size: int) -> bytes:
    """Read at most `size` bytes: those that are there, if it is a pipe."""
    read = getattr(stream, "read1", stream.read)
    return bytes(read(size))


def _explain(error: BaseException) -> str:
    if isinstance(error, EOFError):
        return "it ends early"
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
