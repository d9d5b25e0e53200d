"""What CrewAI's users do with a memory, with a model that analyses: the checks of the conformance drive."""

from __future__ import annotations

import asyncio
import importlib.metadata

import pytest
from crewai.events.event_bus import crewai_event_bus
from crewai.events.types import memory_events
from crews import FACT, HEADING, SEARCH, ScriptedLLM, build_crew
from stores import MEMORIES

from recall_crewai import RecallMemory

VERSION = tuple(int(part) for part in importlib.metadata.version("crewai").split(".")[:3])

EVENTS = [
    getattr(memory_events, f"Memory{what}{when}Event")
    for what in ("Save", "Query", "Retrieval")
    for when in ("Started", "Completed", "Failed")
]


@pytest.fixture(params=MEMORIES.values(), ids=MEMORIES)
def memory(request, tmp_path, opened):
    memory = request.param(tmp_path, ScriptedLLM())
    opened.append(memory)
    return memory


@pytest.fixture
def events():
    seen = []
    with crewai_event_bus.scoped_handlers():
        for event in EVENTS:
            crewai_event_bus.on(event)(lambda source, event: seen.append(type(event).__name__))
        yield seen


def contents(matches):
    return [match.record.content for match in matches]


def test_with_all_fields_given_no_model_is_asked(memory):
    memory.remember("the user loves sushi", scope="/user/kamal", categories=["food"], importance=0.9)
    memory.remember("the user writes python", scope="/user/kamal", categories=["tech"], importance=0.6)
    memory.remember("weather is sunny", scope="/misc", categories=["w"], importance=0.1)
    found = memory.recall("what sushi food does the user love", scope="/user/kamal", depth="shallow", limit=2)
    assert found[0].record.content == "the user loves sushi"
    assert 0 <= found[0].score <= 1
    assert memory.list_scopes("/") == ["/misc", "/user"]
    assert {kind for kind, _ in memory.llm.asked} <= {"consolidate"}
    assert "/user/kamal (2 records)" in memory.tree()
    assert memory.forget(scope="/misc") == 1


def test_what_is_remembered_in_the_background_is_recalled_at_once(memory):
    memory.remember_many(["alpha fact one", "beta fact two"])
    assert "alpha fact one" in contents(memory.recall("alpha fact one", limit=5))


def test_private_memories_are_their_sources_own(memory):
    memory.remember("secret of u1", scope="/s", categories=[], importance=0.5, source="u1", private=True)
    for depth in ("shallow", "deep"):
        assert memory.recall("secret of u1", depth=depth) == []
        assert contents(memory.recall("secret of u1", depth=depth, source="u1")) == ["secret of u1"]
        assert len(memory.recall("secret of u1", depth=depth, include_private=True)) == 1


def test_private_memories_without_a_source_are_nobodys(memory):
    if not isinstance(memory, RecallMemory) and VERSION < (1, 15, 30):
        pytest.skip("CrewAI's own memory shows them to those who name no source")
    memory.remember("secret of nobody", scope="/s", categories=[], importance=0.5, private=True)
    for depth in ("shallow", "deep"):
        assert memory.recall("secret of nobody", depth=depth) == []
        assert memory.recall("secret of nobody", depth=depth, source="u1") == []
        assert len(memory.recall("secret of nobody", depth=depth, include_private=True)) == 1


def test_deep_recall_sees_memories_at_the_root(memory):
    memory.remember("root level fact about pelicans", scope="/", categories=[], importance=0.5)
    memory.remember("something else entirely", scope="/other", categories=[], importance=0.5)
    assert "root level fact about pelicans" in contents(memory.recall("root level fact about pelicans"))


def test_deep_recall_sees_more_than_twenty_scopes(memory):
    for number in range(25):
        text = f"user number {number:02d} likes item{number:02d}"
        memory.remember(text, scope=f"/u/{number:02d}", categories=[], importance=0.5)
    found = memory.recall("user number 24 likes item24", scope="/u", limit=3)
    assert "user number 24 likes item24" in contents(found)


def test_scopes_and_slices_are_views(memory):
    view = memory.scope("/agent/a")
    view.remember("scoped thing", scope="/", categories=[], importance=0.5)
    assert len(view.recall("scoped thing", depth="shallow")) == 1
    part = memory.slice(["/agent/a", "/company"])
    assert part.remember("x", scope="/") is None
    assert contents(part.recall("scoped thing")) == ["scoped thing"]
    assert view.info().record_count == 1


def test_the_second_kickoff_is_told_what_the_first_stored(memory, events):
    assert str(build_crew(memory, ScriptedLLM()).kickoff()) == FACT
    memory.drain_writes()
    assert contents_of(memory) == [FACT]
    assert memory.list_records()[0].scope == "/projects"
    llm = ScriptedLLM(answer="14 March")
    build_crew(memory, llm).kickoff()
    crewai_event_bus.flush()
    prompt = llm.prompts()[0]
    assert HEADING in prompt
    assert FACT in prompt
    assert not [name for name in events if "Failed" in name]
    assert {name.removesuffix("Event") for name in events} == {
        f"Memory{what}{when}" for what in ("Save", "Query", "Retrieval") for when in ("Started", "Completed")
    }


def contents_of(memory):
    return [record.content for record in memory.list_records()]


def test_agents_are_offered_tools_and_use_them(memory):
    memory.remember(FACT, scope="/", categories=[], importance=0.5)
    llm = ScriptedLLM(use_tool=SEARCH)
    build_crew(memory, llm).kickoff()
    assert "search_memory" in llm.prompts()[0]
    assert "save_to_memory" in llm.prompts()[0]
    assert any("Found memories" in prompt and FACT in prompt for prompt in llm.prompts())


def test_copies_of_a_crew_share_the_memory(memory):
    crew = build_crew(memory, ScriptedLLM())
    assert len(crew.kickoff_for_each([{}, {}])) == 2
    assert crew.copy()._memory is memory
    assert contents_of(memory) == [FACT]


def test_an_agent_may_have_a_scope_of_the_memory(memory):
    build_crew(False, ScriptedLLM(), agent_memory=memory.scope("/agent/planner")).kickoff()
    memory.drain_writes()
    assert memory.info("/agent/planner").record_count == 1


@pytest.mark.parametrize("kickoff", ["kickoff_async", "akickoff"])
def test_crews_run_on_an_event_loop(memory, kickoff):
    assert str(asyncio.run(getattr(build_crew(memory, ScriptedLLM()), kickoff)())) == FACT


def test_a_reset_empties_the_memory(memory):
    memory.remember(FACT, scope="/", categories=[], importance=0.5)
    build_crew(memory, ScriptedLLM()).reset_memories("memory")
    assert memory.list_records() == []
