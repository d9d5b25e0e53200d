"""What a session does and decides becomes memories: files that were written, commits, what the user laid down, and what
the assistant said last.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..client_scopes import project_root, project_scope
from ..context import strip_context
from ..ids import derive_id
from ..memory import Memory
from ..models import NewRecord
from ..patterns import compile_late
from ..redaction import redact_text
from ..transfer.claude_code import ClaudeCodeSource
from ..transfer.entries import Entry
from ..transfer.input import open_input
from .commits import find_messages
from .decisions import find_decisions
from .payload import Payload

SOURCE = "claude-code"
WRITING_TOOLS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
SECRET_FILES = (
    *(".env*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.tfvars", "*.tfstate"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*credentials*", "*secret*", "kubeconfig*"),
    *(".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".dockercfg", ".vault-token", ".my.cnf"),
)
SECRET_FOLDERS = (".ssh", ".gnupg", ".aws", ".kube", ".azure")
FILE_CHANGES_KEPT = 90 * 86_400  # seconds
EXCERPT_CHARS = 300
REQUEST_CHARS = 300
LEAST_REQUEST = 12
CONCLUSION_CHARS = 2_000
LEAST_CONCLUSION = 60  # bytes
COMMIT_CHARS = 500
MOST_DECISIONS = 20
LONGEST_SECRET = 20_000  # what is cut off is looked at that far, as half a secret is not known for one
DELETED_CHECKED = 1_000

_POLITE = compile_late(
    r"\W*(?:you're (?:very )?welcome|glad (?:i|that|to)|no problem|hello|hi\b|good (?:morning|evening)|happy to"
    r"|不客气|不用谢|很高兴|你好|您好)",
    re.IGNORECASE,
)
_LONGEST_POLITENESS = 200


def capture_tool(memory: Memory, payload: Payload) -> None:
    """Store what a tool did, if it is a file that was written or a commit."""
    scope = project_scope(payload.folder)
    if payload.tool in WRITING_TOOLS:
        memory.add_many(list(_find_change(payload, scope)))
    else:
        _store_once(memory, scope, list(_find_commits(payload, scope)))


def capture_session(memory: Memory, payload: Payload) -> None:
    """Store the decisions and the conclusion of a session's transcript. Done again, as before each compaction and at
    the end, it stores what is new; what somebody has changed or deleted since stays so.
    """
    if payload.transcript is None or not payload.transcript.is_file():
        return
    scope = project_scope(payload.folder)
    decisions, conclusion = _read_session(payload.transcript)
    _store_once(memory, scope, [_make(text, "decision", payload, scope, 0.7) for text in decisions[-MOST_DECISIONS:]])
    if not conclusion:
        return
    name = payload.session or payload.transcript.stem
    id = derive_id(SOURCE, scope, "conclusion", name)
    if [record.text for record in memory.get([id])] != [conclusion]:
        memory.add_many([replace(_make(conclusion, "conclusion", payload, scope, 0.6), id=id, on_duplicate="replace")])


def _store_once(memory: Memory, scope: str, records: list[NewRecord]) -> None:
    """Store what neither is there nor was deleted."""
    if records:
        deleted = {one.record.id for one in memory.deleted(scope=scope, limit=DELETED_CHECKED)}
        memory.change({record.id: record for record in records if record.id not in deleted}.values(), if_taken="skip")


def _find_change(payload: Payload, scope: str) -> Iterator[NewRecord]:
    path = payload.tool_input.get("file_path") or payload.tool_input.get("notebook_path")
    if not isinstance(path, str) or not path:
        return
    if _is_secret(Path(path)):
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


def _is_secret(path: Path) -> bool:
    name = path.name.lower()
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in SECRET_FILES) or any(
        part in SECRET_FOLDERS for part in path.parts
    )


def _find_commits(payload: Payload, scope: str) -> Iterator[NewRecord]:
    command, response = payload.tool_input.get("command"), payload.tool_response
    if payload.tool != "Bash" or not isinstance(command, str) or "commit" not in command:
        return
    if isinstance(response, dict):
        said = response.get("stdout")
        if response.get("interrupted") is True or (isinstance(said, str) and "nothing to commit" in said):
            return
    for message in find_messages(command):
        yield _make(_clip(message, COMMIT_CHARS), "commit", payload, scope, 0.5)


def _read_session(transcript: Path) -> tuple[list[str], str]:
    """Return what was laid down in a session, and what it was about and came to."""
    request, last, decisions = "", "", {}
    with open_input(transcript) as file:
        for item in ClaudeCodeSource().read(file):
            if not isinstance(item, Entry):
                continue
            text = strip_context(item.record.text)
            if item.record.role == "user":
                request = request if len(request) >= LEAST_REQUEST else text or request
                decisions.update(dict.fromkeys(find_decisions(text)))
            elif len(text.encode()) >= LEAST_CONCLUSION and not _is_polite(text):
                last = text
    if not last:
        return list(decisions), ""
    return list(decisions), f"{_clip(request, REQUEST_CHARS)}\n\n{_clip(last, CONCLUSION_CHARS)}".strip()


def _is_polite(text: str) -> bool:
    return len(text) <= _LONGEST_POLITENESS and _POLITE.match(text) is not None


def _make(text: str, kind: str, payload: Payload, scope: str, importance: float) -> NewRecord:
    return NewRecord(
        text=text,
        id=derive_id(SOURCE, scope, kind, text),
        scope=scope,
        session=payload.session,
        kind=kind,
        source=SOURCE,
        importance=importance,
        metadata={"agent": payload.agent} if payload.agent else None,
    )


def _clip(text: str, most: int) -> str:
    return redact_text(text[: most + LONGEST_SECRET])[:most].strip()


def _excerpt(payload: Payload) -> str:
    given = payload.tool_input
    edits = given.get("edits")
    first = edits[0] if isinstance(edits, list) and edits and isinstance(edits[0], dict) else {}
    for value in (given.get("content"), given.get("new_string"), given.get("new_source"), first.get("new_string")):
        if isinstance(value, str) and value.strip():
            plain = redact_text(strip_context(value[:LONGEST_SECRET]))
            return " ".join(plain.split())[:EXCERPT_CHARS]
    return ""


def _relative(path: str, folder: Path) -> str:
    try:
        return Path(path).resolve().relative_to(project_root(folder)).as_posix()
    except (ValueError, OSError):
        return path
