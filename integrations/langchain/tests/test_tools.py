"""The tools: langchain-tests' suites for each, and what an agent is told."""

from __future__ import annotations

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from recall_core import Memory
from recall_langchain import recall_tools

EXAMPLES = {
    "search_memory": {"query": "tea"},
    "remember": {"text": "The user likes tea."},
    "forget": {"id": "0123"},
}


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "memory.db") as memory:
        yield memory


def tools_of(memory, **arguments) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in recall_tools(memory, **arguments)}


def as_user(user: str) -> RunnableConfig:
    return {"configurable": {"user_id": user}}


class Standard:
    name: str

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _open(cls, tmp_path_factory):
        with Memory.open(tmp_path_factory.mktemp("tools") / "memory.db") as memory:
            cls.tool = tools_of(memory)[cls.name]
            yield

    @property
    def tool_constructor(self):
        return self.tool

    @property
    def tool_invoke_params_example(self):
        return dict(EXAMPLES[self.name])


class TestSearchUnit(Standard, ToolsUnitTests):
    name = "search_memory"


class TestSearch(Standard, ToolsIntegrationTests):
    name = "search_memory"


class TestRememberUnit(Standard, ToolsUnitTests):
    name = "remember"


class TestRemember(Standard, ToolsIntegrationTests):
    name = "remember"


class TestForgetUnit(Standard, ToolsUnitTests):
    name = "forget"


class TestForget(Standard, ToolsIntegrationTests):
    name = "forget"


def test_a_model_is_told_what_each_tool_and_argument_is_for(memory):
    for tool in recall_tools(memory):
        assert len(tool.description) > 40
        assert all(len(argument["description"]) > 20 for argument in tool.args.values())
        assert set(tool.args) == set(EXAMPLES[tool.name])


def test_each_user_has_a_memory_of_their_own(memory):
    tools = tools_of(memory)
    tools["remember"].invoke({"text": "The user likes tea."}, as_user("ann"))
    assert "likes tea" in tools["search_memory"].invoke({"query": "tea"}, as_user("ann"))
    assert tools["search_memory"].invoke({"query": "tea"}, as_user("bob")) == "Nothing relevant is remembered."
    (record,) = memory.records()
    assert "Nothing with the id" in tools["forget"].invoke({"id": record.id}, as_user("bob"))
    assert tools["forget"].invoke({"id": record.id}, as_user("ann")) == "Forgotten."
    assert (memory.count(), memory.deleted()) == (0, [])


async def test_saying_it_again_keeps_it_once(memory):
    remember = tools_of(memory, scope="shared")["remember"]
    first = remember.invoke({"text": "The user likes tea."})
    assert await remember.ainvoke({"text": "The user likes tea."}) == first
    assert memory.scopes() == ["shared"]


def test_what_is_wrong_is_told_to_the_agent(memory):
    remember = tools_of(memory, scope="tenant/{tenant}")["remember"]
    assert "needs a 'tenant'" in remember.invoke({"text": "x"})


def test_secrets_are_not_remembered(memory):
    key = "sk-proj-" + "a1B2c3D4e5" * 5
    tools_of(memory)["remember"].invoke({"text": f"The key is {key}"})
    assert key not in memory.records()[0].text
