"""create_agent(..., middleware=[X]): what a memory-injection middleware must do and must not do."""

import warnings

import pytest
import target
from agents import scripted, system
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver


def ping() -> str:
    """ping"""
    return "pong"


@pytest.fixture
def make(tmp_path):
    with target.middleware(tmp_path) as mw:

        def build(answers, **kw):
            m = scripted(*answers)
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)
                return create_agent(m, tools=[ping], middleware=[mw], **kw), m

        yield build


MSG = {"messages": [{"role": "user", "content": "喝什么茶？"}]}


@pytest.mark.parametrize("how", ["context", "configurable"])
def test_injects_for_this_user_only(make, how):
    agent, m = make([AIMessage("ok")], system_prompt="BASE")
    if how == "context":
        out = agent.invoke(MSG, context={"user_id": "u1"})
    else:
        out = agent.invoke(MSG, {"configurable": {"user_id": "u1"}})
    assert "BASE" in system(m.seen[0])
    assert "乌龙茶" in system(m.seen[0])
    assert "香菜" not in system(m.seen[0])
    assert [x.type for x in out["messages"]] == ["human", "ai"]  # nothing persisted in state


async def test_async(make):
    agent, m = make([AIMessage("ok")])  # and without any system prompt
    await agent.ainvoke(MSG, context={"user_id": "u1"})
    assert "乌龙茶" in system(m.seen[0])


def test_exactly_one_block_per_model_call_in_a_tool_loop(make):
    call = AIMessage("", tool_calls=[{"name": "ping", "args": {}, "id": "1", "type": "tool_call"}])
    agent, m = make([call, AIMessage("done")], system_prompt="BASE")
    agent.invoke(MSG, context={"user_id": "u1"})
    assert len(m.seen) == 2
    assert all(system(s).count("乌龙茶") == 1 for s in m.seen)


def test_two_turns_with_checkpointer_do_not_pile_up(make):
    agent, m = make([AIMessage("1"), AIMessage("2")], checkpointer=InMemorySaver())
    cfg = {"configurable": {"thread_id": "t", "user_id": "u1"}}
    agent.invoke(MSG, cfg, context={"user_id": "u1"})
    out = agent.invoke(MSG, cfg, context={"user_id": "u1"})
    assert system(m.seen[1]).count("乌龙茶") == 1
    assert [x.type for x in out["messages"]] == ["human", "ai", "human", "ai"]


def test_unknown_user_gets_no_block(make):
    agent, m = make([AIMessage("ok")])
    agent.invoke(MSG, context={"user_id": "nobody"})
    assert system(m.seen[0]) == ""


def test_stream(make):
    agent, m = make([AIMessage("ok")])
    assert list(agent.stream(MSG, context={"user_id": "u1"}, stream_mode="values"))
    assert "乌龙茶" in system(m.seen[0])
