"""Several processes on one file, and CrewAI's own switch for its memory."""

from __future__ import annotations

import subprocess
import sys

from crewai import Agent, Crew, Task
from crewai.memory.unified_memory import Memory as CrewMemory
from crews import FACT, QUESTION, ScriptedLLM
from support import wait_until

from recall_crewai import RecallMemory, RecallStorage, disable, enable, recall_memory

# A process that remembers, and a child forked from it that does so at the same time, if there is forking here.
WRITER = """
import os, sys
from crewai.memory.types import MemoryRecord
from recall_crewai import RecallStorage, recall_memory

def write(path, number):
    with recall_memory(path, root_scope=f"/crew/{number}") as memory:
        for place in range(4):
            memory.remember_many([f"crew {number} notes item {place}"])
        found = memory.recall(f"crew {number} notes item 3", limit=20)
        assert len(found) == 4, len(found)
    storage = RecallStorage(path)
    for place in range(4):
        record = MemoryRecord(content=f"raw {number} {place}", scope=f"/raw/{number}", embedding=[1.0, place, 0.0])
        storage.save([record])
    storage.close()

path, number = sys.argv[1:]
memory = recall_memory(path, scope="before")
memory.remember("opened before the fork")
child = os.fork() if hasattr(os, "fork") else 0
if not child:
    write(path, number + "b")
    if hasattr(os, "fork"):
        os._exit(0)
write(path, number)
if child:
    assert os.waitpid(child, 0)[1] == 0
memory.close()
"""


def test_several_processes_and_forks_of_them_write_one_file_and_lose_nothing(tmp_path, opened):
    path = tmp_path / "memory.db"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), number], stderr=subprocess.PIPE, text=True)
        for number in ("1", "2")
    ]
    for writer in writers:
        _, said = writer.communicate(timeout=240)
        assert writer.returncode == 0, said
    memory = recall_memory(path)
    opened.append(memory)
    assert memory.list_scopes("/crew") == ["/crew/1", "/crew/1b", "/crew/2", "/crew/2b"]
    assert (memory.info("/crew").record_count, memory.info("/raw").record_count) == (16, 16)


# Crew(memory=True)


def make_crew(llm, **fields):
    agent = Agent(role="Planner", goal="plan", backstory="b", llm=llm, verbose=False)
    task = Task(description=QUESTION, expected_output="one line", agent=agent)
    return Crew(agents=[agent], tasks=[task], memory=True, **fields)


def test_memory_true_stores_in_the_file_and_recalls_from_it(tmp_path, opened):
    embedder = enable(tmp_path / "memory.db")
    crew = make_crew(ScriptedLLM(), embedder=embedder, name="Zephyr")
    opened.append(crew._memory)
    crew.kickoff()
    storage = RecallStorage(tmp_path / "memory.db")
    opened.append(storage)
    assert [(record.content, record.scope.split("/")[:3]) for record in storage.list_records()] == [
        (FACT, ["", "crew", "zephyr"])
    ]
    llm = ScriptedLLM()
    make_crew(llm, embedder=embedder, name="Zephyr").kickoff()
    assert FACT in llm.prompts()[0]


def test_memory_true_without_an_embedder_says_that_nothing_was_stored(tmp_path, opened, caplog):
    enable(tmp_path / "memory.db")
    crew = make_crew(ScriptedLLM())
    opened.append(crew._memory)
    crew.kickoff()
    crew._memory.drain_writes()
    wait_until(lambda: any("NOT stored" in line and "embedder" in line for line in told(caplog)))


def told(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "recall_crewai"]


def test_other_storages_are_chosen_as_before_and_disable_ends_it(tmp_path, opened):
    enable(tmp_path / "memory.db")
    plain = CrewMemory(embedder=lambda texts: [], llm=ScriptedLLM())
    opened.append(plain)
    assert isinstance(plain._storage, RecallStorage)
    assert not isinstance(CrewMemory(storage=str(tmp_path / "lance"), llm=ScriptedLLM())._storage, RecallStorage)
    ours = RecallMemory(storage=str(tmp_path / "own.db"))
    opened.append(ours)
    assert ours.storage.path.endswith("own.db")
    disable()
    assert not isinstance(CrewMemory(llm=ScriptedLLM())._storage, RecallStorage)
