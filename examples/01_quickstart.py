"""Store a few memories in one file and find them by keyword, by meaning, and by both."""

import tempfile
from pathlib import Path

from recall_core import Memory

MEMORIES = [
    "We deploy with Docker Compose; virtual machines are gone.",
    "生产环境的数据库配置放在 config/prod.yaml，只有值班同学可以改",
    "Error 503 means that the queue is full: restart the worker.",
    "磁盘使用率超过 90% 时先清理 /var/log 下的旧日志",
]
QUESTIONS = ["config/prod.yaml", "怎么部署服务", "硬盘不够了"]

with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "agent.db") as memory:
    for text in MEMORIES:
        memory.add(text)
    for question in QUESTIONS:
        print(question)
        for mode in ("keyword", "semantic", "hybrid"):
            hits = memory.search(question, mode=mode, limit=1)
            found = f"{hits[0].relevance:.2f}  {hits[0].record.text}" if hits else "nothing"
            print(f"  {mode:9} {found}")
