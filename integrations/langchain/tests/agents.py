"""Agents without a network: a chat model that says what it was told to and keeps what it was shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult

Answer = str | AIMessage | Callable[[Sequence[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """Gives its answers in their order, the last one again and again, and notes the messages of each call in `seen`."""

    answers: list[Any] = ["ok"]  # noqa: RUF012 - a field of pydantic
    seen: list[list[BaseMessage]] = []  # noqa: RUF012 - a field of pydantic

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedModel:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = self.answers[min(len(self.seen), len(self.answers) - 1)]
        self.seen.append(list(messages))
        message = answer(messages) if callable(answer) else AIMessage(answer) if isinstance(answer, str) else answer
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: list[BaseMessage], *arguments: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


def scripted(*answers: Answer) -> ScriptedModel:
    return ScriptedModel(answers=list(answers) or ["ok"], seen=[])


def calling(tool: str, call: str = "call-1", /, **arguments: Any) -> AIMessage:
    """Return an answer that calls a tool; `call` is the id of the call."""
    return AIMessage("let me see", tool_calls=[ToolCall(name=tool, args=arguments, id=call, type="tool_call")])


def system(messages: Sequence[BaseMessage]) -> str:
    """Return the system prompt among messages."""
    return "\n".join(str(message.text) for message in messages if message.type == "system")


def ask(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}
