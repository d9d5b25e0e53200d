"""Chinese, Traditional and Simplified, mixed with English, and words of your own."""

import tempfile
from pathlib import Path

from recall_core import Memory, Settings

MEMORIES = [
    "她下午喜欢喝茶，不喝咖啡",
    "用 docker-compose 部署之前先跑 make lint",
    "量子鹿项目的周会改到星期三上午十点",
    "服务不可用时先看网关日志，再重启 worker",
]
QUESTIONS = [
    "茶",  # one character, inside a word
    "服務不可用怎麼辦",  # Traditional, stored as Simplified
    "docker compose 怎么部署",
    "量子鹿的会是什么时候？",  # a name that no dictionary has
    "what does she like to drink?",  # no word in common: found by meaning
]

# Words of the dictionary are kept whole in the keyword index, beside the pairs of characters.
settings = Settings(dictionary=("量子鹿",))

with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "zh.db", settings=settings) as memory:
    for text in MEMORIES:
        memory.add(text)
    for question in QUESTIONS:
        hit = memory.search(question, limit=1)[0]
        print(f"{question}\n  {hit.relevance:.2f}  {hit.record.text}  ({hit.why})")
