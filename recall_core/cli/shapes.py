"""The JSON shapes that --json prints. They are documented in docs/cli.md and only ever grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from recall_core.models import Hit, Json, Link, Record, Span, Stats
from recall_core.transfer.report import Exported, Imported


def record_shape(record: Record) -> dict[str, Json]:
    """Return a record: all its fields, times as ISO 8601 in UTC."""
    return {
        "id": record.id,
        "text": record.text,
        "scope": record.scope,
        "session": record.session,
        "turn": record.turn,
        "role": record.role,
        "kind": record.kind,
        "tags": list(record.tags),
        "metadata": dict(record.metadata),
        "payload": record.payload,
        "source": record.source,
        "importance": record.importance,
        "created_at": show_time(record.created_at),
        "updated_at": show_time(record.updated_at),
        "accessed_at": show_time(record.accessed_at),
        "expires_at": show_time(record.expires_at),
    }


def hit_shape(hit: Hit, highlights: Sequence[Span]) -> dict[str, Json]:
    """Return a hit; `highlights` are offsets into the chunk's text, the chunk's own ones are into the record's."""
    return {
        "relevance": hit.relevance,
        "score": hit.score,
        "record": record_shape(hit.record),
        "chunk": asdict(hit.chunk),
        "highlights": [list(span) for span in highlights],
        "why": asdict(hit.why),
        "links": [link_shape(link) for link in hit.links],
    }


def link_shape(link: Link) -> dict[str, Json]:
    """Return a link: what `source` is to `target`."""
    return {
        "source": link.source,
        "target": link.target,
        "kind": link.kind,
        "created_at": show_time(link.created_at),
    }


def stats_shape(stats: Stats) -> dict[str, Json]:
    """Return what `recall stats` tells."""
    shape = asdict(stats) | {"degraded_at": show_time(stats.degraded_at)}
    if stats.details is not None:
        shape["details"]["by_day"] = [
            {"day": one.day.isoformat(), "records": one.records, "total": one.total} for one in stats.details.by_day
        ]
    return shape


def import_shape(imported: Imported) -> dict[str, Json]:
    """Return what an import did. `skipped` counts what is `present` and what was `left_out`."""
    return {
        "imported": imported.added + imported.replaced,
        "skipped": imported.present + sum(imported.skipped.values()),
        "failed": imported.failed,
        "failures": [{"line": failure.line, "reason": failure.reason} for failure in imported.failures],
        "ignored": list(imported.ignored),
        "format": imported.format,
        "read": imported.read,
        "added": imported.added,
        "replaced": imported.replaced,
        "present": imported.present,
        "left_out": dict(imported.skipped),
        "sessions": imported.sessions,
        "words": imported.words,
        "links": imported.links,
        "vectors": imported.vectors,
        "dry_run": imported.dry_run,
    }


def export_shape(exported: Exported) -> dict[str, Json]:
    """Return what an export wrote, as numbers."""
    return asdict(exported)


def show_time(time: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC, such as 2026-01-31T09:30:00Z."""
    return None if time is None else time.isoformat().replace("+00:00", "Z")
