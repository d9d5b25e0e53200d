"""Writes what lies in a scope as lines of the native format."""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, cast

from ..engine import Engine, Progress
from ..errors import InvalidInputError, StoreUnavailableError
from ..filters import Selection, restricts_records
from ..models import Json, Link, Record
from ..store import StoredVector
from ..times import from_micros
from .input import SQLITE_MAGIC
from .native import FORMAT, VERSION, below, record_fields, show_time, vector_fields, write_line
from .report import Exported

PAGE = 256  # records that are read at a time


@dataclass(slots=True)
class Export:
    """One export of what lies in a scope, running. Scopes are written as seen from `base`."""

    engine: Engine
    base: str
    selection: Selection
    stream: BinaryIO
    vectors: bool = False
    progress: Progress | None = None
    _lines: int = 0
    _done: Exported = field(default_factory=Exported)
    _spaces: set[str] = field(default_factory=set)  # that the file says something of

    def run(self) -> Exported:
        """Write all lines and say how many there are."""
        self.stream.write(write_line("header", {"format": FORMAT, "version": VERSION}))
        self._write_words()
        self._write_titles()
        linked = False
        for page in self._pages():
            self._write_records(page)
            linked = linked or bool(self._find_links(page))
        for page in self._pages() if linked else ():
            for link in self._find_links(page):
                self._write("link", {**asdict(link), "created_at": show_time(link.created_at)})
                self._done = replace(self._done, links=self._done.links + 1)
        self.stream.write(write_line("end", {"lines": self._lines}))
        return self._done

    def _pages(self) -> Iterator[list[Record]]:
        after: str | None = None
        while page := self.engine.store.records.page(self.selection, PAGE, after):
            yield page
            after = page[-1].id

    def _write(self, type: str, fields: Mapping[str, Json]) -> None:
        self.stream.write(write_line(type, fields))
        self._lines += 1

    def _write_words(self) -> None:
        """Write the dictionary, which is the whole file's: a part of a memory does not tell it."""
        if self.base or self.selection.scope or restricts_records(self.selection):
            return
        words = sorted(self.engine.store.dictionary.read().words)
        for word in words:
            self._write("word", {"word": word})
        self._done = replace(self._done, words=len(words))

    def _write_titles(self) -> None:
        titles = self.engine.store.sessions.titles(self.selection)
        for info in titles:
            fields = {"scope": below(info.scope, self.base), "session": info.id, "title": info.title}
            self._write("session", {**fields, "created_at": show_time(from_micros(info.created_at))})
        self._done = replace(self._done, sessions=len(titles))

    def _write_records(self, page: Sequence[Record]) -> None:
        vectors: dict[str, list[StoredVector]] = {}
        if self.vectors:
            page, vectors = self._read_vectors(page)
        for record in page:
            fields = record_fields(record, self.base)
            found = vectors.get(record.id, [])
            if found:
                self._write_spaces(found)
                fields["vectors"] = [vector_fields(vector) for vector in found]
            self._write("record", fields)
            self._done = replace(self._done, records=self._done.records + 1, vectors=self._done.vectors + len(found))
        if self.progress is not None:
            self.progress(self._done.records)

    def _read_vectors(self, page: Sequence[Record]) -> tuple[list[Record], dict[str, list[StoredVector]]]:
        """Return records with their vectors, both of one moment."""
        store, ids = self.engine.store, [record.id for record in page]
        with store.database.read():
            records = store.records.get(ids, self.selection)
            found = store.vectors.of_records(ids)
        vectors: dict[str, list[StoredVector]] = {}
        for vector in found:
            vectors.setdefault(vector.record_id, []).append(vector)
        return records, vectors

    def _write_spaces(self, vectors: Sequence[StoredVector]) -> None:
        for vector in vectors:
            space = vector.space
            if space.name not in self._spaces:
                self._spaces.add(space.name)
                self._write("space", {"name": space.name, "model": space.model, "dimensions": space.dimensions})

    def _find_links(self, page: Sequence[Record]) -> list[Link]:
        ids = {record.id for record in page}
        links = self.engine.store.links.find(sorted(ids), self.selection)
        return sorted((link for link in links if link.source in ids), key=attrgetter("source", "target", "kind"))


@contextlib.contextmanager
def open_target(target: str | Path | BinaryIO) -> Iterator[BinaryIO]:
    """Open what to write an export to; a path that ends in .gz is compressed.

    A file is written under another name beside it, readable by its owner only, and renamed when it is complete: what
    was there before stays until then, and if the export fails. Raises InvalidInputError, and StoreUnavailableError if
    it can't be written.
    """
    if not isinstance(target, str | Path):
        if not hasattr(target, "write"):
            raise InvalidInputError(f"target is a path or a stream for bytes, not {target!r}")
        yield target
        target.flush()
        return
    path = Path(target).expanduser()
    compresses = path.suffix == ".gz"
    try:
        path = path.resolve() if path.is_file() else path  # so that a link stays one
        _check_target(path)
        with _replace_file(path) as file, _compress(file) if compresses else contextlib.nullcontext(file) as stream:
            yield stream
    except OSError as error:
        raise StoreUnavailableError(f"{path} can't be written: {error.strerror or error}") from error


def _check_target(path: Path) -> None:
    """Raise InvalidInputError if the file there is a database: a memory would be lost."""
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder; give the name of a file to write")
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC:
                raise InvalidInputError(f"{path} is an SQLite database and is not overwritten; give another name")


@contextlib.contextmanager
def _replace_file(path: Path) -> Iterator[BinaryIO]:
    if path.exists() and not path.is_file():  # a device or a pipe
        with path.open("wb") as device:
            yield device
        return
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _compress(file: BinaryIO) -> Iterator[BinaryIO]:
    # Without a name and a time in it, the same export is the same file.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream:
        yield cast(BinaryIO, stream)
