"""Conversations: turns in order, appended as often as you like, searched with what was said around them."""

import tempfile
from pathlib import Path

from recall_core import Memory

TALK = [
    ("user", "The checkout has been slow since this morning."),
    ("assistant", "Which step is slow: the cart, or the payment?"),
    ("user", "The payment. It takes eight seconds."),
    ("assistant", "The orders table has no index on user_id. I added idx_orders_user; it takes 90 ms now."),
]

with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "agent.db") as memory:
    talk = memory.session("2026-01-31", scope="user/alice", title="Slow checkout")
    for _ in range(2):  # a host that starts again repeats its turns: nothing is stored twice
        for turn, (role, text) in enumerate(TALK, start=1):
            talk.append(role, text, turn=turn)
    print(f"{talk.title}: {memory.count()} messages, from {talk.created_at:%H:%M} to {talk.updated_at:%H:%M} UTC")

    last = talk.messages(limit=2)
    print("last two:", [f"{message.turn} {message.role}" for message in last])
    print("before them:", [f"{message.turn} {message.role}" for message in talk.messages(before=last[0])])

    for hit in memory.search("which index was missing?", session="2026-01-31", limit=2):
        print(f"{hit.relevance:.2f}  turn {hit.record.turn}, {hit.record.role}: {hit.record.text}")
        print(f"      {hit.why}")

    print("sessions:", [(session.scope, session.id) for session in memory.sessions()])
    print("deleted:", talk.delete())
