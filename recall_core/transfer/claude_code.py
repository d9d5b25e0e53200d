"""Claude Code's transcripts: what people and the assistant said, without the noise of tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InvalidInputError
from ..models import Json, NewRecord
from ..patterns import compile_late
from .columns import read_name, read_time
from .content import find_text, parse_object, tame
from .entries import Damaged, Entry, Item, Skipped, TitleEntry
from .injected import strip_injected
from .input import Input, open_input

PATTERN = "*.jsonl"
LOOKED_AT = 20  # files of a folder
SIGN = compile_late(r'"sessionId"\s*:\s*"')
SIGNS = compile_late(r'"(parentUuid|isSidechain|leafUuid|isSnapshotUpdate)"\s*:|"type"\s*:\s*"queue-operation"')
COMMAND = compile_late(
    r"\s*(<(command-(name|message|args)|local-command-|bash-(input|stdout|stderr))|Caveat: The messages)"
)
INTERRUPTED = compile_late(r"\s*\[Request interrupted by user[^\]]*\]\s*")
EVENT = "events of the program"
SUBAGENT = "messages of subagents"
TOOL = "calls of tools, their results, thoughts"
COMMANDS = "commands and their output"
META = "notes that the program made for the model"
UNFINISHED = "a last line that is not complete yet"


@dataclass(slots=True)
class _Transcript:
    """What is known so far of one file."""

    name: str
    session: str
    summaries: dict[str, str] = field(default_factory=dict)  # by the message that they end with
    titles: dict[str, tuple[str, Json]] = field(default_factory=dict)  # title and time by session


class ClaudeCodeSource:
    """Reads a transcript, or a folder of them such as ~/.claude/projects: what was said becomes records of sessions."""

    name = "claude-code"

    def detect(self, file: Input) -> bool:
        """Look for the keys that each line has."""
        if file.is_folder:
            return any(_looks_like_one(path) for path in file.files(PATTERN)[:LOOKED_AT])
        return file.head.lstrip()[:1] == b"{" and bool(SIGN.search(file.text) and SIGNS.search(file.text))

    def read(self, file: Input) -> Iterator[Item]:
        """Yield what was said, file by file, in the order of the lines."""
        turns: Counter[str] = Counter()
        if not file.is_folder:
            yield from _read_file(file, turns)
            return
        for path in file.files(PATTERN):
            try:
                with open_input(path) as part:
                    yield from _read_file(part, turns)
            except InvalidInputError as error:
                yield Damaged(str(error))


def _looks_like_one(path: Path) -> bool:
    try:
        with open_input(path) as file:
            return ClaudeCodeSource().detect(file)
    except InvalidInputError:
        return False


def _read_file(file: Input, turns: Counter[str]) -> Iterator[Item]:
    name = Path(file.name).stem
    transcript = _Transcript(name, read_name(name) or "stdin")
    for number, raw in file.lines():
        try:
            line = parse_object(raw)
        except InvalidInputError as error:
            unfinished = not raw.endswith(b"\n")  # it is being written
            yield Skipped(UNFINISHED, number) if unfinished else Damaged(f"{file.name}: {error}", number)
            continue
        yield _read_line(line, number, transcript, turns)
    for session, (title, time) in transcript.titles.items():
        yield TitleEntry(scope="", session=session, title=title, created_at=read_time(time))


def _read_line(line: Mapping[str, Json], number: int, transcript: _Transcript, turns: Counter[str]) -> Item:
    kind, content = _find_message(line)
    session = read_name(line.get("sessionId")) or transcript.session
    if kind not in ("user", "assistant"):
        _note_title(line, session, transcript)
        return Skipped(EVENT, number)
    text = strip_injected(find_text(content))
    reason = _find_reason(line, content, text)
    if reason is not None:
        return Skipped(reason, number)
    uuid = read_name(line.get("uuid"))
    if uuid in transcript.summaries:
        transcript.titles[session] = (transcript.summaries[uuid], line.get("timestamp"))
    turns[session] += 1
    record = NewRecord(
        text=text,
        session=session,
        turn=turns[session],
        role=str(kind),
        kind="message",
        source=ClaudeCodeSource.name,
        created_at=read_time(line.get("timestamp")),
        metadata=_find_metadata(line),
    )
    # A session that is resumed begins with the messages before, under their old ids.
    return Entry(record=record, key=uuid or f"{session}/{number}", line=number)


def _find_message(line: Mapping[str, Json]) -> tuple[Json, Json]:
    """Return the type of a line and the content of its message. What somebody writes while the assistant is at work is
    an attachment to what is said next.
    """
    match line:
        case {"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt, **rest}}:
            return ("user" if rest.get("commandMode", "prompt") == "prompt" else None), prompt
        case {"message": {"content": content}}:
            return line.get("type"), content
    return line.get("type"), None


def _find_reason(line: Mapping[str, Json], content: Json, text: str) -> str | None:
    """Return why a message is left out, None if it is not."""
    if line.get("isSidechain") is True:
        return SUBAGENT
    if line.get("isMeta") is True or line.get("isCompactSummary") is True or line.get("isApiErrorMessage") is True:
        return META
    if COMMAND.match(text) or INTERRUPTED.fullmatch(text):
        return COMMANDS
    if isinstance(content, list) and any(isinstance(b, dict) and b.get("type") == "tool_result" for b in content):
        return TOOL
    if not text:
        return TOOL if isinstance(content, list) else META
    return None


def _note_title(line: Mapping[str, Json], session: str, transcript: _Transcript) -> None:
    """Note what a session is called. A summary may be of another session: what it ends with says of which."""
    match line:
        case {"type": "summary", "summary": str(summary), "leafUuid": str(leaf)}:
            transcript.summaries[leaf] = summary
        case {"type": "custom-title", "customTitle": str(title)} | {"type": "ai-title", "aiTitle": str(title)}:
            transcript.titles[session] = (title, None)


def _find_metadata(line: Mapping[str, Json]) -> dict[str, Json]:
    message = line.get("message")
    model = message.get("model") if isinstance(message, dict) else None
    found = {"cwd": line.get("cwd"), "branch": line.get("gitBranch"), "model": model}
    return tame({name: value for name, value in found.items() if value})
