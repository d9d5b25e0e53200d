"""There is no chat-history suite in langchain-tests; this is ours."""

import asyncio

import pytest
import target
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

RICH = [
    SystemMessage("sys", id="s1"),
    HumanMessage(
        [{"type": "text", "text": "看图"}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}],
        id="h1",
        name="bob",
        additional_kwargs={"x": 1},
    ),
    AIMessage(
        "",
        id="a1",
        tool_calls=[{"name": "t", "args": {"q": "中"}, "id": "c1", "type": "tool_call"}],
        invalid_tool_calls=[{"name": "b", "args": "{", "id": "c2", "error": "e", "type": "invalid_tool_call"}],
        usage_metadata={
            "input_tokens": 1,
            "output_tokens": 2,
            "total_tokens": 3,
            "input_token_details": {"cache_read": 1},
        },
        response_metadata={"model_name": "m", "output_version": "v1"},
    ),
    ToolMessage("r", tool_call_id="c1", id="t1", artifact={"raw": [1, 2]}, status="error", name="t"),
    AIMessageChunk("chunk", id="k1"),
    ChatMessage("c", role="critic", id="cm"),
    AIMessage([{"type": "reasoning", "reasoning": "r"}, {"type": "text", "text": "v1 😀"}], id="a2"),
]


@pytest.fixture
def hist(tmp_path):
    return lambda sid="s": target.chat_history(tmp_path, sid)


def test_rich_round_trip(hist):
    hist().add_messages(RICH)
    back = hist().messages
    assert back == RICH
    assert [type(m) for m in back] == [type(m) for m in RICH]


async def test_async_members(hist):
    h = hist()
    await h.aadd_messages(RICH[:2])
    assert await h.aget_messages() == RICH[:2]
    await h.aclear()
    assert await h.aget_messages() == []


def test_append_order_and_clear(hist):
    h = hist()
    h.add_user_message("1")
    h.add_ai_message("2")
    h.add_message(HumanMessage("3"))
    assert [m.content for m in h.messages] == ["1", "2", "3"]
    h.clear()
    assert h.messages == []


def test_sessions_are_isolated(hist):
    hist("a").add_user_message("x")
    assert hist("b").messages == []
    hist("b").clear()
    assert len(hist("a").messages) == 1


def test_empty_add(hist):
    h = hist()
    h.add_messages([])
    assert h.messages == []


def test_messages_without_id_are_kept_apart(hist):
    h = hist()
    h.add_messages([HumanMessage("same"), HumanMessage("same")])
    assert len(h.messages) == 2


def test_messages_is_a_snapshot(hist):
    h = hist()
    h.add_user_message("x")
    h.messages.append(HumanMessage("leak"))
    assert len(h.messages) == 1


async def test_parallel_appends_lose_nothing(hist):
    await asyncio.gather(*(hist().aadd_messages([HumanMessage(str(i))]) for i in range(30)))
    assert sorted(int(m.content) for m in await hist().aget_messages()) == list(range(30))


def test_runnable_with_message_history(hist):
    from langchain_core.runnables import RunnableLambda
    from langchain_core.runnables.history import RunnableWithMessageHistory

    chain = RunnableWithMessageHistory(
        RunnableLambda(lambda msgs: AIMessage(f"saw {len(msgs)}")), lambda session_id: hist(session_id)
    )
    cfg = {"configurable": {"session_id": "rw"}}
    assert chain.invoke([HumanMessage("a")], cfg).content == "saw 1"
    assert chain.invoke([HumanMessage("b")], cfg).content == "saw 3"
    assert [m.content for m in hist("rw").messages] == ["a", "saw 1", "b", "saw 3"]


async def test_runnable_with_message_history_async(hist):
    from langchain_core.runnables import RunnableLambda
    from langchain_core.runnables.history import RunnableWithMessageHistory

    async def f(msgs):
        return AIMessage(f"saw {len(msgs)}")

    chain = RunnableWithMessageHistory(RunnableLambda(f), lambda session_id: hist(session_id))
    cfg = {"configurable": {"session_id": "rwa"}}
    await chain.ainvoke([HumanMessage("a")], cfg)
    assert (await chain.ainvoke([HumanMessage("b")], cfg)).content == "saw 3"
