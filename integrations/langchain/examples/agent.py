"""An agent that remembers: two conversations, two users, and a chat model that says what it was told to, so that
nothing here needs a network. Put your own model in its place.
"""

import tempfile
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from recall_langchain import RecallMiddleware


class Scripted(BaseChatModel):
    """Answers "Noted." and keeps what it was shown."""

    shown: list = []  # noqa: RUF012 - a field of pydantic

    @property
    def _llm_type(self):
        return "scripted"

    def _generate(self, messages, *arguments, **kwargs):  # noqa: ARG002
        self.shown.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Noted."))])


def say(agent, text, user, thread):
    config = {"configurable": {"thread_id": thread}}
    agent.invoke({"messages": [{"role": "user", "content": text}]}, config, context={"user_id": user})


def remembered(model):
    """Return the quoted lines of the last prompt."""
    prompt = "\n".join(message.text for message in model.shown[-1] if message.type == "system")
    return [line for line in prompt.splitlines() if line.startswith("> ")]


with tempfile.TemporaryDirectory() as folder:
    path, model = Path(folder) / "memory.db", Scripted()
    with RecallMiddleware(path) as memory:
        agent = create_agent(model, [], middleware=[memory])
        say(agent, "My sister Mei lives in Chengdu. 我对花生过敏。", "alice", "monday")

    with RecallMiddleware(path) as memory:  # another day, another process
        agent = create_agent(model, [], middleware=[memory])
        for user, question in (
            ("alice", "Where does my sister live?"),
            ("alice", "我能吃花生吗？"),
            ("bob", "Where does my sister live?"),
        ):
            say(agent, question, user, f"tuesday, {question}")
            print(f"{user} asks: {question}", *remembered(model)[:1] or ["(nothing is remembered)"], sep="\n  ")
