"""`recall dict`: the words that the keyword index of a file keeps whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import IO

import click

from recall_core.errors import InvalidInputError
from recall_core.reports import Reindexed
from recall_core.words import check_words

from .opening import open_existing
from .options import db_option, json_option
from .output import tell, write, write_json
from .progress import show_count
from .records import end_with
from .stopping import stopping

words_argument = click.argument("words", metavar="WORD...", nargs=-1, required=True)
reindex_option = click.option(
    "--reindex/--no-reindex",
    default=None,
    help="Index the memories anew that hold one of the words, or don't; by default a terminal is asked.",
)


@click.group("dict")
def dictionary() -> None:
    """Words that count as one term: names and jargon, such as 灰度发布平台.

    They are kept in the file and hold for texts and questions alike.
    """


@dictionary.command("list")
@db_option
@json_option
def list_words(db: str | None, as_json: bool) -> None:
    """List the words, one a line."""
    with open_existing(db) as memory:
        words = memory.words()
    if as_json:
        write_json({"words": words})
    elif words:
        write("\n".join(words))


@dictionary.command("add")
@words_argument
@reindex_option
@db_option
@json_option
def add_words(words: Sequence[str], reindex: bool | None, db: str | None, as_json: bool) -> None:
    """Add words. What was interrupted is finished by the same command."""
    change(db, "add_words", words, reindex, as_json)


@dictionary.command("remove")
@words_argument
@reindex_option
@db_option
@json_option
def remove_words(words: Sequence[str], reindex: bool | None, db: str | None, as_json: bool) -> None:
    """Remove words. What was interrupted is finished by the same command. Exit code 1: one of them is not there."""
    change(db, "remove_words", words, reindex, as_json)


@dictionary.command("import")
@click.argument("file", metavar="WORDS-FILE", type=click.File("rb"))
@click.option(
    "--jieba", is_flag=True, help="It is a user dictionary of jieba: a frequency and a kind may follow a word."
)
@reindex_option
@db_option
@json_option
def import_words(file: IO[bytes], jieba: bool, reindex: bool | None, db: str | None, as_json: bool) -> None:
    """Add the words of a UTF-8 file, one a line; "-" reads stdin. Empty lines are passed over."""
    change(db, "add_words", list(read_words(file, jieba=jieba)), reindex, as_json)


def read_words(lines: IO[bytes], *, jieba: bool = False) -> Iterator[str]:
    """Return the words of a file, one a line. Raises InvalidInputError."""
    for number, line in enumerate(lines, 1):
        try:
            word = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"line {number} is not UTF-8 ({error.reason}); save the file as UTF-8") from None
        if jieba:
            word = cut_jieba(word)
        if word:
            yield word


def cut_jieba(line: str) -> str:
    """Return the word of a line of a jieba dictionary, such as "云计算 5 n"; the last two may be missing."""
    parts = line.split()
    if len(parts) > 1 and parts[-1].isascii() and parts[-1].isalpha():
        parts = parts[:-1]
    if len(parts) > 1 and parts[-1].isdecimal():
        parts = parts[:-1]
    return " ".join(parts)


def change(db: str | None, method: str, words: Sequence[str], reindex: bool | None, as_json: bool) -> None:
    """Change the dictionary, and index anew what that concerns, if it is wanted."""
    changed, done = Reindexed(), 0
    with open_existing(db) as memory, stopping(lambda: f"{_count(changed)}; the same command goes on"):
        changed = getattr(memory, method)(words, reindex=False)
        left = memory.reindex(words_only=True, dry_run=True).records
        if left and reindex is None and sys.stdin.isatty():
            reindex = _is_wanted(left)
        if reindex:
            with show_count("indexing", quiet=as_json) as show:
                done, left = memory.reindex(words_only=True, progress=show).records, 0
    missing = [word for word in check_words(words) if method == "remove_words" and word not in changed.removed]
    if as_json:
        found = {"added": list(changed.added), "removed": list(changed.removed), "missing": missing}
        write_json({**found, "reindexed": done, "left": left})
    else:
        write(f"{_count(changed)}; {done} memories indexed anew")
        if left:
            tell(f"{left} memories hold changed words and are not indexed by them yet: recall reindex --words")
    end_with(missing, "the dictionary has no word")


def _count(changed: Reindexed) -> str:
    return f"added {len(changed.added)}, removed {len(changed.removed)}"


def _is_wanted(count: int) -> bool:
    """Ask whether memories are to be indexed anew. Raises KeyboardInterrupt."""
    try:
        return click.confirm(f"Index the {count} memories anew that hold changed words?", default=True, err=True)
    except click.Abort:
        click.echo(err=True)  # the answer's line has no end
        raise KeyboardInterrupt from None
