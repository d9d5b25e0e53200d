"""How long a turn of the Hermes Agent waits for its memory: `prefetch` in cold processes and warm ones.

    python benchmarks/hermes_prefetch.py [--records 50000] [--processes 20] [--turns 60]

Run it in an environment with hermes-agent and the adapter. The file has made-up vectors of the bundled model's size:
what a search costs does not depend on what they say. Between two turns there is time for the
answer: two seconds in a cold process, half a second in a warm one.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recall_core import Memory
from recall_hermes.names import memory_file

PEOPLE = ["小明", "张曼婷", "李雷", "韩梅梅", "Anna", "Bert", "Carla", "王芳", "赵强", "Dora"]
THINGS = [
    "部署脚本", "数据库备份", "生产集群", "red", "bicycle", "花生过敏", "boiler",
    "周报", "nightly_dump.sh", "报销单", "tea", "咖啡", "garden",
]  # fmt: skip
DOINGS = [
    "喜欢",
    "修改了",
    "忘记了",
    "needs",
    "asked",
    "about",
    "昨天检查过",
    "明天要处理",
    "wrote",
    "down",
    "推荐",
    "sold",
]
QUESTIONS = [
    "小明喜欢什么？",
    "谁修改了部署脚本",
    "Who sold the red bicycle?",
    "数据库备份由谁检查",
    "What did Anna write down about the boiler?",
    "花生过敏",
    "nightly_dump.sh 是什么",
    "茶",
    "Which garden needs work?",
    "请帮我看一下生产集群昨天的问题，还有韩梅梅推荐的周报格式",
]


def build(home: Path, count: int) -> None:
    chance, numbers = random.Random(1), np.random.default_rng(1)
    memory_file(home).parent.mkdir(parents=True)
    with Memory.open(memory_file(home)) as memory:

        def records() -> Iterator[dict[str, object]]:
            for place in range(count):
                said = [f"{chance.choice(PEOPLE)} {chance.choice(DOINGS)} {chance.choice(THINGS)}" for _ in range(3)]
                yield {
                    "text": f"{'，'.join(said)} ({place})",
                    "scope": "profile/default",
                    "session": f"s{place // 40}",
                    "role": "user" if place % 2 == 0 else "assistant",
                    "vector": numbers.standard_normal(384).astype("float32").tolist(),
                }

        memory.add_many(records())


def measure(home: Path, turns: int, pause: float) -> dict[str, object]:
    from recall_hermes import RecallMemoryProvider

    provider = RecallMemoryProvider()
    began = time.perf_counter()
    provider.initialize("s", hermes_home=str(home), platform="cli", agent_identity="default")
    opened = time.perf_counter() - began
    times, modes = [], []
    for turn in range(turns):
        question = QUESTIONS[turn % len(QUESTIONS)] + (f" {turn}" if turn >= len(QUESTIONS) else "")
        began = time.perf_counter()
        provider.prefetch(question)
        times.append(time.perf_counter() - began)
        modes.append(provider._last.mode)
        time.sleep(pause)
    provider.shutdown()
    return {"opened": opened, "times": times, "modes": modes}


def show(name: str, seconds: list[float], modes: list[str]) -> None:
    ms = np.array(seconds) * 1000
    kinds = ", ".join(f"{modes.count(mode)} {mode}" for mode in sorted(set(modes)))
    print(
        f"{name:28} median {np.median(ms):4.0f}   p95 {np.percentile(ms, 95):4.0f}   most {ms.max():4.0f} ms   {kinds}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--pause", type=float, default=0.02, help=argparse.SUPPRESS)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure is not None:
        print(json.dumps(measure(arguments.measure, arguments.turns, arguments.pause)))
        return
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), arguments.records)
        command = [sys.executable, __file__, "--measure", folder, "--turns"]
        print(f"{arguments.records:,} memories")
        cold = [
            json.loads(subprocess.check_output([*command, "3", "--pause", "2"])) for _ in range(arguments.processes)
        ]
        show("opening, in `initialize`", [run["opened"] for run in cold], [])
        for turn in range(3):
            show(
                f"turn {turn + 1} of a cold process",
                [run["times"][turn] for run in cold],
                [r["modes"][turn] for r in cold],
            )
        warm = json.loads(subprocess.check_output([*command, str(arguments.turns), "--pause", "0.5"]))
        show("turns of one process", warm["times"], warm["modes"])


if __name__ == "__main__":
    main()
