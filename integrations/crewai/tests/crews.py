"""Crews with a language model that says what it is told to, and an embedder of words."""

from __future__ import annotations

import hashlib
import json
import math
import re

from crewai import Agent, Crew, Process, Task
from crewai.llms.base_llm import BaseLLM
from crewai.memory.types import MemoryRecord
from pydantic import Field

WORDS = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")
HEADING = "# Memories from past conversations"
FACT = "Project Zephyr ships on 14 March and its codename colour is teal."
QUESTION = "When does Project Zephyr ship and what colour is its codename?"


class WordEmbedder:
    """A bag of words as unit vectors, in the shape that CrewAI calls."""

    def __init__(self, dimensions=64):
        self.dimensions = dimensions

    def __call__(self, texts):
        return [self._embed(text) for text in texts]

    def _embed(self, text):
        vector = [0.0] * self.dimensions
        for word in WORDS.findall(text.lower()):
            vector[int(hashlib.md5(word.encode()).hexdigest(), 16) % self.dimensions] += 1.0
        length = math.sqrt(sum(number * number for number in vector)) or 1.0
        return [number / length for number in vector]


EMBED = WordEmbedder()


def make_record(content, scope="/", **fields):
    return MemoryRecord(**{"content": content, "scope": scope, "embedding": EMBED([content])[0], **fields})


class ScriptedLLM(BaseLLM):
    """Answers an agent, and CrewAI's questions about memories; notes what it was asked, by kind."""

    answer: str = FACT
    use_tool: str = ""
    since: str | None = None
    asked: list = Field(default_factory=list)
    consolidation: dict = Field(default_factory=lambda: {"actions": [], "insert_new": False, "insert_reason": "said"})
    queries: list = Field(default_factory=lambda: ["Project Zephyr ship date"])

    def __init__(self, **fields):
        super().__init__(**{"model": "scripted/llm", **fields})

    def supports_function_calling(self):
        return False

    def get_context_window_size(self):
        return 100_000

    def prompts(self, kind="agent"):
        return [prompt for name, prompt in self.asked if name == kind]

    def call(self, messages, *_, **__):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        prompt = "\n".join(str(message.get("content")) for message in messages)
        kind = next(
            (kind for kind, begin in PROMPTS.items() if str(messages[0].get("content")).startswith(begin)), "agent"
        )
        self.asked.append((kind, prompt))
        if kind != "agent":
            return json.dumps(self._analyse(kind))
        if self.use_tool and "Found memories" not in prompt and "No relevant memories" not in prompt:
            return f"Thought: I should use my memory.\n{self.use_tool}"
        return f"Thought: I now can give a great answer\nFinal Answer: {self.answer}"

    def _analyse(self, kind):
        return {
            "extract": {"memories": [self.answer]},
            "save": {
                "suggested_scope": "/projects",
                "categories": ["project"],
                "importance": 0.8,
                "extracted_metadata": {"entities": ["Zephyr"], "dates": [], "topics": []},
            },
            "consolidate": self.consolidation,
            "query": {
                "keywords": [],
                "suggested_scopes": [],
                "complexity": "simple",
                "recall_queries": self.queries,
                "time_filter": self.since,
            },
        }[kind]


PROMPTS = {
    "extract": "You extract discrete",
    "save": "You analyze content to be stored",
    "consolidate": "You are comparing new content",
    "query": "You analyze a query",
}
SEARCH = 'Action: search_memory\nAction Input: {"queries": ["Project Zephyr ship date"]}'


def build_crew(memory, llm, *, question=QUESTION, role="Planner", agent_memory=None, **fields):
    agent = Agent(role=role, goal="plan", backstory="b", llm=llm, verbose=False, memory=agent_memory)
    task = Task(description=question, expected_output="one line", agent=agent)
    return Crew(agents=[agent], tasks=[task], process=Process.sequential, memory=memory, verbose=False, **fields)
