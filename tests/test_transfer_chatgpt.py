"""ChatGPT's data export, in the shape of its conversations.json."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from recall_core import Memory
from recall_core.errors import InvalidInputError


def message(id, role, parts, time, *, content_type="text", **more):
    content = {"content_type": content_type, "parts": parts}
    return {
        "id": id,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": time,
        "update_time": None,
        "content": more.pop("content", content),
        "status": "finished_successfully",
        "end_turn": True,
        "weight": 1.0,
        "metadata": more.pop("metadata", {}),
        "recipient": more.pop("recipient", "all"),
        "channel": None,
    }


def node(id, parent, *children, said=None):
    return {"id": id, "message": said, "parent": parent, "children": list(children)}


def make_mapping():
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "width": 10, "height": 10}
    spoken = {"content_type": "audio_transcription", "text": "And how do I roll back?", "direction": "in"}
    hidden = {"is_visually_hidden_from_conversation": True}
    files = {"attachments": [{"id": "file-1", "name": "错误.png"}]}
    cited = "用 Docker Compose。\ue200cite\ue202turn0search1\ue201"
    nodes = [
        node("root", None, "a"),
        node("a", "root", "b", said=message("a", "system", [""], None, metadata=hidden)),
        node("b", "a", "c", "old", said=message("b", "user", ["怎么部署服务？"], 1769851800.123456)),
        node("old", "b", said=message("old", "assistant", ["用虚拟机。"], 1769851801.0)),
        node("c", "b", "d", said=message("c", "assistant", ["search()"], 1769851802.0, recipient="web")),
        node("d", "c", "e", said=message("d", "tool", ["results"], 1769851803.0)),
        node("e", "d", "f", said=message("e", "assistant", [cited], None, metadata={"model_slug": "gpt-5"})),
        node("f", "e", "g", said=message("f", "user", [image, "这是什么错误？", spoken], 1769851810.0,
                                         content_type="multimodal_text", metadata=files)),
        node("g", "f", "h", said=message("g", "assistant", None, 1769851811.0,
                                         content={"content_type": "thoughts", "thoughts": [{"content": "hm"}]})),
        node("h", "g", "i", said=message("h", "user", [image], 1769851812.0, content_type="multimodal_text")),
        node("i", "h", said=message("i", "assistant", ["Run `compose up -d`."], 1769851813.0)),
    ]  # fmt: skip
    return {one["id"]: one for one in nodes}


CONVERSATION = {
    "title": "部署 questions",
    "create_time": 1769851799.5,
    "update_time": 1769851820.0,
    "mapping": make_mapping(),
    "moderation_results": [],
    "current_node": "i",
    "conversation_id": "c-1",
    "id": "c-1",
}
SHORT = {
    "title": "New chat",
    "create_time": 1700000000,
    "mapping": {
        "r": node("r", None, "m", "n"),
        "m": node("m", "r", said=message("m", "user", ["first try"], 1700000001)),
        "n": node("n", "r", said=message("n", "user", ["second try"], 1700000002)),
    },
    "id": "c-2",
}


def open_memory():
    return Memory.open(":memory:", embedder=None)


def as_file(*conversations):
    return io.BytesIO(json.dumps(conversations).encode())


def test_the_branch_that_was_last_open_becomes_a_session():
    with open_memory() as memory:
        imported = memory.import_(as_file(CONVERSATION, SHORT))
        assert (imported.format, imported.added, imported.failed, imported.sessions) == ("chatgpt", 5, 0, 2)
        assert imported.skipped == {
            "system messages and hidden ones": 2,
            "calls of tools and their results": 2,
            "messages without text": 1,
            "messages of branches that were left": 2,
        }
        assert imported.read == 12
        session = memory.session("c-1")
        assert session.title == "部署 questions"
        said = session.messages()
        assert [(one.role, one.turn, one.text) for one in said] == [
            ("user", 1, "怎么部署服务？"),
            ("assistant", 2, "用 Docker Compose。"),
            ("user", 3, "这是什么错误？\n\nAnd how do I roll back?"),
            ("assistant", 4, "Run `compose up -d`."),
        ]
        assert said[0].created_at.isoformat() == "2026-01-31T09:30:00.123456+00:00"
        assert said[1].created_at >= said[0].created_at
        assert [dict(one.metadata) for one in said] == [{}, {"model": "gpt-5"}, {"attachments": ["错误.png"]}, {}]
        assert [one.text for one in memory.session("c-2").messages()] == ["second try"]


def test_importing_again_adds_what_was_said_since():
    mapping = make_mapping()
    mapping["i"]["children"] = ["j"]
    mapping["j"] = node("j", "i", said=message("j", "user", ["谢谢"], 1769851900.0))
    later = {**CONVERSATION, "mapping": mapping, "current_node": "j"}
    with open_memory() as memory:
        memory.import_(as_file(CONVERSATION))
        again = memory.import_(as_file(later))
        assert (again.added, again.present) == (1, 4)
        assert memory.session("c-1").messages(limit=1)[0].turn == 5


def test_the_archive_and_its_folder_are_read_as_they_come(tmp_path):
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "conversations-000.json").write_text(json.dumps([CONVERSATION]))
    (folder / "conversations-001.json").write_text(json.dumps([SHORT]))
    (folder / "user.json").write_text("{}")
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in folder.iterdir():
            packed.write(path, f"export/{path.name}")
    for target in (folder, archive):
        with open_memory() as memory:
            imported = memory.import_(target)
            assert (imported.format, imported.added) == ("chatgpt", 5)


def test_an_archive_without_conversations_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as packed:
        packed.writestr("conversations.json", json.dumps([{"uuid": "x", "chat_messages": []}]))
    with open_memory() as memory, pytest.raises(InvalidInputError, match="no file that can be imported"):
        memory.import_(tmp_path / "other.zip")


def test_what_is_no_conversation_costs_no_other():
    ring = {"a": node("a", "b", said=message("a", "user", ["x"], 1)), "b": node("b", "a")}
    odd = [5, {"title": "x"}, {"id": "ring", "mapping": ring, "current_node": "a"}, {"id": "e", "mapping": {"a": 5}}]
    odd.append({"id": "parts", "mapping": {"a": node("a", 7, said={"author": "x", "content": [], "metadata": 5})}})
    with open_memory() as memory:
        imported = memory.import_(as_file(CONVERSATION, *odd, SHORT))
        assert (imported.added, [failure.line for failure in imported.failures]) == (6, [2, 3])


def test_a_large_export_is_read_piece_by_piece(tmp_path):
    large = {**SHORT, "id": "large", "mapping": {
        "n": node("n", None, said=message("n", "user", ["长 text " * 60_000], 1700000002)),
    }}  # fmt: skip
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{**SHORT, "id": f"c{number}"} for number in range(300)] + [large, SHORT], indent=2))
    with open_memory() as memory:
        assert memory.import_(path).added == 302
