"""How long the event loop waits while 50 agents with a memory run at once: python benchmarks/agents.py [AGENTS]

Needs the hosts' environment and the adapter: .envs/3.11/hosts/bin/python after `make test-langchain`.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from recall_core import Memory
from recall_langchain import RecallMiddleware

sys.path.insert(0, str(Path(__file__).parent.parent / "integrations" / "langchain" / "tests"))
from agents import ScriptedModel, ask, system

ROUNDS = 3
FACTS = 200  # in the memory before


class SlowModel(ScriptedModel):
    """Takes as long as a fast provider does."""

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        await asyncio.sleep(random.uniform(0.2, 1.0))
        return self._generate(messages)


async def note_delays(delays: list[float], stop: asyncio.Event) -> None:
    """Note by how much a sleep of 1 ms is longer."""
    while not stop.is_set():
        started = time.perf_counter()
        await asyncio.sleep(0.001)
        delays.append(time.perf_counter() - started - 0.001)


async def run(path: Path, agents: int, with_memory: bool) -> tuple[list[float], float, int]:
    memory = RecallMiddleware(path, timeout=30)
    model = SlowModel(answers=["Noted."], seen=[])
    agent = create_agent(model, [], middleware=[memory] if with_memory else [])
    await agent.ainvoke(ask("warm up"), context={"user_id": "nobody"})
    delays: list[float] = []
    stop = asyncio.Event()
    noting = asyncio.create_task(note_delays(delays, stop))
    started = time.perf_counter()
    for turn in range(ROUNDS):
        await asyncio.gather(
            *(
                agent.ainvoke(
                    ask(
                        f"what is the code of locker {user}?" if turn else f"the code of locker {user} is {4000 + user}"
                    ),
                    context={"user_id": f"u{user}"},
                )
                for user in range(agents)
            )
        )
    took = time.perf_counter() - started
    stop.set()
    await noting
    memory.close()
    return delays, took, sum("is 4" in system(seen) for seen in model.seen)


def report(name: str, delays: list[float], took: float, agents: int, recalled: int) -> None:
    cuts = statistics.quantiles(delays, n=100, method="inclusive")
    print(
        f"{name:<15} {ROUNDS * agents / took:6.1f} runs/s   loop delay p50 {cuts[49] * 1e3:5.1f} ms"
        f"   p99 {cuts[98] * 1e3:5.1f} ms   most {max(delays) * 1e3:5.1f} ms   recalled in {recalled}"
    )


def main() -> None:
    agents = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Memory.open(path) as memory:
            for number in range(FACTS):
                memory.add(f"Fact {number}: the build of service {number} takes {number} minutes.", scope="user/u1")
        for name, with_memory in (("without memory", False), ("with memory", True)):
            delays, took, recalled = asyncio.run(run(path, agents, with_memory))
            report(name, delays, took, agents, recalled)


if __name__ == "__main__":
    main()
