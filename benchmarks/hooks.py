"""How long `recall hook user-prompt-submit` takes from the start of its process, in a project of many memories.

    python benchmarks/hooks.py [--texts 50000] [--runs 60]

The budget is lifted, so that the whole time is seen. The time of the processor is what other load changes less.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recall_core import Memory
from recall_core.client_scopes import project_scope

ZH = "部署 服务 数据库 配置 磁盘 日志 网关 重启 备份 监控 告警 用户 咖啡 会议 项目 版本 发布 回滚 缓存 队列".split()  # noqa: SIM905
EN = "deploy service database config disk log gateway restart backup monitor alert user coffee meeting project".split()  # noqa: SIM905
PROMPTS = (
    "how do we restart the database gateway after a backup?",
    "数据库备份之后怎么重启网关？",
    "please look at the deploy service, its config and the log of the monitor: the alert came while the user was in a "
    "meeting, and the disk was full again",
    "what is the weather like in Lisbon",
)
COMMAND = "from recall_core.cli import main; main()"


def fill(db: Path, project: Path, count: int) -> None:
    """Store made-up memories of a project."""
    rng, scope = random.Random(7), project_scope(project)
    with Memory.open(db, embedder=None) as memory:
        memory.add_many(
            {
                "text": f"{number} " + ("" if number % 2 else " ").join(rng.choices(ZH if number % 2 else EN, k=8)),
                "scope": scope,
            }
            for number in range(count)
        )


def call(prompt: str, number: int, project: Path) -> tuple[float, float, bool]:
    """Return the seconds to the end of a hook, those of the processor, and whether it found something."""
    payload = {"session_id": f"s{number}", "cwd": str(project), "hook_event_name": "UserPromptSubmit", "prompt": prompt}
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "hook", "user-prompt-submit"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(payload).encode())
    process.stdin.close()
    output = process.stdout.read()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    process.stdout.close()
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, bool(output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        project.mkdir()
        os.environ.update(
            RECALL_DB=f"{folder}/memory.db", RECALL_HOOK_DIR=f"{folder}/state", RECALL_HOOK_BUDGET="30000"
        )
        fill(Path(folder) / "memory.db", project, arguments.texts)
        call(PROMPTS[0], -1, project)
        done = [call(PROMPTS[number % len(PROMPTS)], number, project) for number in range(arguments.runs)]
    print(f"{arguments.texts} memories, {len(done)} calls, {sum(found for _, _, found in done)} with a block")
    for place, what in enumerate(("from start to end", "of the processor")):
        times = sorted(one[place] for one in done)
        p95 = times[int(0.95 * (len(times) - 1))]
        print(f"{what}: median {statistics.median(times):.3f} s, p95 {p95:.3f} s, best {times[0]:.3f} s")


if __name__ == "__main__":
    main()
