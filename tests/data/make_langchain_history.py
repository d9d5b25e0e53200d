"""Writes langchain-history.db as LangChain does; run it where langchain-community is installed."""

from __future__ import annotations

from pathlib import Path

from langchain_community.chat_message_histories import SQLChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

path = Path(__file__).parent / "langchain-history.db"
path.unlink(missing_ok=True)
first = SQLChatMessageHistory("t1", connection=f"sqlite:///{path}")
first.add_messages(
    [
        SystemMessage("You are a helpful assistant."),
        HumanMessage("结算页很慢，怎么回事？", id="m1", name="小李"),
        AIMessage("", tool_calls=[{"name": "explain", "args": {"table": "orders"}, "id": "c1"}]),
        ToolMessage("Seq Scan on orders", tool_call_id="c1"),
        AIMessage([{"type": "text", "text": "慢查询：orders 表缺索引。"}], additional_kwargs={"score": 0.9}),
    ]
)
second = SQLChatMessageHistory("t2", connection=f"sqlite:///{path}")
second.add_user_message("Where do the logs lie?")
second.add_ai_message("In /var/log/shop.")
