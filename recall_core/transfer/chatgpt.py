"""ChatGPT's data export: conversations as trees of messages, of which the branch that was last open is read."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from ..errors import InvalidInputError
from ..models import Json, NewRecord
from ..patterns import compile_late
from .columns import read_name, read_time
from .content import tame
from .documents import Document
from .entries import Damaged, Entry, Item, Skipped
from .input import Input, open_input

PATTERN = "conversations*.json"  # a large export has several: conversations-000.json and so on
SIGN = compile_late(r'"mapping"\s*:\s*\{')
SPOKEN = ("user", "assistant")
TEXTS = ("text", "multimodal_text")
CITATION = compile_late("\ue200[^\ue200\ue201]*\ue201")  # marks that only ChatGPT's own page can show
HIDDEN = "system messages and hidden ones"
TOOLS = "calls of tools and their results"
NO_TEXT = "messages without text"
OTHER_BRANCHES = "messages of branches that were left"


class ChatGPTSource:
    """Reads `conversations.json`, or the ZIP or folder it lies in: each message becomes a record of its session."""

    name = "chatgpt"

    def detect(self, file: Input) -> bool:
        """Look for the trees, or the name of the file that has them."""
        if file.is_folder or file.is_zip:
            return any(SIGN.search(text) for text in _read_heads(file))
        return file.text.lstrip()[:1] in ("[", "{") and bool(SIGN.search(file.text))

    def read(self, file: Input) -> Iterator[Item]:
        """Yield the messages, conversation by conversation. Lines count the conversations, from 1 on."""
        number = 0
        for stream in _open_parts(file):
            with closing(stream):
                for conversation in Document(stream).items():
                    number += 1
                    if isinstance(conversation, dict) and isinstance(conversation.get("mapping"), dict):
                        yield from _read_conversation(conversation, number)
                    else:
                        yield Damaged("not a conversation: it has no mapping of messages", number)


def _read_heads(file: Input) -> Iterator[str]:
    try:
        for stream in _open_parts(file):
            with closing(stream):
                yield stream.read(1 << 16).decode("utf-8", "replace")
    except InvalidInputError:
        return


def _open_parts(file: Input) -> Iterator[BinaryIO]:
    """Yield the files with conversations."""
    if file.is_folder:
        for path in file.files(PATTERN):
            with open_input(path) as part:
                yield part.stream
    elif file.is_zip:
        yield from _open_members(file.path, file.name)
    else:
        yield file.stream


def _open_members(path: Path | None, name: str) -> Iterator[BinaryIO]:
    if path is None:
        raise InvalidInputError(f"{name} is a ZIP archive, which can't be read from a pipe; give its path")
    try:
        with zipfile.ZipFile(path) as archive:
            for member in sorted(archive.namelist()):
                if fnmatch(PurePosixPath(member).name, PATTERN):
                    stream: IO[bytes] = archive.open(member)
                    yield cast(BinaryIO, stream)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise InvalidInputError(f"{name} can't be read: {error}") from None


def _read_conversation(conversation: Mapping[str, Json], number: int) -> Iterator[Item]:
    session = read_name(conversation.get("conversation_id") or conversation.get("id"))
    title = conversation.get("title")
    branch = _find_branch(conversation)
    time = read_time(conversation.get("create_time"))
    turn = 0
    for node, message in branch:
        time = read_time(message.get("create_time")) or time
        text = _find_text(message)
        reason = _find_reason(message, text)
        if reason is not None:
            yield Skipped(reason, number)
            continue
        turn += 1
        record = NewRecord(
            text=text,
            session=session,
            turn=turn,
            role=_find_role(message),
            kind="message",
            source=ChatGPTSource.name,
            created_at=time,
            metadata=_find_metadata(message),
        )
        shown = title.strip() if isinstance(title, str) else None
        yield Entry(record=record, key=f"{session}/{message.get('id') or node}", line=number, title=shown)
    for _ in range(_count_messages(conversation["mapping"]) - len(branch)):
        yield Skipped(OTHER_BRANCHES, number)


def _find_branch(conversation: Mapping[str, Json]) -> list[tuple[str, Mapping[str, Json]]]:
    """Return the messages from the root to the node that was last open, or else to the one made last."""
    mapping = conversation["mapping"]
    node = conversation.get("current_node")
    if not isinstance(node, str) or node not in mapping:
        node = max(mapping, key=lambda name: _made_at(mapping[name]), default=None)
    branch: list[tuple[str, Mapping[str, Json]]] = []
    seen: set[str] = set()
    while isinstance(node, str) and isinstance(mapping.get(node), dict) and node not in seen:
        seen.add(node)
        message = mapping[node].get("message")
        if isinstance(message, dict):
            branch.append((node, message))
        node = mapping[node].get("parent")
    return branch[::-1]


def _count_messages(mapping: Mapping[str, Json]) -> int:
    return sum(isinstance(node, dict) and isinstance(node.get("message"), dict) for node in mapping.values())


def _made_at(node: Json) -> float:
    message = node.get("message") if isinstance(node, dict) else None
    made = message.get("create_time") if isinstance(message, dict) else None
    return float(made) if isinstance(made, int | float) else 0.0


def _find_role(message: Mapping[str, Json]) -> str | None:
    author = message.get("author")
    return read_name(author.get("role")) if isinstance(author, dict) else None


def _find_reason(message: Mapping[str, Json], text: str) -> str | None:
    """Return why a message is left out, None if it is not."""
    role, content = _find_role(message), message.get("content")
    kind = content.get("content_type") if isinstance(content, dict) else None
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    if role == "tool" or (role == "assistant" and message.get("recipient") not in (None, "all")):
        return TOOLS
    if role not in SPOKEN or hidden or (kind is not None and kind not in TEXTS):
        return HIDDEN
    return None if text.strip() else NO_TEXT


def _find_text(message: Mapping[str, Json]) -> str:
    """Return the text of the parts of a message; images and sounds have none, what was said has its transcription."""
    content = message.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    texts = []
    for part in parts if isinstance(parts, list) else ():
        said = part.get("text") if isinstance(part, dict) else part
        if isinstance(said, str) and said.strip():
            texts.append(CITATION.sub("", said))
    return "\n\n".join(texts)


def _find_metadata(message: Mapping[str, Json]) -> dict[str, Json]:
    given = message.get("metadata")
    metadata = given if isinstance(given, dict) else {}
    attached = metadata.get("attachments")
    attached = attached if isinstance(attached, list) else []
    names = [item["name"] for item in attached if isinstance(item, dict) and item.get("name")]
    found = {"model": metadata.get("model_slug"), "attachments": names}
    return tame({name: value for name, value in found.items() if value})
