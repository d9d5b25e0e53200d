"""Two runs of a crew: the second is told what the first found out. The language model is a stand-in; no network."""

from __future__ import annotations

from typing import Any

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM

from recall_crewai import recall_memory

FOUND = "《山海经》项目的上线日期是 3 月 14 日，负责人是小明。"


class StandIn(BaseLLM):
    """Says what it is told to, and shows the memories that it was given."""

    answer: str = FOUND

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        prompt = messages if isinstance(messages, str) else "\n".join(str(each["content"]) for each in messages)
        _, found, memories = prompt.partition("# Memories from past conversations:\n")
        print(memories.partition("\n\nIMPORTANT")[0] if found else "no memories in the prompt")
        return f"Thought: I now can give a great answer\nFinal Answer: {self.answer}"

    def supports_function_calling(self) -> bool:
        return False


def run(question: str, answer: str = FOUND) -> None:
    model = StandIn(model="stand-in", answer=answer)
    planner = Agent(role="项目经理", goal="回答问题", backstory="细心", llm=model)
    task = Task(description=question, expected_output="一句话", agent=planner)
    with recall_memory("memory.db", root_scope="/crew/研究团队") as memory:
        Crew(agents=[planner], tasks=[task], memory=memory).kickoff()
        print("stored:", [(record.scope, record.content.splitlines()[-1]) for record in memory.list_records()])


run("《山海经》项目什么时候上线？")
run("谁负责《山海经》项目？", "小明")
