"""Finds the messages of the commits that a shell command makes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from ..patterns import compile_late

LONGEST_COMMAND = 20_000
LEAST_WORDS = 2  # "wip" and "fix" say nothing

_COMMIT = compile_late(  # at the beginning of a command, with variables before it and options between
    r"(?:^|[\n;&|(]|\b(?:then|do|else)\b)[ \t]*(?:\w+=\S*[ \t]+)*git"
    r"(?:\s+-[cC]\s+(?:'[^']*'|\"[^\"]*\"|[^\s'\"-]\S*)|\s+--?[\w-]+(?:=\S+)?)*"
    r"\s+commit(?![\w-])"
)
_HEREDOC = compile_late(r"[^\n;|]*?<<-?\s*(['\"]?)(\w+)\1[^\n]*\n(.*?)\n[ \t]*\2\b", re.DOTALL)
_TRAILER = compile_late(
    r"^[ \t]*(?:[A-Z][a-z]+(?:-[A-Za-z]+)*-[Bb]y|Change-Id|Refs?)\s*:.*$|^\W*Generated with \[?Claude.*$", re.MULTILINE
)
_OPERATORS = ";&|()\n"


def find_messages(command: str) -> Iterator[str]:
    """Yield the message of each `git commit` in a command, without the trailers of tools."""
    command = command[:LONGEST_COMMAND]
    for found in _COMMIT.finditer(command):
        rest = command[found.end() :]
        heredoc = _HEREDOC.match(rest)
        message = heredoc[3] if heredoc else _read_options(rest)
        message = re.sub(r"\n{3,}", "\n\n", _TRAILER.sub("", message)).strip()
        if len(message.split()) >= LEAST_WORDS or not message.isascii():
            yield message


def _read_options(rest: str) -> str:
    """Return the message that the options of a commit give, "" if it is elsewhere or can't be told."""
    lexer = shlex.shlex(rest, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    messages, expected = [], False
    try:
        for word in lexer:
            if word[:1] in _OPERATORS and not expected:
                break
            if expected:
                messages.append(word)
            elif word == "--dry-run":
                return ""
            elif given := re.fullmatch(r"(?:--message=|-[a-zA-Z]*m)(.+)", word, re.DOTALL):
                messages.append(given[1])
            expected = not expected and (word == "--message" or re.fullmatch(r"-[a-zA-Z]*m", word) is not None)
    except ValueError:  # a quotation that does not end
        return ""
    return "" if any(message.startswith(("$", "`")) for message in messages) else "\n\n".join(messages)
