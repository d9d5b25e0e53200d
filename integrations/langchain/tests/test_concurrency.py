"""Many agents at once on one file: nothing is lost, nothing crosses, and the event loop does none of the work."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agents import ask, calling, scripted, system
from langchain.agents import create_agent

from recall_core import Memory
from recall_langchain import RecallMiddleware, RecallStore, RecallVectorStore

AGENTS = 50
WORK = ("recall_core.store", "recall_core.embedding.", "recall_core.text", "onnxruntime", "tokenizers")
HERE = Path(__file__).parent


class noting_work:  # noqa: N801 - read as a verb
    """Notes which modules of the database and of the model run code in this thread, which is the event loop's."""

    def __enter__(self) -> set[str]:
        self.seen: set[str] = set()
        sys.setprofile(self._note)
        return self.seen

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _note(self, frame, event, argument) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith(WORK):
            self.seen.add(f"{module}.{frame.f_code.co_name}")


def answer(messages):
    """Answer a user with what this user said, and with what the memory says."""
    from langchain_core.messages import AIMessage

    return AIMessage(f"heard {messages[-1].content}")


async def test_fifty_agents_lose_nothing_cross_nothing_and_leave_the_loop_alone(tmp_path):
    with Memory.open(tmp_path / "memory.db") as memory, RecallMiddleware(memory, timeout=60) as recall:
        model = scripted(answer)
        agent = create_agent(model, [], middleware=[recall])

        async def run(user: int, text: str) -> None:
            config = {"configurable": {"thread_id": f"thread-{user}"}}
            await agent.ainvoke(ask(text), config, context={"user_id": f"u{user}"})

        with noting_work() as seen:
            await asyncio.gather(*(run(user, f"The code of my locker is L{user:03}.") for user in range(AGENTS)))
            await asyncio.gather(*(run(user, "What is the code of my locker?") for user in range(AGENTS)))
        assert seen == set()

        assert memory.count() == 4 * AGENTS
        for user in range(AGENTS):
            texts = {record.text for record in memory.records(scope=f"user/u{user}")}
            assert texts == {
                f"The code of my locker is L{user:03}.",
                f"heard The code of my locker is L{user:03}.",
                "What is the code of my locker?",
                "heard What is the code of my locker?",
            }
        prompts = [system(shown) for shown in model.seen[AGENTS:]]
        codes = [{f"L{user:03}" for user in range(AGENTS) if f"L{user:03}" in prompt} for prompt in prompts]
        assert sorted(next(iter(found)) for found in codes if len(found) == 1) == [f"L{n:03}" for n in range(AGENTS)]


async def test_store_vector_store_and_tools_leave_the_loop_alone(tmp_path):
    with Memory.open(tmp_path / "memory.db") as memory:
        store, documents = RecallStore(memory), RecallVectorStore(memory)
        agent = create_agent(
            scripted(calling("remember", text="Tea at four."), "ok"),
            [],
            middleware=[RecallMiddleware(memory, tools=True, timeout=60)],
        )
        with noting_work() as seen:
            await agent.ainvoke(ask("Remember: tea at four."))
            await store.aput(("notes",), "k", {"text": "coffee at three"})
            assert (await store.asearch(("notes",), query="coffee"))[0].score is not None
            assert len(await store.alist_namespaces()) == 1
            await documents.aadd_texts(["water at two"], ids=["1"])
            assert len(await documents.asimilarity_search("water")) == 1
            assert len(await documents.aget_by_ids(["1"])) == 1
            await documents.adelete(["1"])
        assert seen == set()


def test_agents_in_threads_lose_nothing_and_cross_nothing(tmp_path):
    with Memory.open(tmp_path / "memory.db") as memory:
        agent = create_agent(scripted(answer), [], middleware=[RecallMiddleware(memory, timeout=60)])

        def run(number: int) -> None:
            agent.invoke(ask(f"Note {number}."), context={"user_id": f"u{number % 8}"})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(run, range(40)))
        for user in range(8):
            said = {record.text for record in memory.records(scope=f"user/u{user}") if record.role == "user"}
            assert said == {f"Note {number}." for number in range(user, 40, 8)}


def test_the_work_of_the_loop_would_be_seen(tmp_path):
    with noting_work() as seen, Memory.open(tmp_path / "memory.db", embedder=None) as memory:
        memory.add("text")
    assert seen


OTHER_PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
from agents import ask, scripted
from langchain.agents import create_agent
from recall_langchain import RecallMiddleware

with RecallMiddleware(sys.argv[2], timeout=60) as recall:
    agent = create_agent(scripted("Noted."), [], middleware=[recall])
    for part in range(4):
        agent.invoke(ask(f"Part {part} of order {sys.argv[3]} is a bolt."), context={"user_id": "alice"})
"""


def test_processes_share_a_memory(tmp_path):
    path = tmp_path / "memory.db"
    command = [sys.executable, "-c", OTHER_PROCESS, str(HERE), str(path)]
    others = [subprocess.Popen([*command, order], stderr=subprocess.PIPE, text=True) for order in "AB"]
    for other in others:
        _, errors = other.communicate(timeout=240)
        assert other.returncode == 0, errors
    model = scripted("A bolt.")
    with Memory.open(path) as memory:
        assert memory.count() == 16
        agent = create_agent(model, [], middleware=[RecallMiddleware(memory, timeout=60)])
        agent.invoke(ask("What is part 3 of order B?"), context={"user_id": "alice"})
    assert "Part 3 of order B is a bolt." in system(model.seen[0])
