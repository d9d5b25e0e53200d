"""Told in one session, recalled in the next: python two_sessions.py

The parts are Hermes' own: its discovery of providers and the manager that its agents have. Only the model is missing.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

HOME = Path(tempfile.mkdtemp(prefix="hermes-"))
os.environ["HERMES_HOME"] = str(HOME)

from agent.memory_manager import MemoryManager  # noqa: E402  (Hermes asks for its home when it is imported)
from plugins.memory import load_memory_provider  # noqa: E402

from recall_hermes.installing import install  # noqa: E402


def start(session: str) -> MemoryManager:
    manager = MemoryManager()
    manager.add_provider(load_memory_provider("recall"))
    manager.initialize_all(session_id=session, hermes_home=str(HOME), platform="cli", agent_identity="default")
    return manager


install(HOME)

monday = start("monday")
monday.sync_all("生产数据库每天凌晨两点备份，脚本叫 nightly_dump.sh", "好的，记住了。", session_id="monday")
monday.sync_all("I am allergic to peanuts.", "I will keep that in mind.", session_id="monday")
monday.flush_pending(timeout=10)
monday.shutdown_all()

tuesday = start("tuesday")
for message in ("数据库什么时候备份？", "What am I allergic to?", "谢谢"):
    print(f"--- {message}")
    print(tuesday.prefetch_all(message) or "(nothing is recalled)")
tuesday.shutdown_all()
