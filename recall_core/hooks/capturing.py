"""What a session does and decides becomes memories: files that were written, commits, what the user laid down, and what
the assistant said last.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from ..client_scopes import project_scope
from ..context import strip_context
from ..ids import derive_id
from ..memory import Memory
from ..models import NewRecord
from ..patterns import compile_late
from ..text import split_sentences
from ..transfer.claude_code import ClaudeCodeSource
from ..transfer.entries import Entry
from ..transfer.input import open_input
from .payload import Payload

SOURCE = "claude-code"
WRITING_TOOLS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
SECRET_FILES = (".env*", "*.pem", "*.key", "id_*", "*credentials*", "*secret*", ".netrc", ".npmrc", ".pypirc")
FILE_CHANGES_KEPT = 90 * 86_400  # seconds
EXCERPT_CHARS = 300
READ_CHARS = 100_000  # of what was written, to find an excerpt
REQUEST_CHARS = 300
CONCLUSION_CHARS = 2_000
LEAST_CONCLUSION = 40
DECISION_CHARS = 500
MOST_DECISIONS = 20

DECISION = compile_late(
    r"\b(remember (that|to|this|:)|from now on|keep in mind|make it a rule|we (have )?(decided|agreed|chose)"
    r"|let'?s (use|go with|stick (to|with))|(i|we) prefer|do ?n[o']t (ever )?use|never use|always use)\b"
    r"|^\W*(please )?(always|never) \w+"
    r"|记住|请记得|以后(都|请|要|不)|从现在(起|开始)|从今以后|决定(用|采用|使用|不)|统一(用|使用|采用)|不要再|一律|务必|改用|优先(用|使用|采用)",
    re.IGNORECASE,
)


def capture_tool(memory: Memory, payload: Payload) -> int:
    """Store what a tool did, if it is a file that was written or a commit; return how many memories that are."""
    scope = project_scope(payload.folder)
    found = list(_find_change(payload, scope)) if payload.tool in WRITING_TOOLS else list(_find_commit(payload, scope))
    return len(memory.add_many(found))


def capture_session(memory: Memory, payload: Payload) -> int:
    """Store the decisions and the conclusion of a session's transcript; return how many memories that are. Done again,
    as before each compaction and at the end, it replaces what it stored.
    """
    if payload.transcript is None or not payload.transcript.is_file():
        return 0
    return len(memory.add_many(_read_session(payload.transcript, payload, project_scope(payload.folder))))


def find_decisions(text: str) -> Iterator[str]:
    """Yield the sentences of a text that lay something down."""
    for start, end in split_sentences(text):
        sentence = text[start:end].strip()
        if DECISION.search(sentence) and len(sentence) <= DECISION_CHARS and not sentence.endswith(("?", "？")):
            yield sentence


def _find_change(payload: Payload, scope: str) -> Iterator[NewRecord]:
    path = payload.tool_input.get("file_path") or payload.tool_input.get("notebook_path")
    if not isinstance(path, str) or not path:
        return
    name = Path(path).name.lower()
    if any(fnmatch.fnmatch(name, pattern) for pattern in SECRET_FILES):
        return
    shown = _relative(path, payload.folder)
    yield NewRecord(
        text=f"{payload.tool} {shown}: {_excerpt(payload)}".rstrip(": "),
        id=derive_id(SOURCE, scope, "file", payload.session or "", shown),
        scope=scope,
        session=payload.session,
        kind="file-change",
        source=SOURCE,
        importance=0.2,
        ttl=FILE_CHANGES_KEPT,
        metadata={"path": shown, "tool": payload.tool} | ({"agent": payload.agent} if payload.agent else {}),
        on_duplicate="replace",
    )


def _find_commit(payload: Payload, scope: str) -> Iterator[NewRecord]:
    command = payload.tool_input.get("command")
    if payload.tool != "Bash" or not isinstance(command, str) or "git" not in command or "commit" not in command:
        return
    message = _find_message(command[:20_000])
    failed = isinstance(payload.tool_response, dict) and payload.tool_response.get("interrupted") is True
    if message and not failed:
        yield _make_decision(f"Commit: {message[:DECISION_CHARS]}", payload, scope, importance=0.5)


def _find_message(command: str) -> str:
    heredoc = re.search(r"<<-?\s*['\"]?(\w+)['\"]?\n(.*?)\n\s*\1\b", command, re.DOTALL)
    if heredoc:
        return heredoc[2].strip()
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    messages = [after for word, after in pairwise(words) if word in ("-m", "-am", "--message")]
    return "\n".join(messages).strip()


def _read_session(transcript: Path, payload: Payload, scope: str) -> Iterator[NewRecord]:
    request, last, decisions = "", "", {}
    with open_input(transcript) as file:
        for item in ClaudeCodeSource().read(file):
            if not isinstance(item, Entry):
                continue
            text = strip_context(item.record.text)
            if item.record.role == "user":
                request = request or text
                decisions.update(dict.fromkeys(find_decisions(text)))
            elif len(text) >= LEAST_CONCLUSION:
                last = text
    for decision in list(decisions)[-MOST_DECISIONS:]:
        yield _make_decision(decision, payload, scope, importance=0.7)
    if last:
        name = payload.session or transcript.stem
        yield NewRecord(
            text=f"{request[:REQUEST_CHARS].strip()}\n\n{last[:CONCLUSION_CHARS].strip()}".strip(),
            id=derive_id(SOURCE, scope, "conclusion", name),
            scope=scope,
            session=payload.session,
            kind="conclusion",
            source=SOURCE,
            importance=0.6,
            on_duplicate="replace",
        )


def _make_decision(text: str, payload: Payload, scope: str, importance: float) -> NewRecord:
    return NewRecord(
        text=text,
        id=derive_id(SOURCE, scope, "decision", text),
        scope=scope,
        session=payload.session,
        kind="decision",
        source=SOURCE,
        importance=importance,
        metadata={"agent": payload.agent} if payload.agent else None,
        on_duplicate="replace",
    )


def _excerpt(payload: Payload) -> str:
    given = payload.tool_input
    edits = given.get("edits")
    first = edits[0] if isinstance(edits, list) and edits and isinstance(edits[0], dict) else {}
    for value in (given.get("content"), given.get("new_string"), given.get("new_source"), first.get("new_string")):
        if isinstance(value, str) and value.strip():
            return " ".join(strip_context(value[:READ_CHARS]).split())[:EXCERPT_CHARS]
    return ""


def _relative(path: str, folder: Path) -> str:
    try:
        return Path(path).resolve().relative_to(folder.resolve()).as_posix()
    except (ValueError, OSError):
        return path
