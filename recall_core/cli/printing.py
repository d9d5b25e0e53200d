"""Records and hits for people to read: a table on a terminal, plain lines that grep understands elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from recall_core.counts import Breakdown
from recall_core.models import Hit, Link, Record, Span, Stats

from .excerpts import cut_excerpt
from .output import is_styled, one_line, open_console, terminal_width, visible, write

if TYPE_CHECKING:
    from recall_core.text import Query

INDENT = 4
EXCERPT_LINES = 3
SHOWN_COUNTS = 10
HIGHLIGHT = "bold yellow"
DIM = "dim"
LINKED_TEXT = 60  # characters of a linked record


def print_hits(hits: Sequence[Hit], query: Query, shows_why: bool) -> None:
    """Print found records: a line of facts about each, and below it the part of its text that was found."""
    width = terminal_width()
    for place, hit in enumerate(hits):
        excerpt, spans = _excerpt(hit.chunk.text, query, EXCERPT_LINES * (width - INDENT))
        facts = [f"{hit.relevance:.2f}", hit.record.id, *record_facts(hit.record)]
        notes = [describe_link(link, hit.record) for link in hit.links]
        if shows_why:
            notes.append(f"({hit.why})")
        if is_styled():
            _draw_hit(facts, excerpt, spans, notes)
        else:
            write("\n".join(_plain_hit(facts, excerpt, notes)) + ("\n" if place < len(hits) - 1 else ""))


def print_list(records: Sequence[Record]) -> None:
    """Print a line for each record."""
    if not is_styled():
        for record in records:
            write("  ".join([record.id, *record_facts(record), one_line(record.text)]))
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style=DIM, expand=True)
    table.add_column("id", no_wrap=True)
    table.add_column("made", no_wrap=True)
    table.add_column("of")
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    for record in records:
        made, *of = record_facts(record)
        table.add_row(record.id, made, "  ".join(of), one_line(record.text))
    open_console().print(table)


def shorten(text: str, characters: int) -> str:
    """Return the beginning of a text as one line of at most so many characters."""
    line = one_line(text)
    return line if len(line) <= characters else line[: characters - 1] + "…"


def print_record(record: Record, links: Sequence[Link], linked: Mapping[str, Record]) -> None:
    """Print all that is stored of a record, and what it is linked with; `linked` holds those records by id."""
    rows = list(_record_rows(record))
    for link in links:
        other = linked[link.target if link.source == record.id else link.source]
        rows.append(("link", f"{describe_link(link, record)}: {shorten(other.text, LINKED_TEXT)}"))
    facts = "\n".join(f"{name:<12}{visible(value)}" for name, value in rows)
    write(f"{facts}\n\n{visible(record.text)}\n")


def print_stats(stats: Stats) -> None:
    """Print the state of a file."""
    rows = [
        ("file", f"{stats.path} ({stats.file_bytes:,} bytes, schema {stats.schema_version})"),
        ("records", f"{stats.records:,} in {stats.chunks:,} chunks, {stats.sessions:,} sessions"),
        *(("vectors", f"{s.vectors:,} of {s.dimensions} by {s.model} (space {s.name!r})") for s in stats.spaces),
        ("pending", f"{stats.pending:,} chunks wait for a vector, {stats.failed:,} failed, {stats.resting:,} rest"),
        *([("queries", _describe_queries(stats))] if stats.query_hits + stats.query_misses else []),
        ("index", f"{stats.vector_index}; words by {stats.segmenter}"),
        *(("note", note) for note in stats.notes),
    ]
    for name, value in rows:
        write(f"{name:<10}{one_line(value)}")


def print_breakdown(found: Breakdown) -> None:
    """Print how many records there are of what: the largest counts of each kind."""
    sessions = [(f"{one.scope}/{one.session}" if one.scope else one.session, one.records) for one in found.sessions]
    rows: dict[str, list[tuple[str, int]]] = {
        "scopes": [(one.name or "(root)", one.records) for one in found.scopes],
        "sessions": sessions,
        "roles": [(one.name or "(none)", one.records) for one in found.roles],
        "kinds": [(one.name or "(none)", one.records) for one in found.kinds],
        "tags": [(one.name or "(none)", one.records) for one in found.tags],
        "days": [(f"{one.day}", one.records) for one in found.by_day[::-1]],
    }
    for name, counts in rows.items():
        shown = [f"{of} {records:,}" for of, records in counts[:SHOWN_COUNTS]]
        more = [f"{len(counts) - SHOWN_COUNTS:,} more"] if len(counts) > SHOWN_COUNTS else []
        if shown:
            write(f"{name:<10}{one_line(', '.join([*shown, *more]))}")
    growth = found.recent - found.before
    write(f"{'growth':<10}{found.recent:,} in the last {found.period_days} days, {growth:+,} against those before")


def _describe_queries(stats: Stats) -> str:
    share = stats.query_hits / (stats.query_hits + stats.query_misses)
    return f"{stats.query_hits:,} found in memory, {stats.query_misses:,} embedded ({share:.0%} hits)"


def describe_link(link: Link, record: Record) -> str:
    """Say how a record is linked with another."""
    if link.source == record.id:
        return one_line(f"{link.kind} → {link.target}")
    return one_line(f"← {link.kind} {link.source}")


def record_facts(record: Record) -> list[str]:
    """Return when a record was made, by whom, where it comes from and whose it is, each as one line."""
    speaker = " ".join(filter(None, [record.role, None if record.turn is None else f"turn {record.turn}"]))
    found = [f"{record.created_at:%Y-%m-%d %H:%M}", speaker, record.source, record.session, record.scope]
    return [one_line(fact) for fact in found if fact]


def _record_rows(record: Record) -> Iterator[tuple[str, str]]:
    def show(time: datetime | None) -> str | None:
        return None if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"

    rows = {
        "id": record.id,
        "scope": record.scope,
        "session": record.session,
        "turn": None if record.turn is None else str(record.turn),
        "role": record.role,
        "kind": record.kind,
        "tags": ", ".join(record.tags),
        "source": record.source,
        "importance": f"{record.importance:g}",
        "created": show(record.created_at),
        "updated": show(record.updated_at),
        "accessed": show(record.accessed_at),
        "expires": show(record.expires_at),
        "metadata": json.dumps(dict(record.metadata), ensure_ascii=False) if record.metadata else None,
        "payload": None if record.payload is None else json.dumps(record.payload, ensure_ascii=False),
    }
    return ((name, value) for name, value in rows.items() if value)


def _excerpt(text: str, query: Query, cells: int) -> tuple[str, list[Span]]:
    from recall_core.text import term_spans

    line = one_line(text)
    return cut_excerpt(line, term_spans(line, query), cells)


def _plain_hit(facts: Sequence[str], excerpt: str, notes: Sequence[str]) -> Iterator[str]:
    yield "  ".join(facts)
    yield " " * INDENT + excerpt
    for note in notes:
        yield " " * INDENT + note


def _draw_hit(facts: Sequence[str], excerpt: str, spans: Sequence[Span], notes: Sequence[str]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    head = Text(facts[0], style="bold")
    head.append("  " + "  ".join(facts[1:]), style="not bold dim")
    body = Text(excerpt)
    for start, end in spans:
        body.stylize(HIGHLIGHT, start, end)
    console = open_console()
    console.print(head, soft_wrap=True)
    console.print(Padding.indent(body, INDENT))
    for note in notes:
        console.print(Padding.indent(Text(note, style=DIM), INDENT))
    console.print()
