"""What is remembered, for the beginning of a session and before a prompt: found by keyword, since a model takes longer
to load than a hook may take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..client_scopes import SHARED, project_scope
from ..context import render_context, render_records, strip_context
from ..memory import Memory
from ..models import Hit
from ..text import detect_language
from ..transfer.injected import strip_injected
from .payload import Payload
from .shown import forget_shown, note_shown, read_shown
from .topics import find_topic, is_about

MAX_CHARS = 3_000  # Claude Code shows 10,000 whole; every one is paid for again with each turn
QUERY_CHARS = 2_000  # of a prompt: half from its beginning, half from its end
LIMIT = 5
RECENT = 8
RECENT_COMMITS = 4
RECENT_CHARS = 400  # of each of these
RELEVANCE = 0.35
BESIDE_BEST = 0.75  # of the relevance of the best; what is less so shares a word with the prompt, and no more
COMMIT = "commit"
BACKGROUND = ("file-change",)  # kinds that nobody wants to be told of unasked


def recall_for_prompt(memory: Memory, payload: Payload, folder: Path) -> str:
    """Return a block with what is relevant to a prompt and new to the session, "" if nothing is."""
    query = _shorten(strip_injected(strip_context(payload.prompt)))
    topic = find_topic(query)
    if not topic:
        return ""
    shown = read_shown(folder, payload.session)
    hits: list[Hit] = []
    for scope in (project_scope(payload.folder), SHARED):
        where = {"@kind": {"$nin": list(BACKGROUND)}}
        hits += memory.search(
            query, scope=scope, mode="keyword", limit=2 * LIMIT + len(shown), min_relevance=RELEVANCE, where=where
        )
    new = [hit for hit in hits if hit.record.id not in shown and not _is_of(payload, hit)]
    best = _pick(sorted(new, key=lambda hit: -hit.relevance), topic)
    if not best:
        return ""
    block = render_context(best, detect_language(query), MAX_CHARS)
    note_shown(folder, payload.session, [hit.record.id for hit in best if f"[{hit.record.id}]" in block])
    return block


def _pick(hits: Sequence[Hit], topic: frozenset[str]) -> list[Hit]:
    """Return the best of these hits, best first, that are about a topic."""
    best: list[Hit] = []
    for hit in hits:
        if len(best) == LIMIT or (best and hit.relevance < BESIDE_BEST * best[0].relevance):
            break
        if is_about(hit.chunk.text, topic):
            best.append(hit)
    return best


def recall_for_session(memory: Memory, payload: Payload, folder: Path) -> str:
    """Return a block with what the project decided and came to last, then its last commits, "" if there is nothing."""
    if payload.source != "resume":
        forget_shown(folder, payload.session)
    scope, shown = project_scope(payload.folder), read_shown(folder, payload.session)
    found = memory.records(
        scope=scope, where={"@kind": {"$nin": [*BACKGROUND, COMMIT]}}, limit=RECENT, newest_first=True
    )
    found += memory.records(scope=scope, where={"@kind": COMMIT}, limit=RECENT_COMMITS, newest_first=True)
    new = [record for record in found if record.id not in shown]
    if not new:
        return ""
    short = [replace(record, text=_begin(record.text)) for record in new]  # so that others have room beside it
    block = render_records(short, detect_language(" ".join(record.text for record in short)), MAX_CHARS)
    whole = [record.id for record in new if len(record.text) <= RECENT_CHARS and f"[{record.id}]" in block]
    note_shown(folder, payload.session, whole)
    return block


def _begin(text: str) -> str:
    return text if len(text) <= RECENT_CHARS else f"{text[:RECENT_CHARS].rstrip()}…"


def _shorten(prompt: str) -> str:
    text = prompt.strip()
    half = QUERY_CHARS // 2
    return text if len(text) <= QUERY_CHARS else f"{text[:half]}\n{text[-half:]}"


def _is_of(payload: Payload, hit: Hit) -> bool:
    """Tell whether a memory was made by this very session, in whose context it is anyway."""
    return payload.session is not None and hit.record.session == payload.session
