"""The formats that can be imported, and which of them a file has."""

from __future__ import annotations

from ..errors import InvalidInputError
from .chatgpt import ChatGPTSource
from .claude_code import ClaudeCodeSource
from .cmdcode import CmdCodeSource
from .crewai import CrewAISource
from .entries import Source
from .input import Input
from .langchain import LangChainSource
from .lines import LineSource
from .mem0 import Mem0Source
from .native import NativeSource
from .scope_recall import ScopeRecallSource
from .sinomem import SinoMemSource

# In the order in which they are asked; the first one that knows a file reads it. Lines of JSON are all that is left.
SOURCES: tuple[Source, ...] = (
    NativeSource(),
    LangChainSource(),
    ScopeRecallSource(),
    SinoMemSource(),
    CmdCodeSource(),
    CrewAISource(),
    ChatGPTSource(),
    ClaudeCodeSource(),
    Mem0Source(),
)

AUTO = "auto"
FORMATS = (*(source.name for source in SOURCES), LineSource.name)


def find_source(file: Input, format: str, *, keeps_extra: bool = False) -> Source:
    """Return what reads a file: the source of this name, or with "auto" the one that knows it.

    Raises InvalidInputError if there is none.
    """
    lines = LineSource(keeps_extra=keeps_extra)
    if format != AUTO:
        found = next((source for source in (*SOURCES, lines) if source.name == format), None)
        if found is None:
            raise InvalidInputError(f"format is {format!r}; choose one of {AUTO}, {', '.join(FORMATS)}")
        return found
    for source in (*SOURCES, lines):
        if source.detect(file):
            return source
    if file.head[68:72] == b"RCAL":
        raise InvalidInputError(f"{file.name} is a memory itself; export it first: recall export --db {file.name} FILE")
    what = "folder" if file.is_folder else "SQLite file" if file.is_sqlite else "file"
    raise InvalidInputError(f"{file.name} is no {what} that can be imported; formats are {', '.join(FORMATS)}")
