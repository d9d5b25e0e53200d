"""`recall add`: store one text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import click

from recall_core.errors import InvalidInputError, RecordExistsError
from recall_core.models import NewRecord, OnDuplicate, Record

from .opening import open_for_writing
from .options import (
    db_option,
    duplicates_option,
    json_option,
    model_option,
    parse_object,
    parse_pairs,
    parse_ttl,
    redact_option,
)
from .output import write, write_json
from .shapes import record_shape

if TYPE_CHECKING:
    from recall_core.view import View

STDIN = "-"


@click.command()
@click.argument("text", required=False)
@click.option("--scope", metavar="PATH", default="", help="Whose it is, such as user/42.")
@click.option("--session", metavar="ID", help="The conversation that it is of.")
@click.option("--turn", metavar="N", type=int, help="Its turn in the conversation.")
@click.option("--role", metavar="NAME", help="Who said it.")
@click.option("--kind", metavar="NAME", default="memory", show_default=True, help="What it is.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag; repeatable.")
@click.option("--metadata", metavar="KEY=VALUE", multiple=True, help="An entry, JSON or a string; repeatable.")
@click.option("--metadata-json", metavar="JSON", help="Entries as a JSON object.")
@click.option("--source", metavar="NAME", help="Where it comes from.")
@click.option("--importance", metavar="0..1", type=float, default=0.5, show_default=True, help="How much it matters.")
@click.option("--created-at", metavar="TIME", help="When it was made, such as 2026-01-31T09:30:00Z; by default now.")
@click.option("--expires-at", metavar="TIME", help="When it is to be forgotten.")
@click.option("--ttl", metavar="30d", help="After how long it is to be forgotten: s, m, h, d or w.")
@click.option("--id", metavar="ID", help="Its id, if you want to choose it.")
@redact_option
@duplicates_option
@db_option
@model_option
@json_option
def add(
    text: str | None,
    scope: str,
    session: str | None,
    turn: int | None,
    role: str | None,
    kind: str,
    tags: Sequence[str],
    metadata: Sequence[str],
    metadata_json: str | None,
    source: str | None,
    importance: float,
    created_at: str | None,
    expires_at: str | None,
    ttl: str | None,
    redact: bool,
    id: str | None,
    on_duplicate: str,
    db: str | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Store TEXT and print its id.

    Without TEXT, or if it is -, stdin is read. Write -- before a text that begins with a dash.
    """
    new = NewRecord(
        text=read_text(text),
        id=id,
        scope=scope,
        session=session,
        turn=turn,
        role=role,
        kind=kind,
        tags=tags,
        metadata={**(parse_object(metadata_json, "--metadata-json") or {}), **parse_pairs(metadata)},
        source=source,
        importance=importance,
        created_at=created_at,
        expires_at=expires_at,
        ttl=parse_ttl(ttl),
        redact=redact or None,
        on_duplicate=cast(OnDuplicate, on_duplicate),
    )
    with open_for_writing(db, model) as memory:
        record = add_named(memory, new)
    if as_json:
        write_json(record_shape(record))
    else:
        write(record.id)


def add_named(view: View, new: NewRecord) -> Record:
    """Store one record. Raises RecordExistsError in the words of the command line."""
    try:
        return view.add(
            new.text,
            id=new.id,
            scope=new.scope,
            session=new.session,
            turn=new.turn,
            role=new.role,
            kind=new.kind,
            tags=new.tags,
            metadata=new.metadata,
            payload=new.payload,
            source=new.source,
            importance=new.importance,
            created_at=new.created_at,
            expires_at=new.expires_at,
            ttl=new.ttl,
            redact=new.redact,
            on_duplicate=new.on_duplicate,
        )
    except RecordExistsError:
        raise RecordExistsError(f"the id {new.id!r} is taken; choose another, or add --on-duplicate replace") from None


def read_text(argument: str | None) -> str:
    """Return the text to store: the argument, or what stdin has. Raises InvalidInputError if there is none."""
    if argument == STDIN or (argument is None and not sys.stdin.isatty()):
        try:
            text = sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"stdin is not UTF-8 ({error.reason} at byte {error.start}); convert it") from None
    else:
        text = argument or ""
    if not text.strip():
        raise InvalidInputError("there is no text to store; give one, or pipe it in")
    return text
