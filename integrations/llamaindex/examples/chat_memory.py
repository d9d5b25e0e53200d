"""A chat that remembers: the conversation, and what has left the window, in one file. The model is a stand-in."""

from __future__ import annotations

import asyncio

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory

from recall_llamaindex import RecallChatStore, RecallMemoryBlock


async def main() -> None:
    store, block = RecallChatStore("chat.db"), RecallMemoryBlock("chat.db", scope="user/42", across_sessions=True)

    def open_chat(session: str) -> tuple[SimpleChatEngine, Memory]:
        memory = Memory.from_defaults(
            session_id=session, chat_store=store, memory_blocks=[block], token_limit=200, token_flush_size=50
        )
        return SimpleChatEngine.from_defaults(llm=MockLLM(max_tokens=5), memory=memory), memory

    engine, memory = open_chat("monday")
    await engine.achat("我对花生过敏，请记住。")
    for number in range(8):
        await engine.achat(f"今天的天气怎么样？这是第{number}次问。")
    print("in the window:", len(await memory.aget()), "of", len(await memory.aget_all()), "messages")

    _, memory = open_chat("tuesday")
    recalled = await memory.aget(input="我对什么过敏？")
    print(recalled[0].content)
    store.close()
    block.close()


asyncio.run(main())
