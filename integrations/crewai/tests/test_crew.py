"""Crews without a model for their memory: what one run stores, the next is told, offline."""

from __future__ import annotations

import copy
import logging
import pickle
import time

import pytest
from crewai import Agent, Flow
from crewai.events.event_bus import crewai_event_bus
from crewai.events.types.memory_events import MemorySaveFailedEvent
from crewai.flow.flow import start
from crewai.memory.unified_memory import Memory as CrewMemory
from crews import EMBED, FACT, HEADING, QUESTION, SEARCH, ScriptedLLM, build_crew, make_record

from recall_core import Memory
from recall_crewai import RecallMemory, RecallStorage, recall_memory

CHINESE = ("《山海经》项目什么时候上线，由谁负责？", "《山海经》项目在 3 月 14 日上线，由小明负责。")
ENGLISH = (QUESTION, FACT)
SAVE = 'Action: save_to_memory\nAction Input: {"contents": ["The door code changed on Monday"]}'


@pytest.fixture
def memory(tmp_path, opened):
    memory = recall_memory(tmp_path / "memory.db")
    opened.append(memory)
    return memory


def wait_for(condition):
    """Wait for what another thread does; tell whether it did."""
    ends = time.monotonic() + 120
    while not condition() and time.monotonic() < ends:
        time.sleep(0.02)
    return condition()


def contents(memory):
    return [record.content for record in memory.list_records()]


@pytest.mark.parametrize(("question", "answer"), [CHINESE, ENGLISH], ids=["zh", "en"])
def test_the_second_run_is_told_what_the_first_found_and_no_model_is_asked(tmp_path, question, answer):
    first = ScriptedLLM(answer=answer)
    with recall_memory(tmp_path / "memory.db") as memory:
        build_crew(memory, first, question=question).kickoff()
        assert contents(memory) == [f"{question}\n{answer}"]
    assert HEADING not in first.prompts()[0]

    second = ScriptedLLM(answer="ok")
    with recall_memory(tmp_path / "memory.db") as memory:
        build_crew(memory, second, question=question).kickoff()
    (prompt,) = second.prompts()
    assert f"> {answer}" in prompt[prompt.index(HEADING) :]
    assert {kind for kind, _ in first.asked + second.asked} == {"agent"}


@pytest.mark.parametrize(("question", "answer"), [CHINESE, ENGLISH], ids=["zh", "en"])
def test_a_run_on_something_else_is_told_nothing(memory, question, answer):
    memory.remember(f"{question}\n{answer}")
    llm = ScriptedLLM(answer="ok")
    build_crew(memory, llm, question="Write a poem about spring.").kickoff()
    assert HEADING not in llm.prompts()[0]


def test_the_same_run_again_stores_nothing_new(memory):
    crew = build_crew(memory, ScriptedLLM())
    crew.kickoff()
    crew.kickoff()
    assert len(contents(memory)) == 1


def test_agents_search_and_save_with_their_tools(memory):
    memory.remember(FACT)
    searching = ScriptedLLM(use_tool=SEARCH)
    build_crew(memory, searching, question="Write a line.").kickoff()
    assert any("Found memories" in prompt and f"> {FACT}" in prompt for prompt in searching.prompts())

    llm = OnceLLM(use_tool=SAVE, answer="ok")
    build_crew(memory, llm, question="Note the code.").kickoff()
    assert "The door code changed on Monday" in contents(memory)
    assert any("Saved to memory (scope=/" in prompt for prompt in llm.prompts())


class OnceLLM(ScriptedLLM):
    """Uses its tool once."""

    def call(self, messages, *rest, **named):
        answer = super().call(messages, *rest, **named)
        self.use_tool = ""
        return answer


def test_a_memory_that_is_only_read_offers_no_tool_to_save_and_stores_nothing(tmp_path, memory, opened):
    memory.remember(FACT)
    reading = recall_memory(tmp_path / "memory.db", read_only=True)
    opened.append(reading)
    before = memory.list_records()
    llm = ScriptedLLM(answer="something new")
    build_crew(reading, llm).kickoff()
    assert FACT in llm.prompts()[0]
    assert "save_to_memory" not in llm.prompts()[0]
    assert reading.remember("x") is None
    assert memory.list_records() == before


# Copies


def test_a_copy_of_a_memory_is_that_memory(memory):
    assert copy.copy(memory) is copy.deepcopy(memory) is memory
    assert copy.deepcopy(memory.storage) is memory.storage
    crew = build_crew(memory, ScriptedLLM())
    assert crew.copy()._memory is memory
    assert copy.deepcopy({"memory": memory})["memory"] is memory


def test_a_storage_of_a_path_can_be_sent_to_another_process(tmp_path, opened):
    storage = RecallStorage(tmp_path / "memory.db", scope="tenant/7", space="other", redact=True)
    opened.append(storage)
    storage.save([make_record("a")])
    twin = pickle.loads(pickle.dumps(storage))
    opened.append(twin)
    assert (twin.count(), twin.redact, twin.view.scope) == (1, True, "tenant/7")
    with Memory.open(":memory:") as memory, pytest.raises(TypeError, match="make it with a path"):
        pickle.dumps(RecallStorage(memory))


def test_a_storage_that_is_sent_elsewhere_has_the_file_it_had(tmp_path, opened, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = RecallStorage("memory.db")
    opened.append(storage)
    storage.save([make_record("a")])
    sent = pickle.dumps(storage)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    twin = pickle.loads(sent)
    opened.append(twin)
    assert twin.count() == 1
    with RecallStorage(":memory:") as in_ram, pytest.raises(TypeError, match="make it with a path"):
        pickle.dumps(in_ram)


def test_a_copy_with_other_settings_leaves_the_memory_as_it_is(memory):
    memory.remember("The boiler is in the cellar.")
    other = memory.model_copy(update={"read_only": True})
    assert (other.read_only, memory.read_only, other.storage) == (True, False, memory.storage)
    assert other.remember("The ladder is in the attic.") is None
    assert "cellar" in other.recall("Where is the boiler?")[0].record.content
    assert memory.model_copy() is memory


def test_kickoff_for_each_stores_what_came_of_each(memory):
    crew = build_crew(memory, ScriptedLLM(), question="What is known of {topic}?")
    crew.kickoff_for_each([{"topic": "tea"}, {"topic": "茶"}])
    assert {text.splitlines()[0] for text in contents(memory)} == {"What is known of tea?", "What is known of 茶?"}


def test_training_and_testing_a_crew_leave_its_memory_working(memory, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    crew = build_crew(memory, ScriptedLLM())
    monkeypatch.setattr("builtins.input", lambda *_: "Good.")
    crew.train(n_iterations=1, filename="trained.pkl", inputs={})
    crew.test(n_iterations=1, eval_llm=ScriptedLLM(answer='{"quality": 9.0}'))
    memory.drain_writes()
    assert contents(memory) == [f"{QUESTION}\n{FACT}"]
    llm = ScriptedLLM()
    build_crew(memory, llm).kickoff()
    assert FACT in llm.prompts()[0]


def test_an_agents_own_memory_works_in_its_crew_and_in_copies_of_it(memory, tmp_path):
    llm = ScriptedLLM()
    crew = build_crew(False, llm, agent_memory=memory)
    crew.kickoff()
    assert contents(memory) == [f"{QUESTION}\n{FACT}"]
    crew.kickoff_for_each([{}])
    assert FACT in llm.prompts()[-1]
    assert {kind for kind, _ in llm.asked} == {"agent"}


def test_an_agent_without_a_crew_has_its_memory(memory):
    llm = ScriptedLLM()
    agent = Agent(role="Planner", goal="plan", backstory="b", llm=llm, memory=memory)
    agent.kickoff(QUESTION)
    memory.drain_writes()
    assert contents(memory) == [f"{QUESTION}\n{FACT}"]
    agent.kickoff(QUESTION)
    assert f"> {FACT}" in llm.prompts()[-1]


def test_a_scope_of_the_crews_memory_survives_copies_of_the_crew(memory):
    llm = ScriptedLLM()
    crew = build_crew(memory, llm, agent_memory=memory.scope("/agent/planner"))
    crew.kickoff()
    assert [record.scope for record in memory.list_records()] == ["/agent/planner"]


def test_a_flow_has_a_memory(memory):
    class Talk(Flow):
        @start()
        def begin(self):
            self.remember(FACT)
            return [match.record.content for match in self.recall(QUESTION)]

    flow = Talk(memory=memory)
    assert flow.kickoff() == [FACT]


# Scopes


def test_a_role_keeps_the_letters_of_its_language(tmp_path, opened):
    memory = recall_memory(tmp_path / "memory.db", root_scope="/crew/研究团队")
    opened.append(memory)
    build_crew(memory, ScriptedLLM(), role="项目经理").kickoff()
    build_crew(memory, ScriptedLLM(answer="Something else"), role="Lead Writer #1").kickoff()
    memory.drain_writes()
    assert memory.list_scopes("/agent") == ["/crew/研究团队/agent/lead-writer-1", "/crew/研究团队/agent/项目经理"]


def test_two_crews_on_a_file_keep_apart_and_reset_their_own(tmp_path, opened):
    path = tmp_path / "memory.db"
    crews = {}
    for name in ("研究", "写作"):
        memory = recall_memory(path, root_scope=f"/crew/{name}")
        opened.append(memory)
        crews[name] = build_crew(memory, ScriptedLLM(answer=f"{name}: {FACT}"))
        crews[name].kickoff()
        memory.drain_writes()
    every = recall_memory(path)
    opened.append(every)
    every.remember("at the root", scope="/")
    assert every.info().record_count == 3
    crews["研究"].reset_memories("memory")
    assert {record.scope for record in every.list_records()} == {"/", "/crew/写作/agent/planner"}
    crews["写作"].reset_memories("all")
    assert contents(every) == ["at the root"]


def test_resetting_a_crew_leaves_the_rest_of_the_file(tmp_path, opened):
    with Memory.open(tmp_path / "memory.db") as file:
        file.add("not of a crew", scope="user/42")
        memory = recall_memory(file)
        build_crew(memory, ScriptedLLM()).kickoff()
        memory.drain_writes()
        assert memory.info().record_count == 1
        build_crew(memory, ScriptedLLM()).reset_memories("memory")
        assert [record.text for record in file.records()] == ["not of a crew"]
        storage = RecallStorage(file, scope="other")
        storage.reset()
        assert file.count() == 1


def test_tenants_see_and_change_nothing_of_each_other(tmp_path, opened):
    anna, ben = (recall_memory(tmp_path / "memory.db", scope=f"tenant/{name}") for name in ("anna", "ben"))
    opened.extend([anna, ben])
    kept = anna.remember(FACT, scope="/projects", categories=["c"])
    for scope in (None, "/", "/projects", "/../anna", "../anna", "/tenant/anna", "//"):
        assert ben.recall(FACT, scope=scope, include_private=True) == []
        assert ben.forget(scope=scope) == 0
    assert (ben.list_records(), ben.list_categories(), ben.list_scopes()) == ([], {}, [])
    assert ben.info().record_count == 0
    assert ben.forget(record_ids=[kept.id]) == 0
    with pytest.raises(ValueError, match="Record not found"):
        ben.update(kept.id, content="x")
    ben.storage.touch_records([kept.id])
    ben.reset_all()
    assert anna.list_records() == [kept]


# Failures


def test_a_background_save_that_fails_is_reported_loudly_and_the_crew_goes_on(memory, caplog, monkeypatch):
    failed = []
    with crewai_event_bus.scoped_handlers():
        crewai_event_bus.on(MemorySaveFailedEvent)(lambda source, event: failed.append(event.error))
        memory.storage.close()
        assert str(build_crew(memory, ScriptedLLM()).kickoff()) == FACT
        memory.drain_writes()
        assert wait_for(lambda: any("closed" in line for line in failed))
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert any("1 memories were NOT stored" in line and "closed" in line for line in errors)
    with pytest.raises(Exception, match="closed"):
        memory.remember("x")


def test_what_can_never_be_stored_keeps_nothing_else_out_and_is_reported(memory, caplog):
    memory.remember_many(["The boiler is in the cellar.", "x" * 1_000_001, "The ladder is in the attic."])
    memory.drain_writes()
    assert {record.content for record in memory.list_records()} == {
        "The boiler is in the cellar.",
        "The ladder is in the attic.",
    }
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    (said,) = (line for line in errors if "NOT stored" in line)
    assert "1 memories" in said
    assert "1,000,001 characters" in said


def test_a_plain_memory_reports_what_it_could_not_store_in_our_storage(tmp_path, opened, caplog):
    storage = RecallStorage(tmp_path / "memory.db")
    opened.append(storage)
    plain = CrewMemory(storage=storage, embedder=lambda texts: 1 / 0, llm=ScriptedLLM())
    plain.remember_many(["lost"])
    assert wait_for(lambda: any("a memory was NOT stored" in record.getMessage() for record in caplog.records))
    caplog.clear()
    storage.close()
    plain = CrewMemory(storage=storage, embedder=EMBED, llm=ScriptedLLM())
    plain.remember_many(["lost"], scope="/", categories=[], importance=0.5)
    plain.drain_writes()
    assert [record.getMessage() for record in caplog.records if "1 memories were NOT stored" in record.getMessage()]


# The model, if one is given


def test_a_long_query_is_read_by_the_model_if_there_is_one(tmp_path, opened):
    llm = ScriptedLLM(queries=["Project Zephyr ship date", "sushi"])
    memory = recall_memory(tmp_path / "memory.db", llm=llm)
    opened.append(memory)
    for text in (FACT, "the user loves sushi"):
        memory.remember(text, scope="/", categories=[], importance=0.5)
    query = "Please look at all that we have noted in the last months and tell me about it. " * 4
    assert {match.record.content for match in memory.recall(query)} == {FACT, "the user loves sushi"}
    assert len(llm.prompts("query")) == 1
    memory.recall(query, depth="shallow")
    memory.recall("short")
    assert len(llm.prompts("query")) == 1


def test_weights_bring_back_scores_by_recency_and_importance(tmp_path, opened):
    memory = recall_memory(tmp_path / "memory.db", semantic_weight=0.5, recency_weight=0.3, importance_weight=0.2)
    opened.append(memory)
    memory.remember(f"{FACT} Says Anna.", importance=0.1)
    memory.remember(f"{FACT} Says Ben.", importance=0.9)
    found = memory.recall(QUESTION)
    assert [match.record.importance for match in found] == [0.9, 0.1]
    assert found[0].score - found[1].score == pytest.approx(0.16, abs=0.02)


@pytest.mark.parametrize("llm", [None, ScriptedLLM()], ids=["alone", "with a model"])
def test_without_an_embedder_words_are_searched(tmp_path, opened, llm):
    memory = recall_memory(tmp_path / "memory.db", embedder=None, llm=llm)
    opened.append(memory)
    for text in (FACT, "the user loves sushi"):
        memory.remember(text)
    assert memory.recall("Zephyr codename colour")[0].record.content == FACT
    assert memory.storage.search([1.0, 0.0]) == []


@pytest.mark.parametrize("query", ["", "  ", "?", "%_*\"' OR 1=1", "\x00", "\ud800"])
def test_any_text_is_a_query(memory, query):
    memory.remember(FACT)
    assert all(match.record.content == FACT for match in memory.recall(query))
    assert memory.recall(QUESTION, limit=0) == []


def test_what_is_no_source_of_a_memory_is_refused():
    with pytest.raises(ValueError, match="the path of a file, an open Memory or a View"):
        recall_memory(42)
    with pytest.raises(ValueError, match="the path of a file"):
        RecallMemory(storage=object())


def test_a_memory_can_be_made_of_its_fields(tmp_path):
    with RecallMemory(storage=str(tmp_path / "memory.db")) as memory:
        memory.remember(FACT)
        assert [match.record.content for match in memory.recall(QUESTION)] == [FACT]
