"""Shared parts of the tests of export and import."""

from __future__ import annotations

import io
import json
from typing import Any

from recall_core import Imported, View


def export_bytes(view: View, **arguments: Any) -> bytes:
    """Return what an export writes."""
    stream = io.BytesIO()
    view.export(stream, **arguments)
    return stream.getvalue()


def import_bytes(view: View, raw: bytes, **arguments: Any) -> Imported:
    """Import what an export wrote."""
    return view.import_(io.BytesIO(raw), **arguments)


def lines_of(raw: bytes, type: str | None = None) -> list[dict[str, Any]]:
    """Return the lines of an export, of one type or all."""
    lines = [json.loads(line) for line in raw.splitlines()]
    return [line for line in lines if type is None or line["type"] == type]
