"""RecallChatStore keeps conversations as LlamaIndex's own store does, and on disk."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

import recall_core
from recall_llamaindex import RecallChatStore

ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED


def say(text):
    return ChatMessage(role="user", content=text)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def store(path, opened):
    opened.append(RecallChatStore(path))
    return opened[-1]


def contents(messages):
    return [message.content for message in messages]


def run(coroutine):
    return asyncio.run(coroutine)


# The same as LlamaIndex's own store

keys, numbers = st.sampled_from(["a", "b"]), st.integers(0, 4)
statuses, any_status = st.sampled_from([ACTIVE, ARCHIVED]), st.sampled_from([None, ACTIVE, ARCHIVED])
messages = st.lists(st.integers(0, 99).map(lambda number: say(f"message {number}")), max_size=4)
steps = st.one_of(
    st.tuples(st.just("add_message"), keys, st.builds(say, st.text("xyz", max_size=3)), statuses),
    st.tuples(st.just("add_messages"), keys, messages.filter(bool), statuses),
    st.tuples(st.just("set_messages"), keys, messages, statuses),
    st.tuples(st.just("delete_messages"), keys, any_status),
    st.tuples(st.just("delete_oldest_messages"), keys, numbers),
    st.tuples(st.just("archive_oldest_messages"), keys, numbers),
    st.tuples(st.just("count_messages"), keys, any_status),
    st.tuples(st.just("get_messages"), keys, any_status, st.none() | numbers, st.none() | numbers),
    st.tuples(st.just("get_keys")),
)


@given(st.lists(steps, min_size=3, max_size=12))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_step_gives_what_the_store_of_llamaindex_gives(plan):
    ours = RecallChatStore(":memory:")

    async def follow():
        theirs = SQLAlchemyChatStore(table_name="chat", async_database_uri="sqlite+aiosqlite:///:memory:")
        for name, *arguments in plan:
            got, wanted = await getattr(ours, name)(*arguments), await getattr(theirs, name)(*arguments)
            assert (sorted(got) if name == "get_keys" else got) == (sorted(wanted) if name == "get_keys" else wanted)
        for key in ("a", "b"):
            assert await ours.get_messages(key, None) == await theirs.get_messages(key, None)
        await theirs._async_engine.dispose() if theirs._async_engine else None

    try:
        run(follow())
    finally:
        ours.close()


# What is stored


@pytest.mark.parametrize("message", [
    say("你好 🙂\nsecond line"),
    ChatMessage(role="assistant", content=""),
    ChatMessage(role="assistant", additional_kwargs={"tool_calls": [{"id": "1", "args": {"x": [1, None]}}]}),
    ChatMessage(role="user", blocks=[TextBlock(text="a"), ImageBlock(url="http://x/y.png"), TextBlock(text="b")]),
    ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_call_id="1", tool_name="f", tool_kwargs={"x": 1})]),
    ChatMessage(role="tool", content="result", additional_kwargs={"tool_call_id": "1"}),
], ids=["text", "empty", "kwargs", "blocks", "call", "tool"])  # fmt: skip
def test_a_message_comes_back_as_it_was(store, message):
    run(store.add_message("s", message))
    assert run(store.get_messages("s")) == [message]


@pytest.mark.parametrize("key", ["", "a\nb", "x" * 600, "\0", "derived:0"])
def test_a_conversation_may_have_any_key(store, key):
    run(store.add_messages(key, [say("one"), say("two")]))
    run(store.add_message(key + "'", say("of another")))
    assert sorted(run(store.get_keys())) == sorted([key, key + "'"])
    assert contents(run(store.get_messages(key))) == ["one", "two"]
    assert run(store.count_messages(key)) == 2
    run(store.archive_oldest_messages(key, 1))
    run(store.set_messages(key, run(store.get_messages(key))))
    run(store.delete_messages(key))
    assert run(store.get_keys()) == [key + "'"]


def test_a_message_longer_than_a_record_comes_back_whole(store):
    long = say("The boiler is in the cellar. " + "x" * 1_000_000 + " The end.")
    run(store.add_messages("s", [long, say("after it")]))
    assert run(store.get_messages("s")) == [long, say("after it")]


def test_conversations_outlive_the_process_and_are_found_by_searches(store, path, opened):
    run(store.add_messages("s", [say("自行车停在围栏旁边"), ChatMessage(role="assistant", content="好的")]))
    store.close()
    again = RecallChatStore(path)
    opened.append(again)
    assert contents(run(again.get_messages("s"))) == ["自行车停在围栏旁边", "好的"]
    with recall_core.Memory.open(path) as memory:
        memory.flush()
        assert memory.search("自行车在哪儿")[0].record.text == "自行车停在围栏旁边"
        (session,) = memory.sessions("llamaindex/chat")
        assert [message.role for message in session.messages()] == ["user", "assistant"]


def test_what_changes_a_record_changes_its_message(store, path):
    run(store.add_message("s", say("The code is 1234")))
    with recall_core.Memory.open(path, embedder=None) as memory:
        memory.update(memory.records()[0].id, text="The code is secret")
    assert contents(run(store.get_messages("s"))) == ["The code is secret"]


def test_a_message_that_another_program_stored_is_a_message(store, path):
    with recall_core.Memory.open(path, embedder=None) as memory:
        memory.session("s", scope="llamaindex/chat").append("user", "hello")
        memory.session("s", scope="llamaindex/chat").append("narrator", "a door opens")
    assert [(message.role.value, message.content) for message in run(store.get_messages("s"))] == [
        ("user", "hello"),
        ("user", "a door opens"),
    ]


@pytest.mark.parametrize(("redact", "kept"), [(False, True), (True, False)])
def test_keys_are_stored_unless_they_are_to_be_redacted(path, redact, kept):
    store = RecallChatStore(path, redact=redact)
    run(store.add_message("s", say("password=correct-horse-9")))
    store.close()
    assert (b"correct-horse-9" in path.read_bytes()) == kept


def test_what_was_deleted_is_gone_from_the_file(store, path):
    run(store.add_messages("s", [say("zanzibar one"), say("zanzibar two"), say("zanzibar three")]))
    assert run(store.delete_message("s", 0)).content == "zanzibar one"
    run(store.delete_oldest_messages("s", 1))
    run(store.set_messages("s", []))
    store.close()
    assert b"zanzibar" not in path.read_bytes()


# Keys, positions, scopes


def test_a_message_is_deleted_by_its_place_among_all(store):
    run(store.add_messages("s", [say("a"), say("b"), say("c")]))
    run(store.archive_oldest_messages("s", 1))
    assert run(store.delete_message("s", 1)).content == "b"
    assert contents(run(store.get_messages("s", None))) == ["a", "c"]
    assert run(store.delete_message("s", 2)) is None
    assert run(store.delete_message("s", -1)) is None


def test_stores_see_exactly_their_scope(store, path, opened):
    other = RecallChatStore(path, scope="llamaindex")
    opened.append(other)
    run(store.add_message("s", say("below")))
    run(other.add_message("s", say("above")))
    assert contents(run(other.get_messages("s"))) == ["above"]
    assert run(other.count_messages("s")) == 1
    run(other.delete_messages("s"))
    assert contents(run(store.get_messages("s"))) == ["below"]
    assert run(other.get_keys()) == []


def test_it_is_a_chat_store_of_llamaindex(store, path):
    assert isinstance(store, AsyncDBChatStore)
    assert store.class_name() == "RecallChatStore"
    assert RecallChatStore(**store.model_dump()).path == str(path)


# Through LlamaIndex's Memory


def test_memory_keeps_the_conversation_from_one_run_to_the_next(store, path, opened):
    memory = Memory.from_defaults(session_id="s", chat_store=store, chat_history=[say("an earlier one")])
    memory.put(say("hello"))
    memory.put_messages([ChatMessage(role="assistant", content="hi"), say("bye")])
    again = RecallChatStore(path)
    opened.append(again)
    memory = Memory.from_defaults(session_id="s", chat_store=again)
    assert contents(memory.get()) == ["an earlier one", "hello", "hi", "bye"]
    memory.reset()
    assert memory.get_all() == []


def test_what_leaves_the_queue_is_archived(store):
    memory = Memory.from_defaults(session_id="s", token_limit=60, token_flush_size=20, chat_store=store)
    for number in range(20):
        memory.put(say(f"message number {number}"))
    active, archived = (contents(run(store.get_messages("s", status))) for status in (ACTIVE, ARCHIVED))
    assert archived + active == [f"message number {number}" for number in range(20)]
    assert archived
    assert contents(memory.get()) == active


def test_concurrent_conversations_do_not_mix(store):
    async def talk(key):
        for number in range(5):
            await store.add_message(key, say(f"{key} {number}"))
        return contents(await store.get_messages(key))

    async def all_of_them():
        return await asyncio.gather(*(talk(f"session {number}") for number in range(8)))

    assert run(all_of_them()) == [[f"session {key} {number}" for number in range(5)] for key in range(8)]
    assert len(run(store.get_keys())) == 8
