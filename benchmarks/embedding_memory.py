"""Measures the resident memory and the speed of embedding many short texts with the bundled model.

    python benchmarks/embedding_memory.py [TEXTS]

Prints one line per stage. The texts are made up of words by a fixed seed, 19 tokens on average, half of them Chinese.
Resident memory is read from /proc on Linux; elsewhere the peak of the process is shown in its place.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from recall_core.embedding import load_bundled

ENGLISH = (
    "the server restarts after every deploy and logs error 503 when database settings miss a password or disk is full"
)
CHINESE = (
    "数据库 配置 在 生产 环境 我们 用 部署 服务 硬盘 不够 了 重启 之后 "
    "日志 报错 用户 喜欢 喝茶 昨天 会议 决定 改用 端口"
)


def make_texts(count: int) -> list[str]:
    rng = random.Random(0)
    texts = []
    for number in range(count):
        words, joint = (CHINESE.split(), "") if number % 2 else (ENGLISH.split(), " ")
        texts.append(joint.join(rng.choices(words, k=rng.randint(7, 20))) + f" {number}")
    return texts


def read_resident_megabytes() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1024**2


def main(count: int = 10_000) -> None:
    texts = make_texts(count)
    print(f"{read_resident_megabytes():8.0f} MB  before anything is loaded")
    embedder = load_bundled()
    started = time.perf_counter()
    embedder.embed_queries(["数据库配置"])
    print(f"{read_resident_megabytes():8.0f} MB  after the first query, {time.perf_counter() - started:.2f} s")
    started = time.perf_counter()
    embedder.embed_passages(texts)
    seconds = time.perf_counter() - started
    print(f"{read_resident_megabytes():8.0f} MB  after {count} texts, {seconds:.1f} s, {count / seconds:.0f} texts/s")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
