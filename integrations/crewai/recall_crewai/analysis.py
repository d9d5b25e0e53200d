"""What CrewAI asks a language model when it remembers and recalls, answered without one."""

from __future__ import annotations

import re
from typing import Any, Self

from crewai.memory.analyze import (
    ConsolidationPlan,
    ExtractedMemories,
    ExtractedMetadata,
    MemoryAnalysis,
    QueryAnalysis,
)

# How CrewAI writes down a task or a talk of an agent, for a model to extract memories from.
_DONE = re.compile(r"\A(?:Task|Input): (?P<asked>.*?)\nAgent: .*?\nResult: (?P<result>.*)\Z", re.DOTALL)
_ANSWER = "Final Answer:"


def extract_memories(content: str) -> list[str]:
    """Return what is to be remembered of a task: what was asked and what came of it, as one memory."""
    done = _DONE.match(content)
    if done is None:
        return [content.strip()] if content.strip() else []
    result = done["result"].rpartition(_ANSWER)[2].strip()
    return [f"{done['asked'].strip()}\n{result}"] if result else []


class NoAnalysis:
    """Stands where CrewAI wants a language model for its memory, and asks none.

    It answers a `Memory` of CrewAI, which is what `Agent.copy` makes of ours; ours does not even ask.
    """

    model = "none"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def supports_function_calling(self) -> bool:
        """Say that answers may be given as objects."""
        return True

    def call(self, messages: Any, *, response_model: Any = None, **_: Any) -> Any:
        """Return the answer that changes nothing."""
        said = messages if isinstance(messages, str) else str(messages[-1]["content"])
        answers: dict[Any, Any] = {
            ExtractedMemories: lambda: ExtractedMemories(memories=extract_memories(_find_content(said))),
            MemoryAnalysis: lambda: MemoryAnalysis(
                suggested_scope="/", categories=[], importance=0.5, extracted_metadata=ExtractedMetadata()
            ),
            ConsolidationPlan: lambda: ConsolidationPlan(actions=[], insert_new=True),
        }
        if response_model in answers:
            return answers[response_model]()
        if response_model is QueryAnalysis:
            raise ValueError("no model is asked about queries")  # CrewAI then searches for the query itself
        return ""


NO_ANALYSIS = NoAnalysis()


def _find_content(prompt: str) -> str:
    """Return what CrewAI's prompt for extraction is about."""
    start = prompt.find("Task: ") if "Task: " in prompt else prompt.find("Input: ")
    return prompt[max(start, 0) :]
